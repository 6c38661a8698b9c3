from __future__ import annotations

import datetime
import math
import unicodedata
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from simlte_st.data import Document
from simlte_st.data.document import UntypedText
from simlte_st.errors import DataError
from simlte_st.search.schema import MOST_COLUMNS, Metadata, column_name


def learn(*values: Any) -> tuple[str | None, list[Any], Metadata]:
    metadata = Metadata(pa.schema([]))
    documents = [Document(f"d{number}", "ba", metadata={"c": value}) for number, value in enumerate(values)]
    fields = metadata.learn(documents)
    return str(fields[0].type) if fields else None, [metadata.values(one).get("c") for one in documents], metadata


def untyped(*values: str) -> list[Any]:
    return [UntypedText(value) for value in values]


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        ([1, None, 3], "int64", [1, None, 3]),
        (untyped("2015", "", "-3"), "int64", [2015, None, -3]),
        (["2015", "", "-3"], "string", ["2015", "", "-3"]),
        ([1, 2.5, "3"], "string", ["1", "2.5", "3"]),
        (untyped("1.5", "2", "2000.0"), "double", [1.5, 2.0, 2000.0]),
        (untyped("1.5", "1.10"), "string", ["1.5", "1.10"]),
        (untyped("12e10", "34e20"), "string", ["12e10", "34e20"]),
        ([True, *untyped("false", "TRUE")], "bool", [True, False, True]),
        ([True, "false"], "string", ["true", "false"]),
        ([True, 1], "string", ["true", "1"]),
        (untyped("01234", "2"), "string", ["01234", "2"]),
        (untyped("1_000", "nan", "inf", "1e5"), "string", ["1_000", "nan", "inf", "1e5"]),
        ([Decimal("10.50"), Decimal("3")], "double", [10.5, 3.0]),
        ([UUID(int=7)], "string", ["00000000-0000-0000-0000-000000000007"]),
        (
            [np.datetime64("2020-01-02T03:04", "ns"), np.datetime64("NaT")],
            "timestamp[us]",
            [datetime.datetime(2020, 1, 2, 3, 4), None],
        ),
        ([datetime.timedelta(hours=1), datetime.time(2)], "string", ["1:00:00", "02:00:00"]),
        ([2**53 + 1, 0.5], "string", ["9007199254740993", "0.5"]),
        (["a", "", None], "string", ["a", "", None]),
        ([2**70, 1], "string", [str(2**70), "1"]),
        ([["x", 1], {"y": "é"}], "string", ['["x", 1]', '{"y": "é"}']),
        ([datetime.date(2020, 1, 2)], "date32[day]", [datetime.date(2020, 1, 2)]),
        (["2020-01-02"], "string", ["2020-01-02"]),
        ([datetime.date(2020, 1, 2), 7], "string", ["2020-01-02", "7"]),
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
    late = ("n/a", 1.5, True, 2017.0, UntypedText("2018"), "2018", b"2018")
    documents = [Document("x", "ba", metadata={"c": each}) for each in late]
    assert metadata.learn(documents) == []
    assert [metadata.values(one)["c"] for one in documents] == [None, None, None, 2017, 2018, None, None]
    assert metadata.misfits == {"c": (5, "x")}


@pytest.mark.parametrize(
    ("given", "name"),
    [("year", "year"), ("Größe", "Größe"), ("a b.c", "a_b_c"), ("2x", "x2x"), ("_rowid", "x_rowid"), ("", "x"),
     ("Text", "Text_"), ("id", "id_"), ("score", "score_"), ("vector", "vector_")],
)  # fmt: skip
def test_names_that_a_filter_can_use(given: str, name: str) -> None:
    assert column_name(given) == name


def test_columns_that_have_no_place() -> None:
    metadata = Metadata(pa.schema([]))
    with pytest.raises(DataError, match=r"'a b' and 'a-b' .*'a_b'"):
        metadata.learn([Document("x", "ba", metadata={"a b": 1, "a-b": 2})])


def test_of_too_many_columns_the_most_frequent_are_kept() -> None:
    common = {f"c{number}": 1 for number in range(MOST_COLUMNS - 1)}
    metadata = Metadata(pa.schema([]))
    documents = [
        Document("x", "ba", metadata={"rare": 1, "rarer": 1, **common}),
        Document("y", "ba", metadata={"rare": 2, **common}),
    ]
    assert {item.name for item in metadata.learn(documents)} == {"rare", *common}
    assert metadata.left_out == {"rarer": 1}
    assert metadata.learn([Document("z", "ba", metadata={"late": 1})]) == []
    assert metadata.left_out == {"rarer": 1, "late": 1}
    assert metadata.values(documents[0]).keys() == {"rare", *common}
    assert metadata.misfits == {}


def test_columns_can_be_named() -> None:
    metadata = Metadata(pa.schema([]), ["b", "c d"])
    documents = [Document("x", "ba", metadata={"a": 1, "b": 2, "c d": 3})]
    assert [item.name for item in metadata.learn(documents)] == ["b", "c_d"]
    assert metadata.values(documents[0]) == {"b": 2, "c_d": 3}
    metadata.check_names(documents)
    with pytest.raises(DataError, match="'e'"):
        Metadata(pa.schema([]), ["e"]).check_names(documents)


def test_columns_in_structs_can_be_named() -> None:
    documents = [Document("x", "ba", metadata={"a": 1, "at": {"day": "2020-01-02", "place": {"name": "Bonn"}}})]
    metadata = Metadata(pa.schema([]), ["at.place.name", "at.day"], ["at.day"])
    metadata.check_names(documents)
    assert [(item.name, str(item.type)) for item in metadata.learn(documents)] == [
        ("at_place_name", "string"), ("at_day", "date32[day]")
    ]  # fmt: skip
    assert metadata.values(documents[0]) == {"at_place_name": "Bonn", "at_day": datetime.date(2020, 1, 2)}
    whole = Metadata(pa.schema([]), dates=["at.day"])
    assert [item.name for item in whole.learn(documents)] == ["a", "at", "at_day"]
    with pytest.raises(DataError, match=r"'at\.place\.nam'"):
        Metadata(pa.schema([]), ["at.place.nam"]).check_names(documents)


@pytest.mark.parametrize("name", ["वर्ष", "ปีที่", "März", "ஆண்டு"])
def test_names_of_other_scripts_stay(name: str) -> None:
    assert column_name(name) == name
    assert column_name(unicodedata.normalize("NFD", name)) == name
