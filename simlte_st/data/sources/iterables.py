"""Iterables of strings, of Documents or of mappings."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simlte_st.data.rows import Columns, Event, RawRow, ReadSettings
from simlte_st.data.sources.base import Source
from simlte_st.data.tables import item_rows, mappings_table, read_table


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open an iterable, unless its items are column names, splits or numbers, which are no documents."""
    if isinstance(source, (Mapping, bytes, bytearray)) or not hasattr(source, "__iter__") or hasattr(source, "columns"):
        return None
    if getattr(source, "ndim", 1) == 0:  # an array of one value, which cannot be gone through
        return None
    name = f"the {type(source).__name__}"
    once = isinstance(source, Iterator)
    return Source(name, lambda: _events(source, name, settings.columns), lambda: length(source), once)


def length(source: Any) -> int | None:
    """Return the number of items of an iterable, where it is known."""
    size = int(operator.length_hint(source, -1))
    return None if size < 0 else size


def _events(source: Iterable[Any], name: str, columns: Columns) -> Iterator[Event]:
    rows = item_rows(source, name, columns)
    for row in rows:
        if isinstance(row, RawRow):  # what comes before needs no columns, so it needs no look ahead
            yield from read_table(mappings_table(name, itertools.chain([row], rows)), columns)
            return
        yield row
