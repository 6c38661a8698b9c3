"""Arrow tables and data frames: their columns by type, and their rows as Python values."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pandas
import pyarrow as pa
import pytest
from reading_support import texts

from simlte_st.errors import DataError
from simlte_st.reading.documents import read_documents


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
    with pytest.raises(DataError, match=r"the DataFrame cannot be read: .*'int'"):
        texts(pandas.DataFrame({"text": ["a", 3, "c"]}))
    nullable = pandas.DataFrame({"text": ["a", "b"], "class": pandas.array([1, None], dtype="Int64")})
    reader = read_documents(nullable, label_column="class")
    assert [document.label for document in reader] == ["1", None]
    twice = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    assert texts(twice, text_column="text_2") == ["b"]
    polars = pytest.importorskip("polars")
    with pytest.raises(DataError, match=r"collect a LazyFrame"):
        read_documents(polars.DataFrame({"text": ["a"]}).lazy())


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
