"""The columns of an index: its own, and those that documents bring along, of one type each and usable in a filter."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from simlte_st.data.document import Document
from simlte_st.data.tables import UntypedText
from simlte_st.errors import DataError
from simlte_st.files import valid_unicode

OWN_COLUMNS = ("id", "part", "hash", "tokens", "searched", "text", "terms", "passage", "vector")

RESERVED = frozenset((*OWN_COLUMNS, "score", "cosine", "bm25", "reranked", "beginning", "sentences", "words", "seed"))
"""Names of the index's own columns, and of what a hit has beside them."""

MOST_COLUMNS = 256
"""More make a table slow, and come from records whose keys are values."""

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

    Other characters than letters, digits and underscores become an underscore. A name of ours gets one at its end; a
    name that begins with a digit or an underscore gets an ``x`` before it.
    """
    plain = re.sub(r"\W", "_", name)
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain.lower() in RESERVED else plain


class Metadata:
    """Fits the metadata of documents into typed columns.

    A column has the type of its first values: truth values, whole numbers, numbers or text. Values keep the type of
    their source. Where a source has no types, as CSV, a text becomes a number or truth value if it is written exactly
    as that value is: "1.10" and "007" stay text. Dates, times and UUIDs become text (ISO), decimals numbers where 64
    bits hold them exactly, everything else JSON. Binary values are left out.

    Attributes:
        types: The type of each column.
        misfits: By column, the number of values left out (binary, or not of the column's type) and the first document.
        renamed: New names of columns, by the old ones.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self.misfits: dict[str, tuple[int, str]] = {}
        self.renamed: dict[str, str] = {}

    def learn(self, documents: Iterable[Document]) -> list[pa.Field]:
        """Return the columns that are new, with their types."""
        first_values: dict[str, list[Any]] = {}
        sources: dict[str, str] = {}
        for document in documents:
            for source, value in (document.metadata or {}).items():
                name = column_name(source)
                if sources.setdefault(name, source) != source:
                    raise DataError(f"The columns {sources[name]!r} and {source!r} would both be {name!r}: rename one.")
                if name != source:
                    self.renamed[source] = name
                if name not in self.types and (plain := _plain(value)) not in (None, ""):
                    first_values.setdefault(name, []).append(plain)
        fields = [pa.field(name, _type_of(values)) for name, values in first_values.items()]
        if len(self.types) + len(fields) > MOST_COLUMNS:
            raise DataError(
                f"The documents have more than {MOST_COLUMNS} other columns, such as {fields[-1].name!r}: keep those "
                "that are worth filtering by."
            )
        self.types.update({field.name: field.type for field in fields})
        return fields

    def values(self, document: Document) -> dict[str, Any]:
        """Return a document's value of each column; None where it has none, or one that does not fit."""
        own = {column_name(name): value for name, value in (document.metadata or {}).items()}
        fitted = {name: _fit(_plain(own.get(name)), kind) for name, kind in self.types.items()}
        for name, value in own.items():
            if _is_binary(value) or (fitted.get(name) is None and _plain(value) not in (None, "")):
                count, first = self.misfits.get(name, (0, document.id))
                self.misfits[name] = (count + 1, first)
        return fitted


def _is_binary(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _plain(value: Any) -> bool | int | float | str | None:
    """Return a value as one of four types; None where it is missing or binary."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or _is_binary(value) or type(value).__name__ in ("NAType", "NaTType"):  # these two are pandas'
        return None
    if isinstance(value, decimal.Decimal):
        value = float(value) if decimal.Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value if value == value else None  # NaN is not
    if isinstance(value, (datetime.date, datetime.time)):
        value = value.isoformat()
    if isinstance(value, (uuid.UUID, datetime.timedelta)):
        value = str(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return type(text)(valid_unicode(text))  # an UntypedText stays one


def _type_of(values: list[Any]) -> pa.DataType:
    for kind in (pa.bool_(), pa.int64(), pa.float64()):
        if all(_fit(value, kind) is not None for value in values):
            return kind
    return pa.string()


def _fit(value: bool | int | float | str | None, kind: pa.DataType) -> Any:
    """Return a value in a column's type; None where it does not fit."""
    if value is None:
        return None
    if kind == pa.string():
        return str(value) if isinstance(value, str) else json.dumps(value)
    if isinstance(value, str):  # a value may be written in it, where its source has no types
        text = value.strip() if isinstance(value, UntypedText) else ""
        value = _TRUTH.get(text.lower()) if kind == pa.bool_() else _number(text)
    if kind == pa.bool_() or isinstance(value, bool) or value is None:
        return value if kind == pa.bool_() and isinstance(value, bool) else None
    if kind == pa.float64():
        return float(value) if not isinstance(value, int) or int(float(value)) == value else None
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST) else None


def _number(text: str) -> int | float | None:
    """Return the number that is written exactly as the text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) else None
