from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import make_document, write_jsonl

from benchmarks import starvation
from simlte_st.files import read_json


def test_stages_and_workers(encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    data = tmp_path / "news.jsonl"
    write_jsonl(data, ({"text": make_document(number)} for number in range(20)))
    starvation.main(
        ["--data", str(data), "--base", str(encoder_path), "--documents", "16", "--batch-size", "8", "--rounds", "2",
         "--tokens", "32", "--workers", "0", "2", "--output", str(tmp_path)]
    )  # fmt: skip
    record = read_json(tmp_path / "starvation.json")
    assert {stage: len(turns) for stage, turns in record["documents_per_second"].items()} == {
        "read and segment": 2, "make batches": 2, "training step": 2,
    }  # fmt: skip
    assert {number: len(turns) for number, turns in record["workers"].items()} == {"0": 2, "2": 2}
    assert record["share_of_the_step"] > 0
    assert record["environment"]["dtype"] == "float32"
    page = (tmp_path / "starvation.md").read_text()
    assert str(tmp_path) not in page + json.dumps(record)
    assert "python -m benchmarks.starvation --data news.jsonl --tokens 32 --workers 0 2" in page
    [two] = [line.split("|") for line in page.splitlines() if line.startswith("| 2 ")]
    rate, at_once, each, scaled = (float(cell.replace(",", "")) for cell in two[2:6])
    assert at_once == 2
    assert each == pytest.approx(rate / 2, abs=1)
    assert scaled == pytest.approx(4 * each, abs=3)
