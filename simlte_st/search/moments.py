"""Dates and moments in an index: values of documents, and conditions that compare them as such.

LanceDB compares a column of moments with a literal of its exact type only. A filter has them as text, at any precision
and offset, and a date means the whole day: :func:`typed_literals` writes what LanceDB understands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from simlte_st.errors import ConfigurationError

_LITERAL = r"(?:(?:date|timestamp)\s*)?'(?:[^']|'')*'"
_COLUMN = r'(?:"[^"]+"|`[^`]+`|[\p{L}_][\p{L}\p{M}\p{N}_]*)'
_CONDITION = regex.compile(
    rf"(?P<column>{_COLUMN})\s*(?P<operator><=|>=|<>|!=|==|=|<|>)\s*(?P<value>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})\s+BETWEEN\s+(?P<low>{_LITERAL})\s+AND\s+(?P<high>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})|{_LITERAL}",
    regex.IGNORECASE,
)


def as_moment(value: Any) -> date | None:
    """Return a date or moment of Python, numpy or pandas as Python's, in microseconds; None for other values."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if hasattr(value, "to_pydatetime"):  # of pandas; one that is missing is no date
        return None if value != value else value.to_pydatetime(warn=False)
    return value if isinstance(value, date) else None


def read_moment(text: str) -> date | None:
    """Read a date or a moment as ISO 8601 writes it; None if it is none."""
    written = regex.sub("[zZ]$", "+00:00", text.strip())  # which Python 3.10 does not read
    for read in (date.fromisoformat, datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            return read(written)
    return None


def moment_type(values: Iterable[Any]) -> pa.DataType | None:
    """Return the Arrow type of moments: dates, naive ones, or ones with a zone; None if they are not alike."""
    there = list(values)
    if not there or not all(isinstance(value, date) for value in there):
        return None
    moments = [value for value in there if isinstance(value, datetime)]
    if not moments:
        return pa.date32()
    zones = [value.tzinfo for value in moments if value.tzinfo is not None]
    if not zones:
        return pa.timestamp("us")
    return pa.timestamp("us", _zone_name(zones[0], moments[0])) if len(zones) == len(there) else None


def _zone_name(zone: tzinfo, moment: datetime) -> str:
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if name:
        return str(name)
    minutes = round((zone.utcoffset(moment.replace(tzinfo=None)) or timedelta()).total_seconds() / 60)
    return "UTC" if minutes == 0 else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


def fit_moment(value: Any, kind: pa.DataType) -> date | None:
    """Return a date or moment as a value of a column; None where it is not of its type."""
    if not isinstance(value, date):
        return None
    if pa.types.is_date(kind):
        return None if isinstance(value, datetime) else value
    if not isinstance(value, datetime):
        return _midnight(value, kind)
    return value if (value.tzinfo is None) == (kind.tz is None) else None


def _midnight(day: date, kind: pa.DataType) -> datetime:
    return _in_zone(datetime(day.year, day.month, day.day), kind)


def _in_zone(moment: datetime, kind: pa.DataType) -> datetime:
    """Return a moment without a zone in that of a column."""
    if kind.tz is None:
        return moment
    zone = pa.scalar(0, kind).as_py().tzinfo
    return zone.localize(moment) if hasattr(zone, "localize") else moment.replace(tzinfo=zone)  # pytz's way


def typed_literals(where: str, schema: pa.Schema) -> str:
    """Return a condition with the literals that columns of moments are compared with in the columns' types.

    Names of columns that SQL would not read by themselves, such as Hindi ones, get quotes.
    """
    names = {field.name.lower(): field for field in schema}

    def condition(match: regex.Match[str]) -> str:
        field = names.get((match["column"] or "").strip('"`').lower())
        if field is None:
            return str(match[0])
        is_plain = field.name.isascii() and field.name.isidentifier()
        column: str = match["column"] if is_plain else f"`{field.name}`"
        if pa.types.is_temporal(field.type) and match["value"]:
            return _compared(column, match["operator"], match["value"], field.type)
        if pa.types.is_temporal(field.type) and match["low"]:
            first, last = (_compared(column, *end, field.type) for end in ((">=", match["low"]), ("<=", match["high"])))
            return f"({first} AND {last})"
        return str(match[0]).replace(match["column"], column, 1)

    return str(_CONDITION.sub(condition, where))


def _compared(column: str, operator: str, literal: str, kind: pa.DataType) -> str:
    text = literal[literal.index("'") + 1 : -1]
    moment = read_moment(text)
    if moment is None:
        raise ConfigurationError(
            f"The filter compares {column} with {text!r}, which is not a date or moment such as '2024-01-15T10:30'."
        )
    if pa.types.is_date(kind):
        day = moment.date() if isinstance(moment, datetime) else moment
        return f"{column} {operator} date '{day.isoformat()}'"
    if isinstance(moment, datetime):
        return f"{column} {operator} {_timestamp(moment if moment.tzinfo else _in_zone(moment, kind), kind)}"
    # A day has a first moment, and ends where the next one begins.
    first, after = (_timestamp(_midnight(day, kind), kind) for day in (moment, moment + timedelta(days=1)))
    if operator in ("=", "=="):
        return f"({column} >= {first} AND {column} < {after})"
    if operator in ("!=", "<>"):
        return f"({column} < {first} OR {column} >= {after})"
    return f"{column} {'<' if operator[0] == '<' else '>='} {first if operator in ('<', '>=') else after}"


def _timestamp(moment: datetime, kind: pa.DataType) -> str:
    """Return a moment as a literal of SQL; one with a zone, for a column without, is of UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    written = moment.isoformat(timespec="microseconds")
    if kind.tz is None:
        return f"arrow_cast('{written}', 'Timestamp(Microsecond, None)')"
    return f"arrow_cast('{written}Z', 'Timestamp(Microsecond, Some(\"UTC\"))')"
