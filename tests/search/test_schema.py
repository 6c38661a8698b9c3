"""Columns of an index: their names and types, and dates and times in the conditions of a filter."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.document import UntypedText
from simlte_st.search.schema import MAX_COLUMNS, Metadata, column_name, typed_literals
from simlte_st.search.store import Store, open_database

TOKYO = timezone(timedelta(hours=9))
ZONED = datetime(2024, 1, 15, 10, 30, tzinfo=TOKYO)


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
        (untyped("10.0", "2"), "double", [10.0, 2.0]),
        ([10.0, math.nan, 2**53 + 1], "int64", [10, None, 2**53 + 1]),
        ([Decimal("10.50"), Decimal("3")], "double", [10.5, 3.0]),
        ([Decimal(2**53 + 1), Decimal("1E+3"), Decimal(-2)], "int64", [2**53 + 1, 1000, -2]),
        ([Decimal("-9007199254740993.00"), Decimal("1.00")], "int64", [-(2**53) - 1, 1]),
        ([Decimal("9007199254740993.5"), Decimal("NaN"), 7], "string", ["9007199254740993.5", None, "7"]),
        ([UUID(int=7)], "string", ["00000000-0000-0000-0000-000000000007"]),
        (
            [np.datetime64("2020-01-02T03:04", "ns"), np.datetime64("NaT")],
            "timestamp[us]",
            [datetime(2020, 1, 2, 3, 4), None],
        ),
        ([timedelta(hours=1), time(2)], "string", ["1:00:00", "02:00:00"]),
        ([2**53 + 1, 0.5], "string", ["9007199254740993", "0.5"]),
        (["a", "", None], "string", ["a", "", None]),
        ([2**70, 1], "string", [str(2**70), "1"]),
        ([["x", 1], {"y": "é"}], "string", ['["x", 1]', '{"y": "é"}']),
        ([date(2020, 1, 2)], "date32[day]", [date(2020, 1, 2)]),
        (["2020-01-02"], "string", ["2020-01-02"]),
        ([date(2020, 1, 2), 7], "string", ["2020-01-02", "7"]),
        ([date(2024, 1, 1), datetime(2024, 1, 1, 9)], "timestamp[us]", [datetime(2024, 1, 1), datetime(2024, 1, 1, 9)]),
        ([ZONED, ZONED.astimezone(UTC)], "timestamp[us, tz=+09:00]", [ZONED, ZONED]),
        ([ZONED.astimezone(UTC)], "timestamp[us, tz=UTC]", [ZONED]),
        ([ZONED, datetime(2024, 1, 1)], "string", ["2024-01-15T10:30:00+09:00", "2024-01-01T00:00:00"]),
        (["\ud800x"], "string", ["\ufffdx"]),
        ([None, math.nan, ""], None, [None, None, None]),
    ],
)
def test_column_types_and_stored_values(values: list[Any], kind: str | None, stored: list[Any]) -> None:
    found, got, metadata = learn(*values)
    assert (found, got) == (kind, stored)
    assert not metadata.misfits


def test_values_of_another_type_are_dropped_and_counted() -> None:
    _, _, metadata = learn(2015, 2016)
    late = ("n/a", 1.5, True, 2017.0, UntypedText("2018"), "2018", b"2018")
    documents = [Document("x", "ba", metadata={"c": each}) for each in late]
    assert metadata.learn(documents) == []
    assert [metadata.values(one)["c"] for one in documents] == [None, None, None, 2017, 2018, None, None]
    assert metadata.misfits == {"c": 5}
    assert metadata.fractional == ["c"]
    metadata.learn([*documents, Document("x", "ba", metadata={"c": 2**53 + 1})])
    assert metadata.fractional == []


@pytest.mark.parametrize(
    ("given", "name"),
    [("year", "year"), ("Größe", "Größe"), ("a b.c", "a_b_c"), ("2x", "x2x"), ("_rowid", "x_rowid"), ("", "x"),
     ("Text", "Text_"), ("id", "id_"), ("score", "score_"), ("वर्ष", "वर्ष"), ("ปีที่", "ปีที่"), ("Ma\u0308rz", "März")],
)  # fmt: skip
def test_column_names_are_valid_in_filters(given: str, name: str) -> None:
    assert column_name(given) == name


def test_colliding_column_names_are_an_error() -> None:
    metadata = Metadata(pa.schema([]))
    with pytest.raises(DataError, match=r"'a b' and 'a-b' .*'a_b'"):
        metadata.learn([Document("x", "ba", metadata={"a b": 1, "a-b": 2})])


def test_most_frequent_columns_are_kept() -> None:
    common = {f"c{number}": 1 for number in range(MAX_COLUMNS - 1)}
    metadata = Metadata(pa.schema([]))
    documents = [
        Document("x", "ba", metadata={"rare": 1, "rarer": 1, **common}),
        Document("y", "ba", metadata={"rare": 2, **common}),
    ]
    assert {item.name for item in metadata.learn(documents)} == {"rare", *common}
    assert metadata.learn([late := Document("z", "ba", metadata={"late": 1})]) == []
    assert metadata.values(documents[0]).keys() == metadata.values(late).keys() == {"rare", *common}
    assert metadata.misfits == {"rarer": 1, "late": 1}


def test_columns_in_structs_can_be_named() -> None:
    documents = [Document("x", "ba", metadata={"a": 1, "at": {"day": "2020-01-02", "place": {"name": "Bonn"}}})]
    metadata = Metadata(pa.schema([]), ["at.place.name", "at.day"])
    metadata.check_names(documents)
    assert [item.name for item in metadata.learn(documents)] == ["at_place_name", "at_day"]
    assert metadata.values(documents[0]) == {"at_place_name": "Bonn", "at_day": "2020-01-02"}
    with pytest.raises(DataError, match=r"'at\.place\.nam'"):
        Metadata(pa.schema([]), ["at.place.nam"]).check_names(documents)


SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "day": pa.date32(),
        "made": pa.timestamp("us"),
        "sent": pa.timestamp("us", "Asia/Tokyo"),
        "kind": pa.string(),
        "वर्ष": pa.int64(),
        "share": pa.float64(),
        "read": pa.bool_(),
        "Kind": pa.date32(),
    }
)
ROWS = {
    "id": ["a", "b", "c", "d"],
    "day": [date(2024, 1, 14), date(2024, 1, 15), date(2024, 1, 16), None],
    "made": [datetime(2024, 1, 14), datetime(2024, 1, 15), datetime(2024, 1, 15, 23, 59, 59, 5), datetime(2024, 1, 16)],
    "sent": [datetime(2024, 3, 1, hour, tzinfo=TOKYO) for hour in (0, 9, 12)] + [datetime(2024, 3, 2, tzinfo=TOKYO)],
    "kind": ["day = '2024-01-15'", "x", "y", "day"],
    "वर्ष": [2000, 2001, 2002, 2003],
    "share": [0.5, 1.0, 2.5, 1e300],
    "read": [True, False, None, True],
    "Kind": [date(2020, 1, 1), date(2021, 1, 1), None, None],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    # With our own function: LanceDB reads its log level, which test_index checks, once per process.
    return open_database(tmp_path_factory.mktemp("moments")).create_table("rows", pa.table(ROWS, schema=SCHEMA))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("day = '2024-01-15'", "b"),
        ("day != '2024-01-15'", "ac"),
        ("day = '2024-01-15T10:00'", "b"),
        ("day > date '2024-01-15'", "c"),
        ("day IN ('2024-01-14', '2024-01-16')", "ac"),
        ("NOT made NOT IN ('2024-01-15')", "bc"),
        ("day NOT BETWEEN '2024-01-15' AND '9999-12-31' OR sent < '0001-01-01'", "a"),
        ("made <= '9999-12-31' AND sent <= '9999-12-31' AND '2024-01-16' <= made", "d"),
        ("'y' = kind AND 2001 < वर्ष AND share >= +2.5", "c"),
        ("made = '2024-01-15'", "bc"),
        ("made <= '2024-01-15'", "abc"),
        ("made < '2024-01-15'", "a"),
        ("made > '2024-01-15'", "d"),
        ("made >= '2024-01-15'", "bcd"),
        ("made <> '2024-01-15'", "ad"),
        ("made > '2024-01-15 23:59'", "cd"),
        ("made = '2024-01-15T23:59:59.000005'", "c"),
        ("made BETWEEN '2024-01-14' AND '2024-01-15'", "abc"),
        ("sent > '2024-03-01T01:00:00Z '", "cd"),
        ("sent > timestamp '2024-03-01T10:00:00'", "cd"),  # a time without a zone is in the column's zone
        ("sent = '2024-03-01'", "abc"),
        ("kind = 'day = ''2024-01-15'''", "a"),
        ("kind = 'x' OR (day = '2024-01-14' AND NOT made > '2024-01-15')", "ab"),
        ("`day` = '2024-01-15'", "b"),
        ("\"day\" = '2024-01-15'", "b"),
        ("वर्ष = 2001", "b"),
        ("वर्ष >= 2001.5", "cd"),
        ("NOT (2001.5 <= (वर्ष)) OR वर्ष = 2.003e3", "abd"),
        ("वर्ष NOT BETWEEN 2000.5 AND 2002.5 AND day <= '2024-01-15'", "a"),
        ("वर्ष IN (2000, 2001.0, 2002.5) AND kind != 'वर्ष > 1.5'", "ab"),
        ("वर्ष > -.5 AND वर्ष / 2 > 1000.5", "cd"),
        ("वर्ष < 9223372036854775808 AND वर्ष > -99999999999999999999 AND वर्ष < 1e400", "abcd"),
        ("वर्ष <= 2001 AND 2000 < वर्ष", "b"),
        ("Kind >= '2020-06-01' AND kind = 'x'", "b"),
        ("share > 1 AND share IN (1, 2.5) AND share < 99999999999999999999", "c"),
    ],
)
def test_filters_compare_literals_by_value(table: Any, where: str, found: str) -> None:
    rows = table.search().where(typed_literals(where, SCHEMA)).select(["id"]).to_list()
    assert "".join(sorted(row["id"] for row in rows)) == found


def test_invalid_dates_are_refused() -> None:
    for where in ("day = 'yesterday'", "made > '10:30'", "day < ''", "day = '2024-13-01'"):
        with pytest.raises(ConfigurationError, match=r"compares .* with .*: write a "):
            typed_literals(where, SCHEMA)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("day > 2024-01-15", "compares day with 2024-01-15: write a date or time in quotes, such as '2024-01-15'"),
        ("made NOT BETWEEN 5 AND 6", "compares made with 5: write a date"),
        ("kind = 3.5", "compares kind with 3.5: write text in quotes"),
        ("वर्ष > 1.5 AND 3.5 < kind", "compares kind with 3.5: write text"),
        ("id IN (1, 2)", "compares id with 1: write text"),
        ("read = 1", "compares read with 1: write true or false"),
        ("(sent) > 2024-01-15", "cannot be used: it compares a column with 2024: write a date"),
        ("वर्ष = '2001'", 'it compares a column with "2001": write a number without quotes'),
        ("share > 2.5 AND", "cannot be used: Expected: an expression"),
        ("kin = 'error: x'", "cannot be used: No field named kin. Write"),
        ("share ILIKE '2%'", "cannot be used: LIKE compares text, and this column has another type"),
        ("CASE WHEN share > 1 THEN true END", "cannot be used: it can use only comparisons"),
    ],
)
def test_invalid_comparisons_are_explained(table: Any, where: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(said)) as raised:
        Store(Path(), table).check_filter(where)
    assert not re.search("literal|Int64|Utf8|Timestamp|CAST|nvalid|lance|coerce", str(raised.value))


def test_pandas_timestamps() -> None:
    pandas = pytest.importorskip("pandas")
    kind, stored, _ = learn(pandas.Timestamp("2024-01-15T10:30:00.123456789", tz="Asia/Tokyo"), pandas.NaT)
    assert (kind, stored) == ("timestamp[us, tz=Asia/Tokyo]", [ZONED.replace(microsecond=123_456), None])
