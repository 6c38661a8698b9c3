from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import write_jsonl

from benchmarks import data


def test_a_data_set_beside_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "posts.jsonl"
    rows = [
        {"text": "one two three", "label": "b", "split": "train"},
        {"text": "one two", "label": "a", "split": "train"},
        {"text": "one", "label": "a", "split": "test"},
        {"text": "", "label": "a", "split": "test"},
    ]
    write_jsonl(path, rows)
    data.main(["20news", "--path", str(path)])
    out = capsys.readouterr().out
    assert re.match(f"20 Newsgroups, .* {path}\n", out)
    for line in (
        "| documents      |    3 | 18,846 |",
        "| words, longest |    3 | 11,554 |",
        "classes: 2 a, 1 b",
        "splits: 2 train, 1 test",
    ):
        assert line in out.splitlines()
    assert "skipped 1: empty (1)" in out


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    data.main([])
    out = capsys.readouterr().out
    assert [line.split(":")[0] for line in out.splitlines() if line] == [*data.SETS]
    assert "LDC User Agreement" in out
