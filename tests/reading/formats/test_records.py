"""Intact and damaged CSV, TSV, JSON and JSON lines files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from reading_support import texts, texts_and_skipped, write_packed

from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.reading.document import UntypedText, content_id
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


def test_stray_quotation_marks_in_tsv_are_text(tmp_path: Path) -> None:
    rows = [("a", '"One'), ("b", "two"), ("c", 'three" and'), ("d", '"Four" and'), ("e", '"five')]
    (tmp_path / "rows.tsv").write_text("id\ttext\n" + "\n".join(map("\t".join, rows)))
    reader = read_documents(tmp_path / "rows.tsv")
    assert [(document.id, document.text) for document in reader] == rows
    assert reader.report.repaired == {"quotation marks kept, because they enclose no cell": 5}
    lines = write_packed(tmp_path / "rows.jsonl", b'[\n{"text": "One."},\n{"text": "Two."}\n]')
    assert texts(lines) == ["One.", "Two."]


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".jsonl.gz", ".jsonl.zst", ".JSONL.GZ"])
def test_json_lines(tmp_path: Path, suffix: str) -> None:
    rows = [{"id": f"d{number}", "text": f"tëxt {number}"} for number in range(300)]
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path = tmp_path / f"c{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.lower().endswith("gz") else data)
    if suffix.endswith(".zst"):
        write_packed(path, data)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(row["id"], row["text"]) for row in rows]
    assert (reader.report.text_column, reader.report.id_column) == ("text", "id")


def test_bad_json_lines_are_counted_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b'{"text": "one"}\n'
        b'{"text": "cut\n'
        b'"a bare string"\n'
        b"[1]\n"
        b"\n"
        b'{"text": "caf\xe9"}\n'
        b'{"other": 1}\n' + b"[" * 200_000 + b"\n" + b'{"text": ' + b"9" * 5000 + b"}\n"
        b'{"text": "two"}'
    )
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "one"), ("9", "two")]
    assert reader.report.skipped == {"malformed JSON": 3, "not an object": 2, "wrong encoding": 1, "missing column": 1}
    assert reader.report.examples["malformed JSON"][0].startswith("line 2: ")
    assert reader.report.examples["not an object"] == ["line 3: a JSON str", "line 4: a JSON list"]


@pytest.mark.parametrize("indent", [None, 1])
def test_array_of_objects_is_a_table(tmp_path: Path, indent: int | None) -> None:
    rows = [{"id": f"d{number}", "body": f"tëxt {number}", "kind": "x"} for number in range(300)]
    (tmp_path / "a.json").write_text(json.dumps(rows, indent=indent))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(rows, ensure_ascii=False, indent=indent).encode()))
    (tmp_path / "c.JSON").write_text("\n" + json.dumps(rows, indent=indent), encoding="utf-16")
    for path in tmp_path.iterdir():
        reader = read_documents(path, label_column="kind")
        assert [(item.id, item.text, item.label) for item in reader] == [(row["id"], row["body"], "x") for row in rows]
        assert reader.report.text_column == "body"


def test_array_of_strings_is_a_list_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('["one two",\n "three", 4, null]')
    reader = read_documents(tmp_path / "a.json")
    assert [(item.id, item.text) for item in reader] == [(content_id(text), text) for text in ("one two", "three")]
    assert reader.report.skipped == {"not a string": 2}
    with pytest.raises(DataError, match=r"item 0 of .*a\.json .*bare string"):
        texts(tmp_path / "a.json", text_column="body")


def test_json_lines_in_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('\n{"text": "a"}\n{cut\n{"text": "b"}')
    assert texts_and_skipped(tmp_path / "a.json") == (["a", "b"], {"malformed JSON": 1})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{\n "data": [], "version": 1\n}', r"contains a single dict\. Make .* jq -c '\.\[\"data\"\]\[\]'"),
        ('[{"text": "a"},', "valid JSON: "),
        ("[" * 100_000, "valid JSON: "),
        (b'["caf\xe9"]', "wrong encoding"),
        (b'["\0"]', "binary"),
        ("[[1], [2]]", "no usable document.*\n.*not a string"),
        ('{"@context": "x", "value": [{"id": 1, "text": "a"}]}', "contains a single dict"),
    ],
)  # fmt: skip
def test_other_json_is_an_error(tmp_path: Path, content: Any, told: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=told):
        texts(path)
