"""CSV and TSV files: sound ones and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_support import packed, texts

from simlte_st.data.documents import read_documents
from simlte_st.data.tables import UntypedText
from simlte_st.errors import DataError, EmptyCorpusError


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz"])
def test_separated_values(tmp_path: Path, suffix: str) -> None:
    mark = "," if ".csv" in suffix else "\t"
    data = f'id{mark} text {mark}n\na{mark}"one, ""quoted""\nsecond\tline"{mark}1\r\nb{mark}two{mark}2\n'
    reader = read_documents(packed(tmp_path / f"c{suffix}", data.encode()), label_column="n")
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
    assert reader.report.ignored == {"blank line": 1}
    assert reader.report.repaired == {"NUL characters removed": 1}
    assert reader.report.examples["wrong number of fields"] == ["line 3: 1 instead of 2", "line 4: 3 instead of 2"]
    assert reader.report.examples["wrong encoding"][1].startswith("lines 8 to 9: ")
    # what an unclosed quote swallowed is told by its lines
    assert reader.report.examples["malformed row"][1].startswith("lines 13 to 1")


def test_the_only_csv_column_with_words_is_the_text(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("stars,review\n5,good\n1.5,bad\n")
    assert texts(path) == ["good", "bad"]
    path.write_text("title,review\na,good\n")
    with pytest.raises(DataError, match="title, review"):
        texts(path)


@pytest.mark.parametrize(("name", "mark"), [("c.csv", ";"), ("c.csv", "\t"), ("c.csv", "|"), ("c.tsv", ",")])
def test_other_separators(tmp_path: Path, name: str, mark: str) -> None:
    (tmp_path / name).write_text(f'id{mark}text\nx{mark}"a{mark} b"\ny{mark}c\n')
    assert texts(tmp_path / name) == [f"a{mark} b", "c"]


@pytest.mark.parametrize("mark", [";", ",", "\t", "|"])
@pytest.mark.parametrize("name", ["c.csv", "c.tsv"])
def test_the_line_by_which_excel_is_told_what_separates(tmp_path: Path, name: str, mark: str) -> None:
    path = tmp_path / name
    path.write_bytes(f"\ufeffSEP={mark}\r\nid{mark}text\r\na{mark}The river rose.\r\nb\r\n".encode())
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("a", "The river rose.")]
    assert "line 4" in reader.report.summary(), "counted from the first line of the file"


def test_unusable_csv_headers(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("text,text\na,b\n")
    with pytest.raises(DataError, match=r"more than one .*'text'"):
        texts(path)
    path.write_bytes(b"caf\xe9,text\na,b\n")
    with pytest.raises(DataError, match=r"header.*utf-8.*encoding="):
        texts(path)
    path.write_text("text,n\na,1\n")
    with pytest.raises(DataError, match=r"no column 'body'.*text, n"):
        texts(path, text_column="body")
    path.write_text("")
    with pytest.raises(EmptyCorpusError):
        texts(path)
    path.write_bytes(b"title,review\ncaf\xe9,good\n")  # not that the columns cannot be told, which the encoding hides
    with pytest.raises(EmptyCorpusError, match="1 wrong encoding"):
        texts(path)


def test_an_archive_called_a_table_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    pq.write_table(pa.table({"text": ["some text", "another"]}), tmp_path / "t.parquet")
    for data in (b"name" + bytes(90) + b",size\nsome text,1\n", (tmp_path / "t.parquet").read_bytes(), b"PK\x03\x04\n"):
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"header of .*c\.csv .*control characters"):
            texts(path)


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.jsonl"])
def test_lines_that_end_in_carriage_returns_alone(tmp_path: Path, name: str) -> None:
    mark = "\t" if "tsv" in name else ","
    lines = [f"id{mark}text", f"1{mark}Old mac línea.", f'2{mark}"Another{mark} one."']
    if "jsonl" in name:
        lines = ['{"text": "Old mac línea."}', '{"text": "Another, one."}']
    (tmp_path / name).write_bytes("\r".join([*lines, ""]).encode())
    assert texts(tmp_path / name) == ["Old mac línea.", f"Another{mark if 'json' not in name else ','} one."]
    (tmp_path / name).write_bytes("\r".join(lines).encode("cp1252"))
    assert texts(tmp_path / name, encoding="cp1252")[0] == "Old mac línea."


@pytest.mark.parametrize(
    "lines",
    [
        ["a,The river rose in March and fell.", "b,Prices fell again."],
        ["1,great film", "2,poor film"],
        ["pos,great film", "neg,poor film", "pos,long film"],
        ["2020-01-02,good", "2020-01-03,bad"],
        ["The river rose in March.", "Prices fell again."],
        [f"{'word ' * 50},x", "b,y"],
    ],
)
def test_a_csv_without_a_header_is_an_error_that_says_what_to_do(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "c.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"first row of .*c\.csv .*text_column="):
        texts(path)
    column = lines[0].split(",")[-1]
    rest = [line.split(",")[-1] for line in lines[1:]]
    assert texts(path, text_column=column) == rest, "the user knows better"


@pytest.mark.parametrize(
    "lines",
    [
        ["stars,review", "5,good", "1,bad"],
        ["2019,2020,comment", "1,2,good"],
        [",text", "0,a", "1,b"],
        ["How do you like it? Please explain,x", "It is good,1"],
        ["review", "good", "review", "bad"],
        ["id,text", "id,a"],
    ],
)
def test_headers_are_no_data(tmp_path: Path, lines: list[str]) -> None:
    (tmp_path / "c.csv").write_text("\n".join(lines))
    assert len(texts(tmp_path / "c.csv")) == len(lines) - 1


def test_values_of_other_columns_have_no_type(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("text,version\na,1.10\n")
    (document,) = read_documents(tmp_path / "c.csv", metadata=True)
    assert document.metadata == {"version": "1.10"}
    assert isinstance(document.metadata["version"], UntypedText)
    (tmp_path / "c.jsonl").write_text('{"text": "a", "version": "1.10"}')
    (document,) = read_documents(tmp_path / "c.jsonl", metadata=True)
    assert document.metadata is not None
    assert type(document.metadata["version"]) is str
