"""Data frames, and their columns."""

from __future__ import annotations

from typing import Any

import datasets
import numpy as np
import pandas
import pyarrow as pa
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
