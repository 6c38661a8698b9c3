"""Tables of every form: sound ones, damaged ones, and which of their columns are read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_support import packed, texts

from simlte_st.data import tables
from simlte_st.data.columns import Columns, RawRow, Row, Skip, read_table
from simlte_st.data.documents import read_documents
from simlte_st.data.streams import BrokenSourceError
from simlte_st.data.tables import mappings_table, open_table, table_suffix
from simlte_st.errors import DataError, EmptyCorpusError


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        ("a.jsonl", ".jsonl"),
        ("a.b.JSON.gz", ".json"),
        ("a.csv.zst", ".csv"),
        ("a.parquet", ".parquet"),
        ("a.parquet.gz", None),
        ("a.txt", None),
        ("a", None),
        (".gz", None),
    ],
)
def test_suffixes(name: str, suffix: str | None) -> None:
    assert table_suffix(Path(name)) == suffix


def test_columns_of_lines_are_those_of_the_first_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"a": 1}, {"b": 2}, *({"a": n} for n in range(200)), {"c": 3}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = open_table(path, "utf-8", 1000)
    assert table.columns == ["a", "b"]
    assert table.strings == []
    assert [row.values for row in table.rows(["a"], ()) if isinstance(row, RawRow)] == rows


def test_rows_before_a_break_are_given_first() -> None:
    def rows() -> Iterator[RawRow | Skip]:
        yield Skip("line 1", "malformed JSON")
        yield RawRow("line 2", "1", {"a": 1})
        raise BrokenSourceError("cut off")

    table = mappings_table("source", rows())
    assert table.columns == ["a"]
    given = []
    with pytest.raises(BrokenSourceError, match="cut off"):
        given.extend(row.where for row in table.rows(["a"], ()))
    assert given == ["line 1", "line 2"]


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.txt is no table: its name should end in \.jsonl"):
        open_table(tmp_path / "a.txt", "utf-8", 1000)


def test_rows_after_endless_skips_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOOK_AHEAD_SKIPS", 3)

    def rows() -> Iterator[RawRow | Skip]:
        yield from (Skip(f"line {number}", "malformed row") for number in range(5))
        yield RawRow("line 5", "5", {"a": 1, "text": "one"})

    events = list(read_table(mappings_table("source", rows(), header=["a", "text"]), Columns()))
    assert [type(event) for event in events] == [Columns, *[Skip] * 3, Row, *[Skip] * 2]
    assert [event.text for event in events if isinstance(event, Row)] == ["one"]
    counted = [
        event.reason for event in read_table(mappings_table("source", rows()), Columns()) if isinstance(event, Skip)
    ]
    assert counted == ["malformed row"] * 5


# CSV and TSV


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
    assert reader.report.skipped == {
        "wrong number of fields": 2,
        "wrong encoding": 2,
        "malformed row": 2,
        "empty": 1,
    }
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


def test_unusable_csv_headers(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("text,text\na,b\n")
    with pytest.raises(DataError, match="more than one column called 'text'"):
        texts(path)
    path.write_bytes(b"caf\xe9,text\na,b\n")
    with pytest.raises(DataError, match=r"header.*not valid utf-8.*--encoding"):
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


# Parquet


def test_parquet_reads_the_needed_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.parquet"
    number = 1000
    table = pa.table({"doc_id": list(range(number)), "text": [f"t{n}" for n in range(number)], "big": ["x"] * number})
    pq.write_table(table, path, row_group_size=300)
    asked: list[list[str]] = []
    original = pq.ParquetFile.iter_batches

    def spy(self: Any, *args: Any, **settings: Any) -> Any:
        asked.append(settings["columns"])
        return original(self, *args, **settings)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [(str(n), f"t{n}") for n in range(number)]
    assert asked == [["text", "doc_id"]]
    assert reader.report.id_column == "doc_id"


def test_parquet_rows_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    bad = pa.Array.from_buffers(
        pa.string(), 4, [None, pa.py_buffer(b"".join(n.to_bytes(4, "little") for n in (0, 1, 3, 3, 4))),
                         pa.py_buffer(b"a\xff\xfez")],
    )  # fmt: skip
    pq.write_table(pa.table({"text": bad}), path)
    reader = read_documents(path)
    assert [(document.id, document.text) for document in reader] == [("0", "a"), ("3", "z")]
    assert reader.report.skipped == {"wrong encoding": 1, "empty": 1}
    pq.write_table(pa.table({"text": ["a", None]}), path)
    reader = read_documents(path)
    assert len(list(reader)) == 1
    assert reader.report.skipped == {"not a string": 1}


def test_parquet_columns_and_labels(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"n": [1], "review": pa.array(["good"]).dictionary_encode()}), path)
    assert texts(path) == ["good"]
    with pytest.raises(DataError, match=r"no column 'body'.*n, review"):
        texts(path, text_column="body")
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])})
    datasets.Dataset.from_dict({"text": ["a", "b"], "label": [1, 0]}, features=features).to_parquet(str(path))
    assert [document.label for document in read_documents(path, label_column="label")] == ["yes", "no"]


WRONG_TYPES = {
    "numbers": pa.array([1, 2]),
    "bytes": pa.array([b"a", b"\xff"]),
    "lists": pa.array([["a"], ["b"]]),
    "mappings": pa.array([{"text": "a"}, {"text": "b"}]),
    "nothing": pa.nulls(2),
    "times": pa.array([1, 2], pa.timestamp("us")),
    "classes": pa.array([1, 1]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", WRONG_TYPES)
def test_parquet_columns_that_hold_no_text(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": WRONG_TYPES[kind]}), path)
    with pytest.raises(EmptyCorpusError, match="skipped 2: 2 not a string"):
        texts(path, text_column="text")
    pq.write_table(pa.table({"body": WRONG_TYPES[kind]}), path)
    with pytest.raises(DataError, match=r"Cannot tell which column.*those that hold strings: none"):
        texts(path)


def test_a_truncated_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    pq.write_table(pa.table({"text": [os.urandom(50).hex() for _ in range(500)]}), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"c\.parquet is truncated"):
        texts(path)


def test_a_parquet_file_broken_in_a_later_row_group(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    values = [os.urandom(50).hex() for _ in range(1000)]
    pq.write_table(pa.table({"text": values}), path, row_group_size=500, compression="snappy", use_dictionary=False)
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    reader = read_documents(path)
    read: list[str] = []
    with pytest.raises(DataError, match=r"; (384|500) documents had been read before"):
        read.extend(document.text for document in reader)


# Data sets

FEATURES = datasets.Features(
    {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"]), "n": datasets.Value("int64")}
)
ROWS = {"text": ["a", "b", "c"], "label": [1, 0, -1], "n": [1, 2, 3]}


@pytest.mark.parametrize("streaming", [False, True])
def test_a_dataset(streaming: bool) -> None:
    dataset = datasets.Dataset.from_dict(ROWS, features=FEATURES)
    source = dataset.to_iterable_dataset() if streaming else dataset.with_format("numpy")
    reader = read_documents(source, label_column="label")
    for _ in range(2):
        assert [(document.id, document.text, document.label) for document in reader] == [
            ("0", "a", "yes"),
            ("1", "b", "no"),
            ("2", "c", None),
        ]
    with pytest.raises(DataError, match=r"no column 'body'.*text, label, n"):
        texts(source, text_column="body")


def test_a_stream_without_features() -> None:
    source = datasets.IterableDataset.from_generator(lambda: iter([{"id": "x", "body": "a"}, {"id": "y", "body": 1}]))
    assert source.features is None
    reader = read_documents(source)
    assert [(document.id, document.text) for document in reader] == [("x", "a")]
    assert reader.report.skipped == {"not a string": 1}
    assert len(list(reader)) == 1


# Data frames


def make_frame(library: str, rows: dict[str, list[Any]]) -> Any:
    if library == "pyarrow":
        return pa.table(rows)
    return pytest.importorskip(library).DataFrame(rows)


LIBRARIES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_data_frame(library: str) -> None:
    frame = make_frame(library, {"doc_id": [7, 8, 9], "n": [1, 2, 3], "body": ["a", None, "c"], "class": [1, 0, None]})
    reader = read_documents(frame, label_column="class")
    for _ in range(2):
        assert [(document.id, document.text) for document in reader] == [("7", "a"), ("9", "c")]
        assert reader.report.skipped == {"not a string": 1}
    assert [document.label for document in reader][1] is None
    assert (reader.report.text_column, reader.report.id_column) == ("body", "doc_id")
    with pytest.raises(DataError, match=r"no column 'nope'.*doc_id, n, body, class"):
        texts(frame, text_column="nope")
    with pytest.raises(DataError, match=r"hold strings: a, b\."):
        texts(make_frame(library, {"a": ["x"], "b": ["y"], "n": [1]}))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_column_of_a_data_frame(library: str) -> None:
    column = make_frame(library, {"body": ["a", None, "c"]})["body"]
    reader = read_documents(column)
    for _ in range(2):
        assert [document.text for document in reader] == ["a", "c"]
    assert reader.report.skipped == {"not a string": 1}
    with pytest.raises(DataError, match=r"bare string, which has no columns, so text_column='body'"):
        texts(column, text_column="body")


def test_other_columns_of_strings() -> None:
    dataset = datasets.Dataset.from_dict({"body": ["a", "b"]})
    for column in (dataset["body"], dataset.to_iterable_dataset()["body"], np.array(["a", "b"])):
        assert texts(column) == ["a", "b"]
        assert {type(text) for text in texts(column)} == {str}


def test_odd_data_frames() -> None:
    mixed = pandas.DataFrame({0: ["a", 3, "c"], "day": pandas.to_datetime(["2020-01-01"] * 3)}, index=list("xyz"))
    reader = read_documents(mixed)
    assert [(document.id, document.text) for document in reader] == [("0", "a"), ("2", "c")]
    assert reader.report.text_column == "0"
    nullable = pandas.DataFrame({"text": ["a", "b"], "class": pandas.array([1, None], dtype="Int64")})
    reader = read_documents(nullable, label_column="class")
    assert [document.label for document in reader] == ["1", None]
    assert reader.report.repaired == {}
    assert texts(pandas.DataFrame({"text": pandas.Categorical(["a", "b", "a"])})) == ["a", "b", "a"]
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    with pytest.raises(DataError, match="more than one column called 'text'"):
        texts(twice)
    with pytest.raises(EmptyCorpusError, match="the DataFrame holds no usable document"):
        texts(pandas.DataFrame({"text": []}))
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"LazyFrame is no source.*collect a LazyFrame"):
        read_documents(polars.DataFrame({"text": ["a"]}).lazy())


def test_a_small_parquet_file_does_not_take_the_memory_of_what_it_unpacks_to(tmp_path: Path) -> None:
    repeated, packed = tmp_path / "repeated.parquet", tmp_path / "packed.parquet"
    pq.write_table(pa.table({"text": ["a" * 1_000_000] * 500}), repeated)
    pq.write_table(pa.table({"text": ["a" * 150_000_000]}), packed, compression="zstd")
    assert repeated.stat().st_size + packed.stat().st_size < 100_000
    code = f"""
import resource
from simlte_st.data import read_documents
from simlte_st.errors import DataError, EmptyCorpusError
import pyarrow.parquet
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path, kind in (({str(repeated)!r}, EmptyCorpusError), ({str(packed)!r}, DataError)):
    try:
        list(read_documents(path, max_characters=1000))
        raise SystemExit("it was read")
    except kind as error:
        print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, "MiB more")
"""
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert "skipped 500: 500 too long" in out
    assert "would unpack to 150,000,0" in out
    assert int(out.splitlines()[-1].split()[0]) < 60


def test_an_archive_called_a_table_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(b"name" + bytes(90) + b",size\nsome text,1\n")
    with pytest.raises(DataError, match=r"header of .*c\.csv cannot be read: it has NUL characters"):
        texts(path)
