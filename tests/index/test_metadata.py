from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.index.metadata import MOST_COLUMNS, Metadata, column_name


def learn(*values: Any) -> tuple[str | None, list[Any], Metadata]:
    metadata = Metadata(pa.schema([]))
    documents = [Document(f"d{number}", "ba", metadata={"c": value}) for number, value in enumerate(values)]
    fields = metadata.learn(documents)
    return str(fields[0].type) if fields else None, [metadata.values(one).get("c") for one in documents], metadata


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        ([1, None, 3], "int64", [1, None, 3]),
        (["2015", "", "-3"], "int64", [2015, None, -3]),
        ([1, 2.5, "3"], "double", [1.0, 2.5, 3.0]),
        (["1.5", "2e3"], "double", [1.5, 2000.0]),
        ([True, "false"], "bool", [True, False]),
        ([True, 1], "string", ["true", "1"]),
        (["01234", "2"], "string", ["01234", "2"]),
        (["a", "", None], "string", ["a", "", None]),
        ([2**70, 1], "string", [str(2**70), "1"]),
        ([["x", 1], {"y": "é"}], "string", ['["x", 1]', '{"y": "é"}']),
        ([datetime.date(2020, 1, 2)], "string", ["2020-01-02"]),
        (["\ud800x"], "string", ["\ufffdx"]),
        ([None, math.nan, ""], None, [None, None, None]),
    ],
)
def test_a_column_has_one_type(values: list[Any], kind: str | None, stored: list[Any]) -> None:
    found, got, metadata = learn(*values)
    assert (found, got) == (kind, stored)
    assert not metadata.misfits


def test_what_does_not_fit_is_left_out_and_told() -> None:
    _, _, metadata = learn(2015, 2016)
    late = [Document("x", "ba", metadata={"c": each}) for each in ("n/a", 1.5, True, 2017.0, "2018")]
    assert metadata.learn(late) == []
    assert [metadata.values(one)["c"] for one in late] == [None, None, None, 2017, 2018]
    assert metadata.misfits == {"c": (3, "x")}


@pytest.mark.parametrize(
    ("given", "name"),
    [("year", "year"), ("Größe", "Größe"), ("a b.c", "a_b_c"), ("2x", "x2x"), ("_rowid", "x_rowid"), ("", "x"),
     ("Text", "Text_"), ("id", "id_"), ("score", "score_"), ("vector", "vector_")],
)  # fmt: skip
def test_names_that_a_filter_can_use(given: str, name: str) -> None:
    assert column_name(given) == name


def test_columns_that_have_no_place() -> None:
    metadata = Metadata(pa.schema([]))
    with pytest.raises(DataError, match="The columns 'a b' and 'a-b' would both be 'a_b'"):
        metadata.learn([Document("x", "ba", metadata={"a b": 1, "a-b": 2})])
    with pytest.raises(DataError, match=f"more than {MOST_COLUMNS} other columns"):
        metadata.learn([Document("x", "ba", metadata={f"c{number}": 1 for number in range(MOST_COLUMNS + 1)})])
