"""The columns that documents bring along: names that a filter can use, and one type a column."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from simlte_st.data.document import Document
from simlte_st.data.tables import UntypedText
from simlte_st.errors import DataError
from simlte_st.files import valid_unicode
from simlte_st.index.store import OWN_COLUMNS

MOST_COLUMNS = 256
"""More make a table slow, and come from records whose keys are values."""

RESERVED = frozenset((*OWN_COLUMNS, "score", "cosine", "bm25", "beginning", "sentences", "words", "seed"))
"""Names of the index's own columns and of what a hit has beside them."""

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_TRUTH = {"true": True, "false": False}
_LARGEST = 2**63


def column_name(name: str) -> str:
    """Return the name that a source's column has in the index.

    What is no letter, digit or underscore becomes an underscore, so that a filter needs no quotes; a name of ours gets
    one after it, and a name that begins with a digit or an underscore an ``x`` before it.
    """
    plain = re.sub(r"\W", "_", name)
    if not plain[:1].isalpha():
        plain = f"x{plain}"
    return f"{plain}_" if plain.lower() in RESERVED else plain


class Metadata:
    """Brings metadata to the columns of an index.

    A column has the type of its first values: truth values, whole numbers, numbers or text. Values keep the type that
    they have in their source. Where a source has no types, as CSV, numbers and truth values are written as text, and
    become such where nothing of how they are written is lost: "1.10" and "007" stay text. What is none of these becomes
    text: dates, times and UUIDs as they are written (ISO), the rest as JSON. Decimals are numbers where a number of 64
    bits is exact, else text. Binary values have no place.

    Attributes:
        misfits: By column, how many values were left out, binary ones and those that are not of the column's type, and
            the first document.
        renamed: New names of columns, by the old ones.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self.misfits: dict[str, tuple[int, str]] = {}
        self.renamed: dict[str, str] = {}

    def learn(self, documents: Iterable[Document]) -> list[pa.Field]:
        """Find the columns that are new, and their types."""
        first_values: dict[str, list[Any]] = {}
        sources: dict[str, str] = {}
        for document in documents:
            for source, value in (document.metadata or {}).items():
                name = column_name(source)
                if sources.setdefault(name, source) != source:
                    raise DataError(f"The columns {sources[name]!r} and {source!r} would both be {name!r}: rename one.")
                if name != source:
                    self.renamed[source] = name
                if name not in self.types and not _is_binary(value) and (plain := _plain(value)) not in (None, ""):
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
        own: Mapping[str, Any] = {column_name(name): each for name, each in (document.metadata or {}).items()}
        fitted = {}
        for name, kind in self.types.items():
            plain = None if _is_binary(own.get(name)) else _plain(own.get(name))
            fitted[name] = None if plain is None else _fit(plain, kind)
            if fitted[name] is None and plain not in (None, ""):
                self._count_misfit(name, document)
        for name, value in own.items():
            if _is_binary(value):
                self._count_misfit(name, document)
        return fitted

    def _count_misfit(self, name: str, document: Document) -> None:
        count, first = self.misfits.get(name, (0, document.id))
        self.misfits[name] = (count + 1, first)


def _is_binary(value: Any) -> bool:
    return isinstance(value, (bytes, bytearray, memoryview))


def _plain(value: Any) -> bool | int | float | str | None:
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        return None  # the named ones are pandas'
    if isinstance(value, decimal.Decimal):
        value = float(value) if decimal.Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, int) and abs(value) >= _LARGEST:
        return str(value)
    if isinstance(value, (bool, int, float)):
        return value
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


def _fit(value: bool | int | float | str, kind: pa.DataType) -> Any:
    """Return a value in a column's type; None where it has no place there."""
    if kind == pa.string():
        return str(value) if isinstance(value, str) else json.dumps(value)
    if kind == pa.bool_():
        return value if isinstance(value, bool) else _TRUTH.get(_untyped(value).lower())
    if isinstance(value, str):
        number = _number(_untyped(value))
        if number is None:
            return None
        value = number
    if isinstance(value, bool):
        return None
    if kind == pa.float64():
        return float(value) if not isinstance(value, int) or int(float(value)) == value else None
    return int(value) if isinstance(value, int) or (value.is_integer() and abs(value) < _LARGEST) else None


def _untyped(value: bool | int | float | str) -> str:
    """Return a text in which a value may be written; none where the source has types, and it is one."""
    return value.strip() if isinstance(value, UntypedText) else ""


def _number(text: str) -> int | float | None:
    """Return the number that a text is, if it is written as this number is."""
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        number = float(text)
    except ValueError:
        return None
    return number if repr(number) == text and math.isfinite(number) else None
