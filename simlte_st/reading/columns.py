"""Document titles, and the types of metadata columns: numbers, dates, categories or text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any, Literal

import pyarrow as pa

from simlte_st.errors import DataError
from simlte_st.reading.document import Document

Kind = Literal["number", "date", "category", "text"]

CLASSES = 100
"""Maximum number of distinct values in a category column."""

TITLES = ("title", "headline", "subject", "name")
"""Default title columns, in order of preference."""

_TITLE_LENGTH = 120
_TITLE_LETTERS = 10
_MIN_SHARE = 0.9  # of numbers or dates in a column of this type; the rest are errors such as "n/a"
_VALUE_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source, with its type."""

    name: str
    kind: Kind
    values: Sequence[object]  # None if missing
    numbers: Sequence[float | None]  # dates are seconds since 1970; None for other values

    def short_values(self) -> list[str]:
        """Return the values as text of limited length; missing values are empty."""
        return ["" if value is None else _shorten(str(value), _VALUE_LENGTH) for value in self.values]

    def to_arrow(self) -> pa.Array:
        """Return the values as an Arrow array; as text if no Arrow type fits them all."""
        try:
            return pa.array(self.values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return pa.array([None if value is None else str(value) for value in self.values], pa.string())


def collect_columns(documents: Sequence[Document]) -> list[Column]:
    """Return the columns of documents, in order of first occurrence."""
    names = dict.fromkeys(name for document in documents for name in document.metadata or {})
    return [infer_column(name, [(document.metadata or {}).get(name) for document in documents]) for name in names]


def document_titles(documents: Sequence[Document], columns: Sequence[Column], name: str | None = None) -> list[str]:
    """Return a title for each document, from a column or the first line of its text."""
    titles = title_column([column.name for column in columns], name)
    values = next((column.short_values() for column in columns if column.name == titles), [""] * len(documents))
    return [document_title(value, document.text) for value, document in zip(values, documents, strict=True)]


def title_column(names: Sequence[str], name: str | None = None) -> str | None:
    """Return the title column: the named one, or one of :data:`TITLES`, or None."""
    if name is None:
        return next((column for title in TITLES for column in names if column.lower() == title), None)
    if name not in names:
        raise DataError(f"title={name!r}: there is no such column. The columns are: {', '.join(names) or 'none'}.")
    return name


def document_title(value: object, text: str) -> str:
    """Return the title of a document: its value in the title column, or the first line of its text.

    Short lines, such as "Hello,", are joined with the next line.
    """
    title = "" if value is None else " ".join(str(value).split())
    lines = [] if title else text.lstrip()[: 2 * _TITLE_LENGTH].split("\n")
    for line in lines:
        if sum(map(str.isalpha, title)) >= _TITLE_LETTERS:
            break
        title = " ".join([title, *line.split()]).lstrip()
    return _shorten(title, _TITLE_LENGTH)


def infer_column(name: str, values: Sequence[object]) -> Column:
    """Determine the type of a column from its values."""
    values = [None if _is_missing(value) else value for value in values]
    present = [value for value in values if value is not None]
    converters: dict[Kind, Callable[[object], float | None]] = {"number": _number, "date": _seconds}
    for kind, convert in converters.items():
        numbers = [None if value is None else convert(value) for value in values]
        count = sum(number is not None for number in numbers)
        if count and count >= _MIN_SHARE * len(present):
            return Column(name, kind, values, numbers)
    classes = {str(value) for value in present}
    is_category = 1 < len(classes) <= CLASSES and len(classes) < len(present)
    return Column(name, "category" if is_category else "text", values, [None] * len(values))


def _is_missing(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, date, datetime)):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):  # integers of 309 digits or more overflow
        return None
    return number if math.isfinite(number) else None


def _seconds(value: object) -> float | None:
    """Return a date or an ISO 8601 text as seconds since 1970; without a time zone, UTC is assumed."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day)
        if not isinstance(moment, datetime):
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
