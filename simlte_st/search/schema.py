"""The columns of an index: its own, and those that documents bring along, of one type each and usable in a filter."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import regex

from simlte_st.data.document import Document, UntypedText, composed
from simlte_st.data.tables import MISSING, value_at
from simlte_st.errors import DataError
from simlte_st.search.moments import as_moment, fit_moment, moment_type, read_moment

OWN_COLUMNS = ("id", "part", "hash", "tokens", "searched", "text", "terms", "passage", "vector")

RESERVED = frozenset((*OWN_COLUMNS, "score", "cosine", "bm25", "reranked", "beginning", "sentences", "words", "seed"))
"""Names of the index's own columns, and of what a hit has beside them."""

MOST_COLUMNS = 256
"""More make a table slow, and come from records whose keys are values: the most frequent ones are kept."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_TRUTH = {"true": True, "false": False}
_LARGEST = 2**63


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
    """Return the name that a source's column has in the index, where a filter needs no quotes.

    Other characters than letters with their marks, digits and underscores become an underscore. A name of ours gets one
    at its end; a name that begins with a digit or an underscore gets an ``x`` before it.
    """
    plain = regex.sub(r"[^\p{L}\p{M}\p{N}_]", "_", composed(name))
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain.lower() in RESERVED else plain


class Metadata:
    """Fits the metadata of documents into typed columns.

    A column has the type of its first values: truth values, whole numbers, numbers, dates, moments with or without a
    zone, or text. Values keep the type of their source. Where a source has no types, as CSV, a text becomes a number or
    truth value if it is written exactly as that value is: "1.10" and "007" stay text. Decimals become numbers, lists
    and structs JSON, everything else text. Binary values are left out.

    Args:
        schema: The columns that there are.
        wanted: The source's columns to keep, or paths into its structs; None for all columns, of more than
            :data:`MOST_COLUMNS` the most frequent ones.
        dates: Columns of text that holds dates or moments (ISO 8601).

    Attributes:
        types: The type of each column.
        misfits: By column, the number of values left out (binary, or not of the column's type) and the first document.
        left_out: For how many documents each column beyond the most was left out.
    """

    def __init__(self, schema: pa.Schema, wanted: Sequence[str] | None = None, dates: Collection[str] = ()) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self.misfits: dict[str, tuple[int, str]] = {}
        self.left_out: Counter[str] = Counter()
        self._wanted = None if wanted is None else list(wanted)
        self._dates = set(dates)

    def check_names(self, documents: Iterable[Document]) -> None:
        """Raise :class:`DataError` if the first documents lack a column that was named, or an index has it as text."""
        all_values = [document.metadata or {} for document in documents]
        there = {source: None for values in all_values for source in values}
        for name in [*(self._wanted or ()), *self._dates]:
            if all(value_at(values, name) is MISSING for values in all_values):
                raise DataError(f"The documents have no column {name!r}. There are: {', '.join(there) or 'none'}.")
        for name in self._dates:
            if (kind := self.types.get(column_name(name))) is not None and not pa.types.is_temporal(kind):
                raise DataError(f"The column {name!r} holds {kind} in this index, not dates: make another index.")

    def learn(self, documents: Iterable[Document]) -> list[pa.Field]:
        """Return the columns that are new, with their types."""
        first_values: dict[str, list[Any]] = {}
        sources: dict[str, str] = {}
        for document in documents:
            for source, value in self._own(document).items():
                name = column_name(source)
                if sources.setdefault(name, source) != source:
                    raise DataError(f"The columns {sources[name]!r} and {source!r} would both be {name!r}: rename one.")
                if name not in self.types and (plain := self._plain(source, value)) not in (None, ""):
                    first_values.setdefault(name, []).append(plain)
        kept = sorted(first_values, key=lambda name: -len(first_values[name]))[: MOST_COLUMNS - len(self.types)]
        self.left_out.update({sources[name]: len(first_values[name]) for name in first_values if name not in kept})
        fields = [pa.field(name, _type_of(values)) for name, values in first_values.items() if name in kept]
        self.types.update({field.name: field.type for field in fields})
        return fields

    def values(self, document: Document) -> dict[str, Any]:
        """Return a document's value of each column; None where it has none, or one that does not fit."""
        own = {column_name(source): (source, value) for source, value in self._own(document).items()}
        plain = {name: self._plain(*own[name]) for name in self.types.keys() & own.keys()}
        fitted = {name: _fit(plain.get(name), kind) for name, kind in self.types.items()}
        for name, (_, value) in own.items():
            if _is_binary(value) or (fitted.get(name) is None and plain.get(name) not in (None, "")):
                count, first = self.misfits.get(name, (0, document.id))
                self.misfits[name] = (count + 1, first)
        return fitted

    def _own(self, document: Document) -> dict[str, Any]:
        own = document.metadata or {}
        names = [*own, *self._dates] if self._wanted is None else self._wanted
        return {name: value for name in names if (value := value_at(own, name)) is not MISSING}

    def _plain(self, source: str, value: Any) -> Any:
        plain = _plain(value)
        if source in self._dates and isinstance(plain, str):
            return read_moment(plain) or plain
        return plain


def _is_binary(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _plain(value: Any) -> bool | int | float | str | datetime.date | None:
    """Return a value as one of a few types; None where it is missing or binary."""
    if value is None or _is_binary(value) or type(value).__name__ in ("NAType", "NaTType"):  # these two are pandas'
        return None
    if (moment := as_moment(value)) is not None or isinstance(value, np.datetime64):
        return moment
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, decimal.Decimal):
        value = float(value)
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
    return moment_type(values) or pa.string()


def _fit(value: bool | int | float | str | datetime.date | None, kind: pa.DataType) -> Any:
    """Return a value in a column's type; None where it does not fit."""
    if value is None:
        return None
    if kind == pa.string():
        return as_text(value)
    if pa.types.is_temporal(kind):
        return fit_moment(value, kind)
    if isinstance(value, str):  # a value may be written in it, where its source has no types
        text = value.strip() if isinstance(value, UntypedText) else ""
        value = _TRUTH.get(text.lower()) if kind == pa.bool_() else _number(text)
    if kind == pa.bool_() or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value if kind == pa.bool_() and isinstance(value, bool) else None
    if kind == pa.float64():
        return float(value) if not isinstance(value, int) or int(float(value)) == value else None
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST) else None


def as_text(value: Any) -> str:
    """Return a value of a column as text."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value) if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> int | float | None:
    """Return the number that is written exactly as the text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) else None
