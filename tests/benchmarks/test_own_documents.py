from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import own_documents
from benchmarks.grid import tiny
from benchmarks.grid.scales import SCALES
from simlte_st.files import read_json


def test_sets_come_together_on_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.papers.mlp._LEAST_UPDATES", 50)  # which take most of the time
    monkeypatch.setitem(SCALES, "cpu", replace(SCALES["cpu"], tokens=32, read=64, batch_size=8, draws=2))
    shared, base = tiny.make(tmp_path / "made")
    command = ["--shared", str(shared), "--base", str(base), "--work", str(tmp_path / "work"), "--steps", "1"]
    command += ["--data", "20news", "bbc", "--results", str(tmp_path)]
    with pytest.raises(SystemExit, match="Nothing is finished"):
        own_documents.main([*command, "--report"])
    own_documents.main([*command, "--seeds", "0"])
    record = read_json(tmp_path / "own_documents.json")
    gain = record["gains"]["docsplit-no-mlm over simcse"]["few-shot"]
    assert sorted(gain["of_each"]) == ["20news", "bbc"]
    assert gain["gain"] == pytest.approx(sum(each["gain"] for each in gain["of_each"].values()) / 2)
    assert {name.split("/")[1] for name in record["results"]} == {"20news", "20news-5", "bbc", "bbc-5"}
    corpora = {
        name: read_json(tmp_path / "work" / name / "models" / "simcse-0.json")["settings"]["corpus"]["name"]
        for name in ("20news", "bbc")
    }
    assert corpora == {"20news": "20newsgroups.parquet", "bbc": "bbc.parquet"}, "each set's own"
    page = (tmp_path / "own_documents.md").read_text()
    assert "| DocSplit, without MLM over SimCSE " in page
