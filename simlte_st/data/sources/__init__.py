"""The table of sources: a new kind is a file of this folder and a line of :data:`KINDS`.

Nothing here judges a text; that is the reader's work (``documents.py``). What can go wrong before there is a text (a
malformed line, a file that cannot be decoded) is given as a ``Skip``, so that the reader can count it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simlte_st.data.formats import DESCRIPTION
from simlte_st.data.rows import ReadSettings
from simlte_st.data.sources import datasets, files, frames, hub, iterables, several
from simlte_st.data.sources.base import Source
from simlte_st.errors import DataError

KINDS: tuple[tuple[str, Callable[[Any, ReadSettings], Source | None]], ...] = (
    (hub.FORM, hub.open_source),
    (DESCRIPTION, files.open_source),
    ("a list of these", several.open_source),
    ("a datasets.Dataset or IterableDataset", datasets.open_source),
    ("a pandas or polars DataFrame or a pyarrow.Table, or a column of one", frames.open_source),
    ("an iterable of strings, of Documents or of mappings with a text", iterables.open_source),
)
"""Each kind in words, and what opens a source of it and gives None for any other."""


def open_source(source: Any, settings: ReadSettings) -> Source:
    """Open a source by what it is."""
    for _, open_one in KINDS:
        if (opened := open_one(source, settings)) is not None:
            return opened
    raise DataError(
        f"A {type(source).__name__} is no source of documents (of a DatasetDict, pass one split; collect a "
        f"LazyFrame). Documents are read from {'; '.join(words for words, _ in KINDS)}."
    )
