"""Compressed files and lines: errors name broken files, and nothing is lost silently."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from reading_support import write_packed

from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.documents import read_documents


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("how", ["truncated", "corrupt"])
def test_broken_file_error_counts_documents_read_before(tmp_path: Path, suffix: str, how: str) -> None:
    # Text that hardly compresses, so that a cut in the middle leaves rows on both sides.
    words = [os.urandom(60).hex() for _ in range(4000)]
    lines = [json.dumps({"text": word}) for word in words] if "json" in suffix else ["text", *words]
    path = write_packed(tmp_path / f"c{suffix}", ("\n".join(lines) + "\n").encode())
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] if how == "truncated" else data[:middle] + os.urandom(2000) + data[middle + 2000 :])
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=rf"c{suffix} is truncated.*documents? had") as error:
        read.extend(document.text for document in reader)
    count = reader.report.documents
    assert f", after {count:,} document" in str(error.value)
    assert not isinstance(error.value, EmptyCorpusError)
    assert not reader.report.finished
    assert count > (1000 if how == "truncated" else -1)


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".csv.zst"])
def test_small_file_that_unpacks_to_a_huge_line(tmp_path: Path, suffix: str) -> None:
    data = (b"text,n\n" if "csv" in suffix else b"") + b"x" * 100_000_000 + b'\n{"text": "short"}\nshort,1\n'
    path = write_packed(tmp_path / f"c{suffix}", data)
    del data
    assert path.stat().st_size < 200_000
    reader = read_documents(path, max_characters=1000)
    tracemalloc.start()
    try:
        assert [document.text for document in reader] == ["short"]
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert reader.report.skipped["too long"] == 1
