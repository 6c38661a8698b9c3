"""Arrow tables and data frames: their columns by type, and their rows as Python values."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import datasets
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading_support import texts

from simlte_st.data.arrow import _is_text
from simlte_st.data.documents import read_documents
from simlte_st.errors import DataError, EmptyCorpusError

FLAT: dict[pa.DataType, list[Any]] = {
    pa.null(): [None],
    pa.bool_(): [True],
    pa.int8(): [1],
    pa.uint64(): [2**63],
    pa.float16(): [1.0],
    pa.float64(): [1.5],
    pa.decimal128(10, 2): [1],
    pa.decimal256(50, 2): [1],
    pa.date32(): [1],
    pa.time64("ns"): [1],
    pa.timestamp("ns", "UTC"): [1],
    pa.duration("ns"): [1],
    pa.month_day_nano_interval(): [(1, 2, 3)],
    pa.binary(): [b"a\xff"],
    pa.large_binary(): [b"a"],
    pa.binary(2): [b"ab"],
    pa.binary_view(): [b"a"],
    pa.uuid(): [bytes(16)],
    pa.json_(): ["{}"],
    pa.string(): ["word"],
    pa.large_string(): ["word"],
    pa.string_view(): ["word"],
}


@st.composite
def columns(draw: st.DrawFn, depth: int = 2) -> pa.Array:
    """A column of one row, or nothing in it."""
    kind = draw(st.sampled_from(list(FLAT)))
    column = pa.array([None] if draw(st.booleans()) and kind != pa.null() else FLAT[kind], kind)
    for _ in range(draw(st.integers(0, depth))):
        wrap = draw(st.sampled_from(("dictionary", "list", "large_list", "struct", "map", "repeated")))
        if wrap == "dictionary" and not pa.types.is_nested(column.type):
            indices = pa.array([0], pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, column)
        elif wrap == "repeated":
            column = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), column)
        elif wrap == "struct":
            column = pa.StructArray.from_arrays([column], ["text"])
        elif wrap == "map":
            column = pa.MapArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["k"]), column)
        else:
            kind_of_list = pa.ListArray if wrap == "list" else pa.LargeListArray
            column = kind_of_list.from_arrays([0, 1], column)
    return column


@settings(max_examples=300)
@given(column=columns(), other=columns(), name=st.sampled_from(("text", "abstract", "other")), on_disk=st.booleans())
def test_a_column_of_any_type_is_read_or_named(
    column: pa.Array, other: pa.Array, name: str, on_disk: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    value = column[0].as_py() if _is_text(column.type) else None
    source: Any = pa.table({name: column, "further": other, "id": [7]})
    if on_disk:
        path = tmp_path_factory.getbasetemp() / "any.parquet"
        try:
            pq.write_table(source, path)
            source, column = path, pq.read_schema(path).field(name)
        except (pa.ArrowException, OSError, TypeError):  # pyarrow cannot write the column, or not read it back
            return
    reader = read_documents(source, text_column=name, metadata=True)
    if not _is_text(column.type):
        with pytest.raises(DataError, match=re.escape(f"holds {column.type}, not text")) as error:
            list(reader)
        assert f"The column {name!r} of" in str(error.value)
    elif value is None:
        with pytest.raises(EmptyCorpusError, match="1 not a string"):
            list(reader)
    else:
        (document,) = reader
        assert (document.id, document.text) == ("7", value)
        assert document.metadata is not None
        assert list(document.metadata) == ["further"]
        assert f"from the column {name!r}" in reader.report.summary()


def test_bytes_under_a_known_name_are_an_error_and_no_other_column_is_taken(tmp_path: Path) -> None:
    table = pa.table({"key": ["a", "b"], "abstract": [b"The river rose.", b"Prices fell."]})
    pq.write_table(table, tmp_path / "c.parquet")
    for source in (tmp_path / "c.parquet", table):
        with pytest.raises(DataError, match=r"'abstract' of .* binary, .*strings: key\."):
            list(read_documents(source))
        assert [document.text for document in read_documents(source, text_column="key")] == ["a", "b"]


def test_the_report_names_the_columns_of_all_sources(tmp_path: Path) -> None:
    pq.write_table(pa.table({"abstract": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("body\nb\n")
    (tmp_path / "c.txt").write_text("c")
    reader = read_documents([tmp_path / "a.parquet", tmp_path / "b.csv", tmp_path / "c.txt"])
    assert len(list(reader)) == 3
    assert re.search("from the columns 'abstract', 'body'", reader.report.summary())


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
    with pytest.raises(DataError, match=r"bare string, .*text_column='body'"):
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
    with pytest.raises(DataError, match=r"more than one .*'text'"):
        texts(twice)
    with pytest.raises(EmptyCorpusError, match=r"DataFrame .*no usable document"):
        texts(pandas.DataFrame({"text": []}))
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"collect a LazyFrame"):
        read_documents(polars.DataFrame({"text": ["a"]}).lazy())


VALUES = ["One here.", "Two there."]


def test_text_is_known_by_its_type_in_pandas() -> None:
    arrow = pandas.ArrowDtype
    kinds = [
        pandas.Series(VALUES, dtype="object"),
        pandas.Series(VALUES, dtype="string[python]"),
        pandas.Series(VALUES, dtype="string[pyarrow]"),
        pandas.Series(VALUES, dtype=arrow(pa.large_string())),
        pandas.Series(VALUES, dtype=arrow(pa.dictionary(pa.int32(), pa.string()))),
        pandas.Series(VALUES, dtype="category"),
        pandas.Series(pandas.Categorical(VALUES, categories=pandas.Index(VALUES, dtype="string[pyarrow]"))),
    ]
    for column in kinds:
        for name in ("review", "abstract"):
            reader = read_documents(pandas.DataFrame({"n": [1, 2], name: column}))
            assert [document.text for document in reader] == VALUES, column.dtype
            assert re.match(rf"read 2 documents \(19 .* '{name}'$", reader.report.summary())
    for column, kind in (
        (pandas.Series([b"a", b"b"]), "bytes values"),
        (pandas.Series([b"a", b"b"], dtype=arrow(pa.binary())), r"binary\[pyarrow\]"),
        (pandas.Series([1, 2], dtype="category"), "int64"),
        (pandas.Series([None, None], dtype="object"), "nothing"),
        (pandas.Series([True, False]), "bool"),
    ):
        with pytest.raises(DataError, match=f"'abstract' .*{kind}, not text"):
            texts(pandas.DataFrame({"key": ["a", "b"], "abstract": column}))


def test_text_is_known_by_its_type_in_polars() -> None:
    polars = pytest.importorskip("polars")
    for dtype in (polars.String, polars.Categorical, polars.Enum(VALUES), polars.Object):
        frame = polars.DataFrame({"n": [1, 2], "review": polars.Series(VALUES, dtype=dtype)})
        assert texts(frame) == VALUES, dtype
    for values, dtype, kind in (
        ([b"a", b"b"], polars.Binary, "Binary"),
        ([["a"], ["b"]], polars.List(polars.String), r"List\(String\)"),
        ([b"a", b"b"], polars.Object, "bytes values"),
    ):
        frame = polars.DataFrame({"key": ["a", "b"], "body": polars.Series(values, dtype=dtype)})
        with pytest.raises(DataError, match=f"'body' .*{kind}, not text"):
            texts(frame)


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"review": VALUES, "n": [1, 2]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "c.parquet")
    table = pq.read_table(tmp_path / "c.parquet")
    assert "__index_level_0__" in table.column_names
    sources = [tmp_path / "c.parquet", table, datasets.Dataset(table), pytest.importorskip("polars").from_arrow(table)]
    for source in sources:
        read = list(read_documents(source, metadata=True))
        assert [(document.text, document.metadata) for document in read] == [
            (VALUES[0], {"n": 1}),
            (VALUES[1], {"n": 2}),
        ]


def test_ids_that_are_uuids_decimals_or_dates() -> None:
    ids = [UUID(int=7), Decimal("1.50"), datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3), b"no"]
    reader = read_documents([{"id": each, "text": "a"} for each in ids])
    assert [document.id for document in reader] == [
        "00000000-0000-0000-0000-000000000007", "1.50", "2020-01-02", "2020-01-02 03:00:00", "4"
    ]  # fmt: skip
    assert reader.report.repaired == {"missing id": 1}
