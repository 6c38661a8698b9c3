from __future__ import annotations

from pathlib import Path

import pytest
from support import make_document, write_jsonl

from benchmarks import corpus_size
from simlte_st.files import read_json


def test_commands_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "news.jsonl"
    write_jsonl(data, ({"text": make_document(number)} for number in range(20)))
    monkeypatch.setattr(corpus_size, "COMMANDS", {"dedupe": corpus_size.COMMANDS["dedupe"]})
    output, ballast = tmp_path / "results", b"x" * 10**9
    corpus_size.main(["--data", str(data), "--documents", "12", "--output", str(output)])
    record = read_json(output / "corpus_size.json")
    assert record["documents"] == 12
    row = record["rows"]["dedupe"]
    assert row["seconds"] > 0
    assert 1e7 < row["memory"] < len(ballast), "of the command, not of this process"
    assert row["disk"] == pytest.approx(record["bytes"], rel=0.2), "all are kept"
    page = (output / "corpus_size.md").read_text()
    assert "`simlte dedupe documents.jsonl --output kept.jsonl`" in page
    assert str(tmp_path) not in page
