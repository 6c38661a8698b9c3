"""The report: what was read, skipped, repaired and ignored, in a few lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from simlte_st.errors import EmptyCorpusError
from simlte_st.reading.documents import read_documents


def test_empty_corpus_error_lists_the_reasons(tmp_path: Path) -> None:
    with pytest.raises(EmptyCorpusError, match=r"\nskipped 2: empty \(1\), first: .*; not a string \(1\)"):
        list(read_documents([{"text": " "}, {"text": None}]))
    with pytest.raises(EmptyCorpusError, match="no usable document"):
        list(read_documents([]))
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(EmptyCorpusError, match=r"ignored 1: \.csv"):
        list(read_documents(tmp_path))


def test_limit_counts_usable_documents_and_is_reported() -> None:
    reader = read_documents(["", "a", " ", "b", "c"], limit=2)
    assert [document.text for document in reader] == ["a", "b"]
    assert reader.report.stopped_at == 2
    assert not reader.report.finished
    assert "limit of 2" in reader.report.summary()
    assert reader.report.skipped == {"empty": 2}


def test_summary_and_dict() -> None:
    rows = [{"text": "x" * 1000, "id": str(number)} for number in range(2000)]
    rows += [{"text": ""}, {"text": None}, {"text": "a\0", "id": "nul"}]
    reader = read_documents(rows)
    list(reader)
    assert reader.report.summary().splitlines() == [
        "read 2,001 documents (2,000,001 characters) from the column 'text'",
        "skipped 2: empty (1), first: item 2,000; not a string (1), first: item 2,001: NoneType",
        "repaired 1: invalid characters removed or replaced (1), first: item 2,002",
    ]
    written = json.loads(json.dumps(reader.report.to_dict()))
    assert written["documents"] == 2001
    assert written["skipped"] == {"empty": 1, "not a string": 1}
    assert written["text_column"] == "text"
