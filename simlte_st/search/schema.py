"""The columns of an index: its own, and typed metadata columns for filters.

LanceDB compares a column only with a literal of its exact type. Our filters are more lenient: dates and times are text
with any precision and time zone, a date means the whole day, and integers can be compared with 3.5.
:func:`typed_literals` rewrites these literals for LanceDB.
"""

from __future__ import annotations

import contextlib
import decimal
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import regex

from simlte_st.errors import ConfigurationError, DataError, list_names
from simlte_st.files import to_json
from simlte_st.reading.document import Document, UntypedText, to_nfc
from simlte_st.reading.tables import MISSING, value_at

OWN_COLUMNS = ("id", "part", "hash", "tokens", "searched", "text", "terms", "passage", "vector")

_HIT = "query rank score cosine bm25 reranked identical beginning snippet sentences words"
RESERVED = frozenset((*OWN_COLUMNS, *_HIT.split()))
"""Names of the index's own columns, and of the other fields of a hit."""

MAX_COLUMNS = 256
"""Maximum number of metadata columns; the most frequent ones are kept, because more would slow the table down."""

MAX_EXACT = 2**53
"""Floats represent all integers up to this one."""

Value: TypeAlias = bool | int | float | str | bytes | date | None
"""A metadata value, converted to one of a few types."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_BOOLEANS = {"true": True, "false": False}
_LARGEST = 2**63
_ENDS = (1, 9999)  # years in which a time zone conversion may overflow

_LITERAL = r"(?:(?:date|timestamp)\s*)?'(?:[^']|'')*'"
_COLUMN = r'(?:"[^"]+"|`[^`]+`|[\p{L}_][\p{L}\p{M}\p{N}_]*)'
_REVERSED = str.maketrans("<>", "><")
_OPERATOR = r"<=|>=|<>|!=|==|=|<|>"
_CONDITION = regex.compile(
    rf"(?P<column>{_COLUMN})\s*(?P<operator>{_OPERATOR})\s*(?P<value>{_LITERAL})"
    rf"|(?P<value>{_LITERAL})\s*(?P<reverse>{_OPERATOR})\s*(?P<column>{_COLUMN})"
    rf"|(?P<column>{_COLUMN})\s+(?P<not>NOT\s+)?BETWEEN\s+(?P<low>{_LITERAL})\s+AND\s+(?P<high>{_LITERAL})"
    rf"|(?P<column>{_COLUMN})\s+(?P<not>NOT\s+)?IN\s*\(\s*(?P<element>{_LITERAL})(?:\s*,\s*(?P<element>{_LITERAL}))*\s*\)"
    rf"|(?<=(?:{_OPERATOR}|[(,]|\b(?:AND|OR|BETWEEN))\s*)(?P<plus>\+\s*)(?=[\d.])"
    rf"|(?P<column>{_COLUMN})(?:(?=\s*(?:{_OPERATOR}|(?:NOT\s+)?(?:BETWEEN\s|IN\s*\())\s*(?P<bare>[-+.]?\d[-+.\w]*))|)"
    rf"|(?P<number>(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?:(?=\s*(?:{_OPERATOR})\s*(?P<column>{_COLUMN}))|)"
    rf"|{_LITERAL}",
    regex.IGNORECASE,
)

_NOTATIONS = {
    ("string", "utf8"): "text in quotes, such as 'news'",
    ("int", "float", "double"): "a number without quotes",
    ("bool",): "true or false",
    ("date", "timestamp"): "a date or time in quotes, such as '2024-01-15'",
}


_REFUSED = re.compile(r"^.*(?:[Ee]rror|[Ii]nput|planning)[:,] (?:resolving filter expression .*input: )?", re.DOTALL)
_LITERAL_TYPE = re.compile(r"Received literal \w+\((.*)\) and could not convert to literal of type '(.*)'")
_UNSUPPORTED = {
    r"to coerce .* I?LIKE": "LIKE compares text, and this column has another type: use =, <, > or BETWEEN",
    r"is not supported|not implemented": "it can use only comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR and NOT",
}
"""Explanations of LanceDB's messages, by pattern."""


def own_schema(dimension: int) -> pa.Schema:
    """Return the index's own columns; each row is a document or a passage."""
    fields = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("part", pa.int32(), nullable=False),  # 0 for the document, 1 for its first passage
        pa.field("hash", pa.string(), nullable=False),  # of the text or passage
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("searched", pa.bool_(), nullable=False),  # False for a document with passages
        pa.field("text", pa.string()),  # of the document
        pa.field("terms", pa.string()),  # of its text, separated by spaces, for BM25
        pa.field("passage", pa.string()),
        pa.field("vector", pa.list_(pa.float32(), dimension), nullable=False),
    ]
    return pa.schema(fields)


def column_name(name: str) -> str:
    """Return the name of a source column in the index, which needs no quotes in filters.

    Characters other than letters, combining marks, digits and underscores become underscores. Reserved names get the
    suffix ``_``; names that begin with a digit or an underscore get the prefix ``x``.
    """
    plain = regex.sub(r"[^\p{L}\p{M}\p{N}_]", "_", to_nfc(name))
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain.lower() in RESERVED else plain


class Metadata:
    """Converts the metadata of documents to typed columns.

    The first values of a column determine its type: boolean, integer, float, date, time with or without a time zone, or
    text. Values keep the type that they have in the source. In untyped sources such as CSV, text becomes a number or a
    boolean only if it is written in standard form: "1.10" and "007" stay text. Decimals become integers, floats or, if
    a float would change their whole part, text; lists and structs become JSON, and everything else becomes text. Binary
    values are dropped. Integers followed by fractions become floats; see ``fractional``.

    Args:
        schema: Existing metadata columns of the index.
        columns: Source columns to keep, or paths into structs; None for all, up to :data:`MAX_COLUMNS`.

    Attributes:
        types: Type of each column.
        misfits: Number of dropped values, by column.
        fractional: The integer columns that need floats to hold all numbers of the last documents.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[str] | None = None) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self.misfits: Counter[str] = Counter()
        self.fractional: list[str] = []
        self._columns = None if columns is None else list(columns)

    def check_names(self, documents: Iterable[Document]) -> None:
        """Raise a DataError if the first documents lack a requested column."""
        metadata = [document.metadata or {} for document in documents]
        for name in self._columns or ():
            if all(value_at(values, name) is MISSING for values in metadata):
                names = list_names(dict.fromkeys(chain(*metadata)))
                raise DataError(f"The documents have no column {name!r}. Their columns are: {names}.")

    def learn(self, documents: Iterable[Document]) -> list[pa.Field]:
        """Return the new columns of some documents, with their types."""
        first_values: dict[str, list[Value]] = {}
        sources: dict[str, str] = {}
        fits: dict[str, set[tuple[bool, bool]]] = {}  # whether the values of an integer column are integers, and floats
        for document in documents:
            for source, value in self._select_values(document).items():
                name = column_name(source)
                if sources.setdefault(name, source) != source:
                    raise DataError(f"The columns {sources[name]!r} and {source!r} would both be {name!r}: rename one.")
                if name not in self.types and value not in (None, "") and not isinstance(value, bytes):
                    first_values.setdefault(name, []).append(value)
                elif self.types.get(name) == pa.int64():
                    pair = _fit(value, pa.int64()) is not None, _fit(value, pa.float64()) is not None
                    fits.setdefault(name, set()).add(pair)
        self.fractional = [name for name, seen in fits.items() if (False, True) in seen and (True, False) not in seen]
        by_frequency = sorted(first_values, key=lambda name: -len(first_values[name]))
        names = {*by_frequency[: MAX_COLUMNS - len(self.types)]}
        fields = [pa.field(name, _infer_type(values)) for name, values in first_values.items() if name in names]
        self.types.update({field.name: field.type for field in fields})
        return fields

    def values(self, document: Document) -> dict[str, Value]:
        """Return a document's values by column; None if a value is missing or does not fit."""
        values = {column_name(source): value for source, value in self._select_values(document).items()}
        fitted = {name: _fit(values.get(name), kind) for name, kind in self.types.items()}
        self.misfits.update(n for n, value in values.items() if fitted.get(n) is None and value not in (None, ""))
        return fitted

    def _select_values(self, document: Document) -> dict[str, Value]:
        """Return a document's values in the requested columns, converted to a few types."""
        metadata = document.metadata or {}
        values = {name: value_at(metadata, name) for name in (metadata if self._columns is None else self._columns)}
        return {name: _convert(value) for name, value in values.items() if value is not MISSING}


def _convert(value: Any) -> Value:
    """Convert a value to one of a few types; None if it is missing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # pandas' missing values
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    elif hasattr(value, "to_pydatetime"):  # a pandas Timestamp
        value = value.to_pydatetime(warn=False)
    elif isinstance(value, np.generic):
        value = value.item()
    elif isinstance(value, decimal.Decimal):
        value = _convert_decimal(value)
    if value is None or isinstance(value, (date, bytes)):
        return value
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value if value == value else None  # NaN, which differs from itself, is a missing value
    text = to_json(value, indent=None, default=str) if isinstance(value, (list, dict)) else value
    text = text if isinstance(text, str) else str(text)
    return type(text)(to_nfc(text))  # keeps the class of an UntypedText


def _convert_decimal(value: decimal.Decimal) -> int | float | str:
    """Convert a decimal to an integer or a float; to text if a float would change its whole part."""
    is_whole = value.is_finite() and value == value.to_integral_value()
    if value.is_finite() and abs(value) > MAX_EXACT:
        return int(value) if is_whole else str(value)
    return int(value) if is_whole and int(value.as_tuple().exponent) >= 0 else float(value)


def _infer_type(values: list[Value]) -> pa.DataType:
    # Whole floats suggest that fractions may follow.
    has_floats = any(isinstance(_number(v) if isinstance(v, UntypedText) else v, float) for v in values)
    numbers = (pa.float64(), pa.int64()) if has_floats else (pa.int64(), pa.float64())
    for kind in (pa.bool_(), *numbers):
        if all(_fit(value, kind) is not None for value in values):
            return kind
    days = [value for value in values if isinstance(value, date) and not isinstance(value, datetime)]
    times = [value for value in values if isinstance(value, datetime)]
    aware = sum(value.tzinfo is not None for value in times)
    if len(days) + len(times) < len(values) or aware not in (0, len(values)):
        return pa.string()
    return pa.infer_type(times or days)


def _fit(value: Value, kind: pa.DataType) -> Value:
    """Convert a value to a column's type; None if it does not fit."""
    if value is None or isinstance(value, bytes) or (pa.types.is_temporal(kind) and not isinstance(value, date)):
        return None
    if isinstance(value, date):
        return _fit_moment(value, kind)
    if kind == pa.string():
        return str(value) if isinstance(value, str) else json.dumps(value)
    if isinstance(value, str):  # text from an untyped source may represent a number or a boolean
        text = value.strip() if isinstance(value, UntypedText) else ""
        value = _BOOLEANS.get(text.lower()) if kind == pa.bool_() else _number(text)
    if kind == pa.bool_() or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value if kind == pa.bool_() and isinstance(value, bool) else None
    if kind == pa.float64():
        return float(value) if not isinstance(value, int) or int(float(value)) == value else None
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST) else None


def _fit_moment(value: date, kind: pa.DataType) -> date | str | None:
    if kind == pa.string():
        return value.isoformat()
    if not isinstance(value, datetime):
        return value if pa.types.is_date(kind) else _midnight(value, kind) if pa.types.is_timestamp(kind) else None
    return value if pa.types.is_timestamp(kind) and (value.tzinfo is None) == (kind.tz is None) else None


def _number(text: str) -> int | float | None:
    """Parse a number written in standard form; None if the text is anything else."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) else None


def read_moment(text: str) -> date | None:
    """Parse an ISO 8601 date or time; None if it is not one."""
    text = text.strip().upper()  # Python does not accept "z"
    for parse in (date.fromisoformat, datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            return parse(text)
    return None


def _midnight(day: date, kind: pa.DataType) -> datetime:
    return _in_zone(datetime(day.year, day.month, day.day), kind)


def _in_zone(moment: datetime, kind: pa.DataType) -> datetime:
    """Attach the column's time zone to a naive datetime."""
    if kind.tz is None or moment.year in _ENDS:
        return moment
    zone = pa.scalar(0, kind).as_py().tzinfo
    return zone.localize(moment) if hasattr(zone, "localize") else moment.replace(tzinfo=zone)  # for pytz


def typed_literals(where: str, schema: pa.Schema) -> str:
    """Rewrite the literals in a condition to match the types of its columns.

    Numbers with a fraction, or too large for int64, are compared as float64. Column names that SQL would not accept,
    such as Hindi names, are quoted.

    Raises:
        ConfigurationError: A value is not written as its column's type requires.
    """
    fields = {field.name.lower(): field for field in schema} | {field.name: field for field in schema}

    def rewrite(match: regex.Match[str]) -> str:
        name = (match["column"] or "").strip('"`')
        field = fields.get(name) or fields.get(name.lower())  # names may differ only in case
        bare, number = match["bare"] or match["number"], match["number"]
        if bare and field is not None and not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            notation = describe_notation(field.type)
            raise ConfigurationError(f"The filter compares {field.name} with {bare}: write {notation}.")
        if match["plus"]:
            return ""  # LanceDB does not accept a plus sign
        if number:
            return str(number) if number.isdecimal() and int(number) < _LARGEST else f"CAST({number} AS DOUBLE)"
        if field is None:
            return str(match[0])
        is_plain = field.name.isascii() and field.name.isidentifier()
        column: str = match["column"] if is_plain else f"`{field.name}`"
        if pa.types.is_temporal(field.type) and match["value"]:
            operator = match["operator"] or match["reverse"].translate(_REVERSED)
            return _compare_moments(column, operator, match["value"], field.type)
        if pa.types.is_temporal(field.type) and (match["low"] or match["element"]):
            pairs = [("=", element) for element in match.captures("element")]
            pairs = pairs or [(">=", match["low"]), ("<=", match["high"])]
            conditions = (_compare_moments(column, *pair, field.type) for pair in pairs)
            return f"({'NOT ' if match['not'] else ''}({(' AND ' if match['low'] else ' OR ').join(conditions)}))"
        start, end = (offset - match.start() for offset in match.span("column"))
        return f"{match[0][:start]}{column}{match[0][end:]}"

    return str(_CONDITION.sub(rewrite, where))


def describe_notation(kind: object) -> str:
    """Describe how filters write values of a type, given as an Arrow type or LanceDB's name for it."""
    name = str(kind).lower()
    return next((notation for names, notation in _NOTATIONS.items() if name.startswith(names)), "another value")


def _compare_moments(column: str, operator: str, literal: str, kind: pa.DataType) -> str:
    """Return a condition that compares a column with a date or time."""
    text = literal[literal.index("'") + 1 : -1]
    moment = read_moment(text)
    if moment is None:
        raise ConfigurationError(f"The filter compares {column} with {text!r}: write {describe_notation(kind)}.")
    if pa.types.is_date(kind):
        day = moment.date() if isinstance(moment, datetime) else moment
        return f"{column} {operator} date '{day.isoformat()}'"
    if isinstance(moment, datetime):
        return f"{column} {operator} {_timestamp(moment if moment.tzinfo else _in_zone(moment, kind), kind)}"
    # A day ends when the next one begins.
    next_day = _midnight(moment + timedelta(days=1), kind) if moment < date.max else datetime.max
    first, after = _timestamp(_midnight(moment, kind), kind), _timestamp(next_day, kind)
    if operator in ("=", "=="):
        return f"({column} >= {first} AND {column} < {after})"
    if operator in ("!=", "<>"):
        return f"({column} < {first} OR {column} >= {after})"
    return f"{column} {'<' if operator[0] == '<' else '>='} {first if operator in ('<', '>=') else after}"


def _timestamp(moment: datetime, kind: pa.DataType) -> str:
    """Return a time as an SQL literal, converted to UTC if it has a time zone."""
    if moment.tzinfo is not None and moment.year not in _ENDS:
        moment = moment.astimezone(UTC)
    moment = moment.replace(tzinfo=None)
    text, zone = moment.isoformat(timespec="microseconds"), "None" if kind.tz is None else 'Some("UTC")'
    return f"arrow_cast('{text}{'Z' * (kind.tz is not None)}', 'Timestamp(Microsecond, {zone})')"


def explain_filter_error(error: Exception) -> str:
    """Explain why LanceDB refuses a filter."""
    problem = re.split(r"\.? (?:Valid|Did you)", _REFUSED.sub("", first_line(error)))[0].rstrip(".")
    problem = next((hint for pattern, hint in _UNSUPPORTED.items() if re.search(pattern, problem)), problem)
    literal = _LITERAL_TYPE.search(problem)
    return f"it compares a column with {literal[1]}: write {describe_notation(literal[2])}" if literal else problem


def first_line(error: Exception) -> str:
    """Return the first line of a message, without the location in LanceDB's source."""
    return re.sub(r",? /\S+\.rs:\d+.*", "", next(iter(str(error).splitlines()), type(error).__name__)).rstrip(". ")
