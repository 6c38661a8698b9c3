"""Dates, times and moments in an index: values of documents, and conditions that compare them as such.

LanceDB compares a column of moments with a literal of its exact type only. A filter has them as text, at any precision
and offset, and a date means the whole day: :func:`typed_literals` writes what LanceDB understands.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from simlte_st.errors import ConfigurationError

Moment = date | datetime | time

_TIME = regex.compile(r"(?<=\d\d:\d\d:\d\d)[.,](\d+)|(?<=:\d\d(?:[.,]\d+)?)([+-]\d\d):?(\d\d)?$|Z$", regex.IGNORECASE)
_LITERAL = r"(?:(?:date|timestamp|time)\s*)?'(?:[^']|'')*'"
_COLUMN = r'(?:"[^"]+"|`[^`]+`|[\p{L}_][\p{L}\p{M}\p{N}_]*)'
_OPERATOR = r"(?:<=|>=|<>|!=|==|=|<|>)"
_CONDITION = regex.compile(
    rf"(?P<column>{_COLUMN})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_LITERAL})"
    rf"|(?P<value>{_LITERAL})\s*(?P<turned>{_OPERATOR})\s*(?P<column>{_COLUMN})"
    rf"|(?P<column>{_COLUMN})\s+(?P<not>NOT\s+)?BETWEEN\s+(?P<low>{_LITERAL})\s+AND\s+(?P<high>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})\s+(?P<not>NOT\s+)?IN\s*\(\s*(?P<list>{_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)"
    rf"|(?P<column>{_COLUMN})|{_LITERAL}",
    regex.IGNORECASE,
)
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def as_moment(value: Any) -> Moment | None:
    """Return a date or time of Python, numpy or pandas as Python's, in microseconds; None for other values."""
    if isinstance(value, np.datetime64):
        unit = "D" if np.datetime_data(value.dtype)[0] in "YMWD" else "us"
        value = None if np.isnat(value) else value.astype(f"datetime64[{unit}]").item()
    if hasattr(value, "to_pydatetime"):  # of pandas; one that is missing is no date
        return None if value != value else value.to_pydatetime(warn=False)
    return value if isinstance(value, (date, time)) else None


def read_moment(text: str) -> Moment | None:
    """Read a date, a moment or a time as ISO 8601 writes it; None if it is none."""

    def plain(match: regex.Match[str]) -> str:
        if match[1]:
            return f".{match[1][:6]:0<6}"  # as Python 3.10 has it
        return f"{match[2]}:{match[3] or '00'}" if match[2] else "+00:00"

    written = _TIME.sub(plain, text.strip())
    for read in (date.fromisoformat, datetime.fromisoformat, time.fromisoformat):
        with contextlib.suppress(ValueError):
            return read(written)
    return None


def moment_type(values: Iterable[Any]) -> pa.DataType | None:
    """Return the Arrow type of moments: dates, naive ones, ones with a zone, or times; None if they are not alike."""
    there = list(values)
    if there and all(isinstance(value, time) and value.tzinfo is None for value in there):
        return pa.time64("us")
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


def fit_moment(value: Any, kind: pa.DataType) -> Moment | None:
    """Return a moment as a value of a column; None where it is not of its type."""
    if isinstance(value, time) or pa.types.is_time(kind):
        return value if isinstance(value, time) and value.tzinfo is None and pa.types.is_time(kind) else None
    if pa.types.is_date(kind) or not isinstance(value, date):
        return value if isinstance(value, date) and not isinstance(value, datetime) else None
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
        if not pa.types.is_temporal(field.type):
            return str(match[0]).replace(match["column"], column, 1)
        if match["value"]:
            operator = match["operator"] or _TURNED.get(match["turned"], match["turned"])
            return _compared(column, operator, match["value"], field.type)
        negation = "NOT " if match["not"] else ""
        if match["low"]:
            ends = ((">=", match["low"]), ("<=", match["high"]))
            return f"{negation}({' AND '.join(_compared(column, *end, field.type) for end in ends)})"
        if match["list"]:
            values = regex.findall(_LITERAL, match["list"], regex.IGNORECASE)
            return f"{negation}({' OR '.join(_compared(column, '=', value, field.type) for value in values)})"
        return column

    return str(_CONDITION.sub(condition, where))


def _compared(column: str, operator: str, literal: str, kind: pa.DataType) -> str:
    text = literal[literal.index("'") + 1 : -1]
    moment = read_moment(text)
    if moment is None or isinstance(moment, time) != pa.types.is_time(kind):
        wanted = "time such as '10:30'" if pa.types.is_time(kind) else "date or moment such as '2024-01-15T10:30'"
        raise ConfigurationError(f"The filter compares {column} with {text!r}, which is not a {wanted}.")
    if isinstance(moment, time):
        return f"{column} {operator} arrow_cast('{moment.isoformat()}', 'Time64(Microsecond)')"
    if pa.types.is_date(kind):
        day = moment.date() if isinstance(moment, datetime) else moment
        return f"{column} {operator} date '{day.isoformat()}'"
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            moment = _in_zone(moment, kind)
        return f"{column} {operator} {_timestamp(moment, kind)}"
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
