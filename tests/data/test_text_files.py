"""Compressed files and lines: what is broken is named, and nothing is lost in silence."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_support import packed, texts, zstd
from support import write_jsonl

from simlte_st.data.documents import read_documents
from simlte_st.errors import DataError, EmptyCorpusError


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".csv.gz", ".csv.zst"])
@pytest.mark.parametrize("how", ["truncated", "corrupt"])
def test_a_broken_file_is_named_with_the_documents_read_before(tmp_path: Path, suffix: str, how: str) -> None:
    # Text that hardly compresses, so that a cut in the middle leaves rows on both sides.
    words = [os.urandom(60).hex() for _ in range(4000)]
    lines = [json.dumps({"text": word}) for word in words] if "json" in suffix else ["text", *words]
    path = packed(tmp_path / f"c{suffix}", ("\n".join(lines) + "\n").encode())
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(data[:middle] if how == "truncated" else data[:middle] + os.urandom(2000) + data[middle + 2000 :])
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=rf"c{suffix} is truncated.*documents? had") as error:
        read.extend(document.text for document in reader)
    count = reader.report.documents
    assert f"; {count:,} document" in str(error.value)
    assert not isinstance(error.value, EmptyCorpusError)
    assert not reader.report.finished
    assert count > (1000 if how == "truncated" else -1)


@pytest.mark.parametrize("how", ["appended", "truncated", "rewritten"])
@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.zst", ".utf-16.csv", ".parquet"])
def test_a_file_that_is_written_to_while_it_is_read(tmp_path: Path, suffix: str, how: str) -> None:
    def content(word: str) -> bytes:
        rows = [f"{word} {number:03}" for number in range(300)]
        if suffix == ".parquet":
            pq.write_table(pa.table({"text": rows}), tmp_path / "made.parquet", use_dictionary=False)
            return (tmp_path / "made.parquet").read_bytes()
        text = "\n".join(["text", *rows] if "csv" in suffix else [json.dumps({"text": row}) for row in rows])
        return text.encode("utf-16" if "utf-16" in suffix else "utf-8")

    path = packed(tmp_path / f"c{suffix}", content("old"))
    os.utime(path, (1, 1))  # else it is rewritten at the time at which it was written, as clocks of files go
    documents = iter(read_documents(path))
    assert next(documents).text == "old 000"
    if how == "rewritten":
        packed(path, content("new"))
    else:
        with path.open("r+b") as file:
            file.seek(0, os.SEEK_END) if how == "appended" else file.truncate(file.seek(0, os.SEEK_END) // 2)
            file.write(b"\n" if how == "appended" else b"")
    with pytest.raises(DataError, match=rf"c{suffix} changed while it was read; .* documents? had .* on a copy\."):
        list(documents)


def test_a_file_that_another_replaces_is_read_as_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "c.jsonl", tmp_path / "other.jsonl"
    write_jsonl(path, [{"text": f"old {number}"} for number in range(20_000)])
    write_jsonl(other, [{"text": "new"}])
    documents = iter(read_documents(path))
    next(documents)
    other.replace(path)
    assert [document.text[:3] for document in documents] == ["old"] * 19_999


def test_the_rows_looked_ahead_are_given_before_the_break(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"text": os.urandom(30_000).hex()}) + "\n" for _ in range(20)).encode()
    path = packed(tmp_path / "c.jsonl.gz", rows)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    documents = iter(read_documents(path))
    assert len(next(documents).text) == 60_000


def test_files_that_are_not_what_their_names_say(tmp_path: Path) -> None:
    for name in ("c.jsonl.gz", "c.jsonl.zst", "c.parquet"):
        (tmp_path / name).write_text('{"text": "a"}\n')
        with pytest.raises(DataError, match=rf"{name} is truncated.*; 0 documents"):
            texts(tmp_path / name)


def test_compressed_files_of_several_parts(tmp_path: Path) -> None:
    for suffix, pack in ((".gz", gzip.compress), (".zst", zstd.compress)):
        one, two = (pack(b'{"text": "%s"}\n' % name) for name in (b"one", b"two"))
        path = tmp_path / f"c.jsonl{suffix}"
        path.write_bytes(one + two)
        assert texts(path) == ["one", "two"]
        path.write_bytes(one + two[:-3])
        documents = iter(read_documents(path))
        assert next(documents).text == "one"
        with pytest.raises(DataError, match="truncated, corrupt"):
            list(documents)


def test_zst_of_the_longest_window(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.zst"
    # As `zstd --long=31` packs. A stream, since a file of known size has a window no larger than that.
    with zstd.open(path, "wb", options={zstd.CompressionParameter.window_log: 31}) as file:
        file.write(b'{"text": "long"}\n')
    with pytest.raises(OSError, match="too much memory"), pa.input_stream(path) as stream:
        stream.read()  # why pyarrow does not read these files here
    assert texts(path) == ["long"]


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".csv.zst"])
def test_a_small_file_that_unpacks_to_very_much(tmp_path: Path, suffix: str) -> None:
    data = (b"text,n\n" if "csv" in suffix else b"") + b"x" * 100_000_000 + b'\n{"text": "short"}\nshort,1\n'
    path = packed(tmp_path / f"c{suffix}", data)
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


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".json"])
def test_lines_in_utf8_are_utf8_whatever_encoding_is_named(tmp_path: Path, suffix: str) -> None:
    def write(rows: list[str], encoding: str) -> Path:
        lines = ["text", *rows] if "csv" in suffix else [f'{{"text": "{row}"}}' for row in rows]
        return packed(tmp_path / f"c{suffix}", ("\n".join(lines) + "\n").encode(encoding))

    late = ["plain " * 100] * 1000 + ["Café número 河水"]  # the first letters beyond ASCII stand far behind
    assert texts(write(late, "utf-8"), encoding="cp1252") == late
    short = ["é", "ü", "Ã©", "€"]  # the third is sound UTF-8 by itself
    assert texts(write(short, "cp1252"), encoding="cp1252") == short
    assert texts(write(["河", "水"] * 50, "gb18030"), encoding="gb18030") == ["河", "水"] * 50


def test_a_letter_cut_by_the_first_look_is_no_wrong_letter(tmp_path: Path) -> None:
    for spare in range(4):
        path = packed(tmp_path / "c.jsonl", ('{"text": "' + "x" * spare + "河" * 200_000 + '"}\n').encode())
        assert texts(path, encoding="cp1252") == ["x" * spare + "河" * 200_000]
