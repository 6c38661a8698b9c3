"""The columns of an index: its own, and those of the documents' metadata, each of one type and usable in a filter.

LanceDB compares a column only with a literal of its exact type. Filters have dates and times as text, of any precision
and offset; a date means the whole day; and whole numbers may be compared with 3.5. :func:`typed_literals` writes the
literals for LanceDB.
"""

from __future__ import annotations

import contextlib
import decimal
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from simlte_st.data.document import Document, UntypedText, composed
from simlte_st.data.tables import MISSING, value_at
from simlte_st.errors import ConfigurationError, DataError

OWN_COLUMNS = ("id", "part", "hash", "tokens", "searched", "text", "terms", "passage", "vector")

_HIT = "query rank score cosine bm25 reranked beginning snippet sentences words"
RESERVED = frozenset((*OWN_COLUMNS, *_HIT.split()))
"""Names of the index's own columns, and of the other fields of a hit."""

MOST_COLUMNS = 256
"""Maximum number of columns. More make a table slow, and usually come from records whose keys are values."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_TRUTH = {"true": True, "false": False}
_LARGEST = 2**63

_LITERAL = r"(?:(?:date|timestamp)\s*)?'(?:[^']|'')*'"
_COLUMN = r'(?:"[^"]+"|`[^`]+`|[\p{L}_][\p{L}\p{M}\p{N}_]*)'
_OPERATOR = r"<=|>=|<>|!=|==|=|<|>"
_CONDITION = regex.compile(
    rf"(?P<column>{_COLUMN})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})\s+BETWEEN\s+(?P<low>{_LITERAL})\s+AND\s+(?P<high>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})(?:(?=\s*(?:{_OPERATOR}|(?:NOT\s+)?(?:BETWEEN\s|IN\s*\())\s*(?P<bare>[-+.]?\d[-+.\w]*))|)"
    rf"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?:(?=\s*(?:{_OPERATOR})\s*(?P<column>{_COLUMN}))|)"
    rf"|{_LITERAL}",
    regex.IGNORECASE,
)

_WRITTEN = {
    ("string", "utf8"): "text in quotes, such as 'news'",
    ("int", "float", "double"): "a number without quotes",
    ("bool",): "true or false",
    ("date", "timestamp"): "a date or time in quotes, such as '2024-01-15'",
}


def own_schema(dimension: int) -> pa.Schema:
    """Return the index's own columns; a row is a document or one of its passages."""
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),  # 0 is the document, 1 its first passage
            pa.field("hash", pa.string(), nullable=False),  # of the text or passage
            pa.field("tokens", pa.int32(), nullable=False),
            pa.field("searched", pa.bool_(), nullable=False),  # False for a document that is found by its passages
            pa.field("text", pa.string()),  # of a document
            pa.field("terms", pa.string()),  # of its text, separated by spaces; BM25 searches them
            pa.field("passage", pa.string()),
            pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
        ]
    )


def column_name(name: str) -> str:
    """Return the name of a source's column in the index, which needs no quotes in a filter.

    Characters other than letters with their marks, digits and underscores become an underscore. A reserved name gets
    a trailing underscore; a name that begins with a digit or an underscore gets a leading ``x``.
    """
    plain = regex.sub(r"[^\p{L}\p{M}\p{N}_]", "_", composed(name))
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain.lower() in RESERVED else plain


class Metadata:
    """Fits the metadata of documents into typed columns.

    The first values of a column decide its type: truth values, whole numbers, numbers, dates, times with or without a
    zone, or text. Values keep the type of their source. In sources without types, such as CSV, a text becomes a
    number or truth value if it is written exactly like that value: "1.10" and "007" stay text. Decimals become numbers,
    lists and structs JSON, everything else text. Binary values are left out.

    Args:
        schema: The columns that the index has.
        wanted: The source's columns to keep, or paths into its structs; None for all, up to :data:`MOST_COLUMNS`.

    Attributes:
        types: The type of each column.
        misfits: The number of values that were left out, by column.
    """

    def __init__(self, schema: pa.Schema, wanted: Sequence[str] | None = None) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self.misfits: Counter[str] = Counter()
        self._wanted = None if wanted is None else list(wanted)

    def check_names(self, documents: Iterable[Document]) -> None:
        """Raise a DataError if the first documents lack a named column."""
        all_values = [document.metadata or {} for document in documents]
        there = {source: None for values in all_values for source in values}
        for name in self._wanted or ():
            if all(value_at(values, name) is MISSING for values in all_values):
                raise DataError(f"The documents have no column {name!r}. There are: {', '.join(there) or 'none'}.")

    def learn(self, documents: Iterable[Document]) -> list[pa.Field]:
        """Return the new columns, with their types."""
        first_values: dict[str, list[Any]] = {}
        sources: dict[str, str] = {}
        for document in documents:
            for source, value in self._own(document).items():
                name = column_name(source)
                if sources.setdefault(name, source) != source:
                    raise DataError(f"The columns {sources[name]!r} and {source!r} would both be {name!r}: rename one.")
                if name not in self.types and value not in (None, "") and not isinstance(value, bytes):
                    first_values.setdefault(name, []).append(value)
        kept = sorted(first_values, key=lambda name: -len(first_values[name]))[: MOST_COLUMNS - len(self.types)]
        fields = [pa.field(name, _type_of(values)) for name, values in first_values.items() if name in kept]
        self.types.update({field.name: field.type for field in fields})
        return fields

    def values(self, document: Document) -> dict[str, Any]:
        """Return a document's value for each column; None if it is missing or does not fit."""
        own = {column_name(source): value for source, value in self._own(document).items()}
        fitted = {name: _fit(own.get(name), kind) for name, kind in self.types.items()}
        self.misfits.update(n for n, value in own.items() if fitted.get(n) is None and value not in (None, ""))
        return fitted

    def _own(self, document: Document) -> dict[str, Any]:
        """Return the wanted values of a document, converted to a few types."""
        own = document.metadata or {}
        found = {name: value_at(own, name) for name in (own if self._wanted is None else self._wanted)}
        return {name: _plain(value) for name, value in found.items() if value is not MISSING}


def _plain(value: Any) -> bool | int | float | str | bytes | date | None:
    """Convert a value to one of a few types; None if it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # these two are pandas'
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif hasattr(value, "to_pydatetime"):  # of pandas
        value = value.to_pydatetime(warn=False)
    elif isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, decimal.Decimal):
        value = float(value)
    if value is None or isinstance(value, (date, bytes)):
        return value
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value if value == value else None  # NaN is not
    text = json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else value
    text = text if isinstance(text, str) else str(text)
    return type(text)(composed(text))  # an UntypedText stays one


def _type_of(values: list[Any]) -> pa.DataType:
    for kind in (pa.bool_(), pa.int64(), pa.float64()):
        if all(_fit(value, kind) is not None for value in values):
            return kind
    days = [value for value in values if isinstance(value, date) and not isinstance(value, datetime)]
    times = [value for value in values if isinstance(value, datetime)]
    aware = sum(value.tzinfo is not None for value in times)
    if len(days) + len(times) < len(values) or aware not in (0, len(values)):
        return pa.string()
    return pa.infer_type(times or days)


def _fit(value: bool | int | float | str | bytes | date | None, kind: pa.DataType) -> Any:
    """Convert a value to a column's type; None if it does not fit."""
    if value is None or isinstance(value, bytes):
        return None
    if kind == pa.string():
        return _as_text(value)
    if pa.types.is_temporal(kind):
        return _fit_moment(value, kind)
    if isinstance(value, str):  # a value may be written in it, where its source has no types
        text = value.strip() if isinstance(value, UntypedText) else ""
        value = _TRUTH.get(text.lower()) if kind == pa.bool_() else _number(text)
    if kind == pa.bool_() or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value if kind == pa.bool_() and isinstance(value, bool) else None
    if kind == pa.float64():
        return float(value) if not isinstance(value, int) or int(float(value)) == value else None
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST) else None


def _fit_moment(value: Any, kind: pa.DataType) -> date | None:
    if not isinstance(value, date):
        return None
    if pa.types.is_date(kind):
        return None if isinstance(value, datetime) else value
    if not isinstance(value, datetime):
        return _midnight(value, kind)
    return value if (value.tzinfo is None) == (kind.tz is None) else None


def _as_text(value: Any) -> str:
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> int | float | None:
    """Return the number whose standard form is the text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) else None


def read_moment(text: str) -> date | None:
    """Read a date or time in ISO 8601; None if it is neither."""
    written = regex.sub("[zZ]$", "+00:00", text.strip())  # which Python 3.10 does not read
    for read in (date.fromisoformat, datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            return read(written)
    return None


def _midnight(day: date, kind: pa.DataType) -> datetime:
    return _in_zone(datetime(day.year, day.month, day.day), kind)


def _in_zone(moment: datetime, kind: pa.DataType) -> datetime:
    """Put a time without a zone into the zone of a column."""
    if kind.tz is None:
        return moment
    zone = pa.scalar(0, kind).as_py().tzinfo
    return zone.localize(moment) if hasattr(zone, "localize") else moment.replace(tzinfo=zone)  # pytz's way


def typed_literals(where: str, schema: pa.Schema) -> str:
    """Return a condition whose literals have the types of the columns.

    Numbers that are not whole, or too large for a column of whole numbers, are compared as float64. Names of columns
    that SQL would not read by themselves, such as Hindi ones, get quotes.

    Raises:
        ConfigurationError: A value is not written in the form of its column's type.
    """
    names = {field.name.lower(): field for field in schema}

    def condition(match: regex.Match[str]) -> str:
        field = names.get((match["column"] or "").strip('"`').lower())
        bare, number = match["bare"] or match["number"], match["number"]
        if bare and field is not None and not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            raise ConfigurationError(f"The filter compares {field.name} with {bare}: write {form_of(field.type)}.")
        if number:
            return str(number) if number.isdecimal() and int(number) < _LARGEST else f"CAST({number} AS DOUBLE)"
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


def form_of(kind: Any) -> str:
    """Describe how a filter writes values of a type, given as Arrow's type or LanceDB's name."""
    return next((said for names, said in _WRITTEN.items() if str(kind).lower().startswith(names)), "another value")


def _compared(column: str, operator: str, literal: str, kind: pa.DataType) -> str:
    text = literal[literal.index("'") + 1 : -1]
    moment = read_moment(text)
    if moment is None:
        raise ConfigurationError(
            f"The filter compares {column} with {text!r}, which is not a date or time such as '2024-01-15T10:30'."
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
    """Return a time as an SQL literal, in UTC if it has a zone."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    written, zone = moment.isoformat(timespec="microseconds"), "None" if kind.tz is None else 'Some("UTC")'
    return f"arrow_cast('{written}{'Z' * (kind.tz is not None)}', 'Timestamp(Microsecond, {zone})')"
