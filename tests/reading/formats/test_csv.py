"""Intact and damaged CSV and TSV files."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading_support import texts, write_packed

from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.document import UntypedText
from simlte_st.reading.documents import read_documents


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz"])
def test_csv_and_tsv_are_read(tmp_path: Path, suffix: str) -> None:
    mark = "," if ".csv" in suffix else "\t"
    data = f'id{mark} text {mark}n\na{mark}"one, ""quoted""\nsecond\tline"{mark}1\r\nb{mark}two{mark}2\n'
    reader = read_documents(write_packed(tmp_path / f"c{suffix}", data.encode()), label_column="n")
    assert [(document.id, document.text, document.label) for document in reader] == [
        ("a", 'one, "quoted"\nsecond\tline', "1"),
        ("b", "two", "2"),
    ]


def test_bad_csv_rows_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(
        b"text,n\none,1\ntoo few\ntoo,many,2\n\ncaf\xe9,3\n"
        b'"bad"quote,4\n"lines\n\xe9",5\n,6\nnul\0,7\ntwo,8\n"never closed,9\nthree,10\n'
    )
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "one"), ("7", "nul"), ("8", "two")]
    assert reader.report.skipped == {"wrong number of fields": 2, "wrong encoding": 2, "malformed row": 2, "empty": 1}
    assert reader.report.repaired == {"invalid characters removed or replaced": 1}
    assert reader.report.examples["wrong number of fields"] == ["line 3: 1 instead of 2", "line 4: 3 instead of 2"]
    assert reader.report.examples["wrong encoding"][1].startswith("lines 8 to 9: ")
    # the lines that an unclosed quote swallowed are reported
    assert reader.report.examples["malformed row"][1].startswith("lines 13 to 1")


def test_only_csv_column_with_words_is_the_text(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("stars,review\n5,good\n1.5,bad\n")
    assert texts(path) == ["good", "bad"]
    path.write_text("title,review\na,good\n")
    with pytest.raises(DataError, match="title, review"):
        texts(path)


@pytest.mark.parametrize(
    ("name", "rows", "expected"),
    [
        *(("c.csv", f'id{mark}text\nx{mark}"a{mark} b"\ny{mark}c\n', [f"a{mark} b", "c"]) for mark in ";\t|"),
        ("c.tsv", "id,text\nx,a\n", ["a"]),
        ("c.csv ", "sep=;\nid;text\nx;a\n", ["a"]),
        ("c.csv", "# made by a tool\n,\n# and me\nid,text\nx,a\n", ["a"]),
        ("c.csv", "#text\na\n", ["a"]),
        ("c.csv", "id,text\nx,a,,\ny,b,\n", ["a", "b"]),
        ("c.csv", 'id,text\rx,a\ry,"b\rc"\r', ["a", "b\rc"]),
        ("c.csv", "text,Text,n\na,b,1\n", ["a"]),
        ("c.csv", "id;amount, EUR;text\n1;1,50;one; \n2;2,50;two\n", ["two"]),
        ("c.csv", "id,text,note; x\n1,one;two,3\n2,three,4\n", ["one;two", "three"]),
        ("c.csv", 'text,"a;b|c"\n"one\n; two",1\n', ["one\n; two"]),
    ],
)
def test_delimiter_is_detected(tmp_path: Path, name: str, rows: str, expected: list[str]) -> None:
    (tmp_path / name).write_text(rows)
    assert texts(tmp_path / name) == expected


def test_unusable_csv_headers(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"caf\xe9,text\na,b\n")
    with pytest.raises(DataError, match=r"header.*utf-8.*encoding="):
        texts(path)
    path.write_text("text,n\na,1\n", "utf-16-le")
    with pytest.raises(DataError, match=r"header.*NUL bytes.*encoding="):
        texts(path)
    path.write_text("")
    with pytest.raises(EmptyCorpusError):
        texts(path)


def test_values_are_untyped_and_leading_blank_lines_skipped(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("\n\ntext,version\na,1.10\n")
    (document,) = read_documents(tmp_path / "c.csv", metadata=True)
    assert document.metadata == {"version": "1.10"}
    assert isinstance(document.metadata["version"], UntypedText)
