"""Dates and moments: as columns of an index, and in the conditions of a filter."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from simlte_st.data import Document
from simlte_st.data.document import UntypedText
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.search.moments import as_moment, fit_moment, moment_type, read_moment, typed_literals
from simlte_st.search.schema import Metadata
from simlte_st.search.store import connect

TOKYO = timezone(timedelta(hours=9))
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "day": pa.date32(),
        "made": pa.timestamp("us"),
        "sent": pa.timestamp("us", "Asia/Tokyo"),
        "kind": pa.string(),
        "वर्ष": pa.int64(),
    }
)
ROWS = {
    "id": ["a", "b", "c", "d"],
    "day": [date(2024, 1, 14), date(2024, 1, 15), date(2024, 1, 16), None],
    "made": [datetime(2024, 1, 14), datetime(2024, 1, 15), datetime(2024, 1, 15, 23, 59, 59, 5), datetime(2024, 1, 16)],
    "sent": [datetime(2024, 3, 1, hour, tzinfo=TOKYO) for hour in (0, 9, 12)] + [datetime(2024, 3, 2, tzinfo=TOKYO)],
    "kind": ["day = '2024-01-15'", "x", "y", "day"],
    "वर्ष": [2000, 2001, 2002, 2003],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    # By our own function: LanceDB reads the level of its log, which test_index looks at, once in a process.
    return connect(tmp_path_factory.mktemp("moments")).create_table("rows", pa.table(ROWS, schema=SCHEMA))


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("day = '2024-01-15'", "b"),
        ("day <= '2024-01-15'", "ab"),
        ("day != '2024-01-15'", "ac"),
        ("day = '2024-01-15T10:00'", "b"),
        ("day > date '2024-01-15'", "c"),
        ("day IS NULL", "d"),
        ("made = '2024-01-15'", "bc"),
        ("made <= '2024-01-15'", "abc"),
        ("made < '2024-01-15'", "a"),
        ("made > '2024-01-15'", "d"),
        ("made >= '2024-01-15'", "bcd"),
        ("made <> '2024-01-15'", "ad"),
        ("made > '2024-01-15 23:59'", "cd"),
        ("made = '2024-01-15T23:59:59.000005'", "c"),
        ("made BETWEEN '2024-01-14' AND '2024-01-15'", "abc"),
        ("sent > '2024-03-01T01:00:00+00:00'", "cd"),
        ("sent > '2024-03-01T01:00:00Z'", "cd"),
        ("sent > timestamp '2024-03-01T10:00:00'", "cd"),  # a moment without a zone is in the column's
        ("sent = '2024-03-01'", "abc"),
        ("kind = 'day = ''2024-01-15'''", "a"),
        ("kind = 'day'", "d"),
        ("kind = 'x' OR (day = '2024-01-14' AND NOT made > '2024-01-15')", "ab"),
        ("`day` = '2024-01-15'", "b"),
        ("\"day\" = '2024-01-15'", "b"),
        ("वर्ष = 2001", "b"),
        ("वर्ष IN (2001, 2003) AND day = '2024-01-15'", "b"),
    ],
)
def test_moments_are_compared_as_such(table: Any, where: str, found: str) -> None:
    rows = table.search().where(typed_literals(where, SCHEMA)).select(["id"]).to_list()
    assert "".join(sorted(row["id"] for row in rows)) == found


@pytest.mark.parametrize("where", ["day = 'yesterday'", "made > '10:30'", "day < ''"])
def test_what_is_no_moment_is_told(where: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a"):
        typed_literals(where, SCHEMA)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-15", date(2024, 1, 15)),
        (" 2024-01-15T10:30 ", datetime(2024, 1, 15, 10, 30)),
        ("2024-01-15T10:30:00.500Z", datetime(2024, 1, 15, 10, 30, 0, 500_000, timezone.utc)),
        ("2024-01-15 10:30+09:00", datetime(2024, 1, 15, 10, 30, tzinfo=TOKYO)),
        ("15/01/2024", None),
        ("2024-13-01", None),
        ("", None),
    ],
)
def test_reading(text: str, moment: Any) -> None:
    assert read_moment(text) == moment


def test_moments_of_other_libraries() -> None:
    pandas = pytest.importorskip("pandas")
    assert as_moment(np.datetime64("2024-01-15T10:30", "ns")) == datetime(2024, 1, 15, 10, 30)
    stamp = pandas.Timestamp("2024-01-15T10:30:00.123456789", tz="Asia/Tokyo")
    assert as_moment(stamp) == datetime(2024, 1, 15, 10, 30, 0, 123_456, TOKYO)
    assert as_moment(pandas.NaT) is as_moment(np.datetime64("NaT")) is as_moment("2024-01-15") is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([date(2024, 1, 1)], pa.date32()),
        ([date(2024, 1, 1), datetime(2024, 1, 1, 9)], pa.timestamp("us")),
        ([datetime(2024, 1, 1, tzinfo=TOKYO), datetime(2024, 1, 1, tzinfo=timezone.utc)], pa.timestamp("us", "+09:00")),
        ([datetime(2024, 1, 1, tzinfo=timezone.utc)], pa.timestamp("us", "UTC")),
        ([datetime(2024, 1, 1, tzinfo=TOKYO), datetime(2024, 1, 1)], None),
        ([], None),
    ],
)
def test_the_type_of_a_column(values: list[Any], kind: pa.DataType | None) -> None:
    assert moment_type(values) == kind
    assert kind is None or pa.array([fit_moment(value, kind) for value in values], kind).null_count == 0


def test_text_is_a_moment_where_it_was_declared() -> None:
    documents = [Document(str(number), "ba", metadata={"on": UntypedText(f"2024-01-1{number}")}) for number in range(3)]
    documents.append(Document("3", "ba", metadata={"on": "soon"}))
    kinds = [Metadata(pa.schema([]), dates=dates).learn(documents[:3])[0].type for dates in ((), ("on",))]
    assert kinds == [pa.string(), pa.date32()]
    metadata = Metadata(pa.schema([("on", pa.date32())]), dates=("on",))
    days = [date(2024, 1, 10 + number) for number in range(3)]
    assert [metadata.values(document)["on"] for document in documents] == [*days, None]
    assert metadata.misfits == {"on": (1, "3")}
    metadata.check_names(documents)
    with pytest.raises(DataError, match="'off'"):
        Metadata(pa.schema([]), dates=("off",)).check_names(documents)
    with pytest.raises(DataError, match="'on' holds string"):
        Metadata(pa.schema([("on", pa.string())]), dates=("on",)).check_names(documents)
