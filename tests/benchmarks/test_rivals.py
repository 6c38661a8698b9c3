from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document

from benchmarks import rivals


def test_a_toy_run_is_kept_and_reported(
    bert_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rivals, "RESULTS", tmp_path / "results")
    rows = [
        {"text": make_document(number % 2, 3) + make_document(number, 6), "label": "xy"[number % 2], "split": split}
        for number in range(40)
        for split in ("train", "test")
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "toy.parquet")
    command = ["--data", str(tmp_path / "toy.parquet"), "--base", str(bert_path), "--work", str(tmp_path / "work")]
    command += ["--steps", "2", "--batch-size", "8", "--tokens", "24", "--read", "32", "--test", "10", "--shots", "2"]
    command += ["--draws", "2", "--head", "logistic"]
    chosen = [
        "--rivals",
        "simcse-long",
        "tsdae",
        "--encoders",
        "tfidf",
        "base-mean",
        "chunk-mean",
        "nomic",
        "instructor",
    ]
    rivals.main([*command, *chosen])
    files = {path.name for path in (tmp_path / "work").iterdir()}
    names = ("simcse-long-0", "tsdae-0", "tfidf", "base-mean", "chunk-mean", "nomic", "instructor", "settings")
    assert files == {f"{name}.json" for name in names}
    capsys.readouterr()
    rivals.main([*command, *chosen])
    printed = capsys.readouterr().out
    assert "tsdae" not in printed, "what is done is not done again"
    assert "instructor" in printed, "what was skipped is tried again"

    rivals.main([*command, "--report"])
    page = (tmp_path / "results" / "rivals.md").read_text()
    for title in ("TF-IDF", "base, mean", "base, mean over chunks", "SimCSE-long", "TSDAE"):
        assert re.search(rf"^\| {title} +\|", page, re.MULTILINE)
    assert "- nomic: nomic-ai/nomic-embed-text-v1.5 brings code of its own" in page
    assert "- instructor: hkunlp/instructor-large cannot be had" in page
    assert "decoder tokens" in page
    everything = (tmp_path / "results" / "rivals.json").read_text()
    assert str(tmp_path) not in everything + page
    assert str(bert_path.parent) not in everything + page
    runs = json.loads(everything)["runs"]
    assert len(runs["tsdae-0"]["macro_f1"]) == 2
    assert runs["tsdae-0"]["training"]["steps"] == 2

    with pytest.raises(SystemExit, match="other settings"):
        rivals.main([*command, "--steps", "3"])
