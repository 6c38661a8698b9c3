"""Tables: columns in structs, with the same name or of any type; data frames."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import datasets
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_support import texts, texts_and_skipped
from support import write_jsonl

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents

ARTICLES: list[dict[str, Any]] = [
    {
        "url": f"u{number}",
        "meta": {"key": number + 10, "topic": {"name": f"t{number % 2}"}},
        "article": {"title": f"Title {number}", "body": f"The river rose {number}.", "year": 2000},
    }
    for number in range(3)
]


def _polars(rows: list[Any], path: Path) -> Any:
    return pytest.importorskip("polars").DataFrame(rows)


def _parquet(rows: list[Any], path: Path) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path / "rows.parquet")
    return path / "rows.parquet"


def _json(rows: list[Any], path: Path) -> Path:
    (path / "rows.json").write_text(json.dumps(rows, indent=1))
    return path / "rows.json"


SOURCES: dict[str, Callable[[list[Any], Path], Any]] = {
    "list": lambda rows, path: rows,
    "JSON lines": lambda rows, path: write_jsonl(path / "rows.jsonl", rows),
    "JSON": _json,
    "parquet": _parquet,
    "Arrow": lambda rows, path: pa.Table.from_pylist(rows),
    "pandas": lambda rows, path: pandas.DataFrame(rows),
    "pandas with Arrow": lambda rows, path: pa.Table.from_pylist(rows).to_pandas(types_mapper=pandas.ArrowDtype),
    "polars": _polars,
    "datasets": lambda rows, path: datasets.Dataset.from_list(rows),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_columns_in_structs_are_found_by_path(kind: str, tmp_path: Path) -> None:
    source = SOURCES[kind](ARTICLES, tmp_path)
    bodies = [article["article"]["body"] for article in ARTICLES]
    for _ in range(2):
        reader = read_documents(
            source, text_column="article.body", id_column="meta.key", label_column="meta.topic.name", metadata=True
        )
        documents = list(reader)
        assert [document.text for document in documents] == bodies
        assert [document.id for document in documents] == ["10", "11", "12"]
        assert [document.label for document in documents] == ["t0", "t1", "t0"]
        assert "from the column 'article.body'" in reader.report.summary()
        rest = {"url": "u1", "meta": {"topic": {"name": "t1"}}, "article": {"title": "Title 1", "year": 2000}}
        assert documents[1].metadata == rest, "without the text and the id, in the order of the source"
        assert list(documents[1].metadata) == list(rest)
    with pytest.raises(DataError, match="'article' holds "):
        texts(source)
    with pytest.raises(DataError, match=r"no column 'page\.body'"):
        texts(source, text_column="page.body")
    with pytest.raises(DataError, match=r"not a string|missing column"):
        texts(source, text_column="article.year")


def test_structs_without_the_text_are_counted() -> None:
    rows = [{"a": {"b": "One."}}, {"a": None}, {"a": {"c": 1}}, {"a": "b"}, {"a": {"b": 2}}]
    counts = {"missing column": 3, "not a string": 1}
    assert texts_and_skipped(rows, text_column="a.b") == (["One."], counts)
    table = pa.Table.from_pylist([{"a": {"b": "One."}}, {"a": None}])
    assert texts_and_skipped(table, text_column="a.b") == (["One."], {"missing column": 1})


TWICE = (("id", "status", "text", "status_2", "status", "text", ""), ("t1", "open", "One.", "x", "paid", "Two.", "-"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json", ".parquet", ""])
def test_columns_with_the_same_name_get_numbers(suffix: str, tmp_path: Path) -> None:
    path, table = tmp_path / f"rows{suffix}", pa.table([[value] for value in TWICE[1]], names=TWICE[0])
    pairs = ", ".join(f'"{name}": "{value}"' for name, value in zip(*TWICE, strict=True))
    written = {".jsonl": f"{{{pairs}}}\n", ".json": f"[\n{{{pairs}}}]"}
    mark = "\t" if suffix == ".tsv" else ","
    path.write_text(written.get(suffix, "\n".join(map(mark.join, TWICE))))
    if suffix == ".parquet":
        pq.write_table(table, path)
    (document,) = read_documents(path if suffix else table, metadata=True, label_column="status_3")
    assert (document.id, document.text, document.label) == ("t1", "One.", "paid")
    assert document.metadata == {"status": "open", "status_2": "x", "status_3": "paid", "text_2": "Two.", "": "-"}
    assert texts(path if suffix else table, text_column="text_2") == ["Two."]


@pytest.mark.parametrize("kind", SOURCES)
def test_by_far_the_longest_column_is_the_text(kind: str, tmp_path: Path) -> None:
    rows = [{"place": "Rome", "resume": f"Worked {number}. " * 200, "category": "Data Science"} for number in range(3)]
    assert texts(SOURCES[kind](rows, tmp_path)) == [row["resume"] for row in rows]
    rows[0]["category"] = "Half as long. " * 200
    with pytest.raises(DataError, match=r"Cannot tell .* place, resume, category"):
        texts(SOURCES[kind](rows, tmp_path))


def test_hive_folders_are_columns(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020" / "city=New%20York"
    folder.mkdir(parents=True)
    _parquet([{"text": "One."}], folder)
    write_jsonl(folder / "rows.jsonl", [{"text": "Two.", "year": 1999}])
    (folder / "a.txt").write_text("Three.")
    sources = [folder / "rows.parquet", folder / "rows.jsonl", tmp_path]
    found = [(one.text, one.metadata) for one in read_documents(sources, metadata=True)]
    assert [one.label for one in read_documents(sources, label_column="year")] == ["2020", "1999", "2020"]
    own = {"year": "2020", "city": "New York"}
    file = {"folder": "year=2020/city=New%20York", "file": "a"}
    assert found == [("One.", own), ("Two.", {**own, "year": 1999}), ("Three.", {**file, **own})]


def make_frame(library: str, rows: dict[str, list[Any]]) -> Any:
    if library == "pyarrow":
        return pa.table(rows)
    return pytest.importorskip(library).DataFrame(rows)


LIBRARIES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_data_frame(library: str) -> None:
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
def test_data_frame_column(library: str) -> None:
    column = make_frame(library, {"body": ["a", None, "c"]})["body"]
    reader = read_documents(column)
    for _ in range(2):
        assert [document.text for document in reader] == ["a", "c"]
    assert reader.report.skipped == {"not a string": 1}
    with pytest.raises(DataError, match=r"bare string, .*text_column='body'"):
        texts(column, text_column="body")


def test_odd_data_frames() -> None:
    odd = pandas.DataFrame({0: ["a", None, "c"], "day": pandas.to_datetime(["2020-01-01"] * 3)}, index=list("xyz"))
    reader = read_documents(odd)
    assert [(document.id, document.text) for document in reader] == [("0", "a"), ("2", "c")]
    assert reader.report.text_column == "0"
    reader = read_documents(pandas.DataFrame({"text": ["a", 3, "c"], "id": [3.0, "x", pandas.NaT]}))
    assert [(document.id, document.text) for document in reader] == [("3", "a"), ("2", "c")]
    assert (reader.report.skipped, reader.report.repaired) == ({"not a string": 1}, {"missing id": 1})
    nullable = pandas.DataFrame({"text": ["a", "b"], "class": pandas.array([1, None], dtype="Int64")})
    reader = read_documents(nullable, label_column="class")
    assert [document.label for document in reader] == ["1", None]
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    assert texts(twice, text_column="text_2") == ["b"]
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"for a LazyFrame, call collect"):
        read_documents(polars.DataFrame({"text": ["a"]}).lazy())


MIXED: list[list[Any]] = [
    [12, "14a"], [10**30, 1], [True, 1], [1j, None], [b"a", "b"], [{"a": 1}, {"a": "x"}],
    [datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 9)],
]  # fmt: skip


@pytest.mark.parametrize("values", MIXED, ids=str)
def test_mixed_columns_keep_their_values(values: list[Any]) -> None:
    frame = pandas.DataFrame({"body": ["a", "b"], "side": pandas.Series(values, dtype=object)})
    polars = pytest.importorskip("polars")
    column = polars.Series(values, dtype=polars.Int128 if values[0] == 10**30 else polars.Object)
    for source in (frame, polars.DataFrame({"body": ["a", "b"], "side": column})):
        assert texts(source) == ["a", "b"]
        assert [document.metadata["side"] for document in read_documents(source, metadata=True)] == values  # type: ignore


def test_pandas_periods_are_as_pandas_writes_them(tmp_path: Path) -> None:
    columns = {
        "month": pandas.Series(pandas.PeriodIndex(["2020-01", None], freq="M")),
        "quarter": pandas.Series(pandas.PeriodIndex(["2020Q1", "2021Q4"], freq="Q")),
    }
    rows = [{"month": "2020-01", "quarter": "2020Q1"}, {"month": None, "quarter": "2021Q4"}]
    frame = pandas.DataFrame({"text": ["a", "b"], **columns})
    pq.write_table(table := pa.Table.from_pandas(frame), tmp_path / "rows.parquet")
    arrays = [getattr(column.combine_chunks(), "storage", column) for column in table.columns]
    settings = [{"ARROW:extension:metadata": f'{{"freq": "{value}"}}'} for value in ("M", "Q-DEC")]
    fields = [pa.field(name, pa.int64(), metadata=value) for name, value in zip(columns, settings, strict=True)]
    unregistered = pa.table(arrays, pa.schema([pa.field("text", arrays[0].type), *fields]))  # if pandas is not imported
    for source in (frame, table, tmp_path / "rows.parquet", unregistered):
        assert [document.metadata for document in read_documents(source, metadata=True)] == rows
    for side in (columns["quarter"].astype("category"), pandas.Series([pandas.Period("2020Q1", "Q"), "2021Q4"])):
        read = read_documents(frame.assign(side=side), metadata=True)
        assert [document.metadata["side"] for document in read] == ["2020Q1", "2021Q4"]  # type: ignore


LATIN = pa.Array.from_buffers(pa.string(), 2, pa.array([b"Lyon", b"Orl\xe9ans"]).buffers())
DAYS = pa.array([0, 2932897], pa.int32()).view(pa.date32())
NAMES, FIRST = ["Lyon", "Orl\ufffdans"], datetime.date(1970, 1, 1)
TEXT, VALUE = "invalid characters removed or replaced", "value not usable"


@pytest.mark.parametrize(
    ("column", "values", "repaired"),
    [
        (LATIN, NAMES, {TEXT: 1}),
        (LATIN.dictionary_encode(), NAMES, {TEXT: 1}),
        (pa.ListArray.from_arrays([0, 1, 2], LATIN), [[name] for name in NAMES], {TEXT: 1}),
        (DAYS, [FIRST, None], {VALUE: 1}),
        (pa.array([0, 2**62]).view(pa.timestamp("us")), [datetime.datetime(1970, 1, 1), None], {VALUE: 1}),
        (pa.array([0, 2**62]).view(pa.duration("s")), [datetime.timedelta(0), None], {VALUE: 1}),
        (pa.array([0, 1]).view(pa.timestamp("us", "Mars/Crater")), [None, None], {VALUE: 2}),
        (
            pa.StructArray.from_arrays([LATIN, DAYS], ["town", "day"]),
            [{"town": "Lyon", "day": FIRST}, {"town": "Orl\ufffdans", "day": None}],
            {TEXT: 1, VALUE: 1},
        ),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)  # fmt: skip
def test_values_that_python_cannot_hold_are_counted(column: Any, values: list[Any], repaired: dict[str, int]) -> None:
    reader = read_documents(pa.table({"text": ["a", "b"], "side": column}), metadata=True)
    assert [(document.text, document.metadata["side"]) for document in reader] == [*zip("ab", values, strict=True)]  # type: ignore
    assert reader.report.repaired == repaired
    assert "1: side" in next(iter(reader.report.examples.values()))[-1]


def test_texts_and_ids_that_are_no_utf8_are_mended(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": LATIN, "id": LATIN}), tmp_path / "rows.parquet")
    reader = read_documents(tmp_path / "rows.parquet", label_column="id")
    assert [(document.id, document.text, document.label) for document in reader] == [(name,) * 3 for name in NAMES]
    assert reader.report.repaired == {TEXT: 1}


COLUMNS = {
    "string": (pa.array(["word"]), True),
    "large": (pa.array(["word"], pa.large_string()), True),
    "view": (pa.array(["word"], pa.string_view()), True),
    "dictionary": (pa.array(["word"]).dictionary_encode(), True),
    "repeated": (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["word"])), True),
    "bytes": (pa.array([b"word"]), False),
    "list": (pa.array([["word"]]), False),
    "struct": (pa.array([{"text": "word"}]), False),
    "number": (pa.array([1]), False),
    "nothing": (pa.nulls(1), False),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["text", "abstract", "other"])
def test_arrow_column_types_are_read_or_named(kind: str, name: str) -> None:
    column, is_text = COLUMNS[kind]
    source = pa.table({name: column, "further": [1], "__index_level_0__": ["x"]})
    if is_text:
        [document] = read_documents(source, metadata=True)
        assert (document.text, document.metadata) == ("word", {"further": 1}), "the index of pandas is no column"
    else:
        with pytest.raises(DataError, match=re.escape(f"{name!r} holds {column.type}. Its columns")):
            texts(source, text_column=name)


def test_ids_may_be_uuids_decimals_or_dates() -> None:
    ids = [UUID(int=7), Decimal("1.50"), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3), b"no"]
    reader = read_documents([{"id": each, "text": "a"} for each in ids])
    assert [document.id for document in reader] == [
        "00000000-0000-0000-0000-000000000007", "1.50", "2020-01-02", "2020-01-02 03:00:00", "4"
    ]  # fmt: skip
    assert reader.report.repaired == {"missing id": 1}
