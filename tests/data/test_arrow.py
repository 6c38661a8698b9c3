"""Columns of any Arrow type: read, or an error that names the type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simlte_st.data.arrow import text_type
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
    value = column[0].as_py() if text_type(column.type) else None
    source: Any = pa.table({name: column, "further": other, "id": [7]})
    if on_disk:
        path = tmp_path_factory.getbasetemp() / "any.parquet"
        try:
            pq.write_table(source, path)
        except (pa.ArrowException, TypeError):  # no place in a parquet file
            return
        source, column = path, pq.read_schema(path).field(name)
    reader = read_documents(source, text_column=name, metadata=True)
    if not text_type(column.type):
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
        with pytest.raises(DataError, match=r"'abstract' of .* holds binary, not text.*hold strings: key\."):
            list(read_documents(source))
        assert [document.text for document in read_documents(source, text_column="key")] == ["a", "b"]


def test_the_report_names_the_columns_of_all_sources(tmp_path: Path) -> None:
    pq.write_table(pa.table({"abstract": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("body\nb\n")
    (tmp_path / "c.txt").write_text("c")
    reader = read_documents([tmp_path / "a.parquet", tmp_path / "b.csv", tmp_path / "c.txt"])
    assert len(list(reader)) == 3
    assert re.search("from the columns 'abstract', 'body'", reader.report.summary())
