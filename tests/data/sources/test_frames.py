"""Data frames, and their columns."""

from __future__ import annotations

import datetime
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
from reading_support import texts

from simlte_st.data.documents import read_documents
from simlte_st.errors import DataError, EmptyCorpusError


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
            assert reader.report.summary() == f"read 2 documents (19 characters) from the column '{name}'"
    for column, kind in (
        (pandas.Series([b"a", b"b"]), "bytes values"),
        (pandas.Series([b"a", b"b"], dtype=arrow(pa.binary())), r"binary\[pyarrow\]"),
        (pandas.Series([1, 2], dtype="category"), "int64"),
        (pandas.Series([None, None], dtype="object"), "nothing"),
        (pandas.Series([True, False]), "bool"),
    ):
        with pytest.raises(DataError, match=f"'abstract' of the DataFrame holds {kind}, not text"):
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
        with pytest.raises(DataError, match=f"'body' of the DataFrame holds {kind}, not text"):
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
