"""Vectors of the sentences of documents: made when reasons are first asked for, and kept in a table of the index."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.errors import StoreError
from simlte_st.index.store import KEPT, VALUES, Store, connect, is_one_of, store_errors, text_hash

TABLE = "sentences"

_SCHEMA = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # hash of its text
        pa.field("sentences", pa.string(), nullable=False),  # hash of all of them: they may be cut otherwise one day
        pa.field("vectors", pa.binary(), nullable=False),  # float16, one after the other
    ]
)

logger = logging.getLogger(__name__)


class SentenceVectors:
    """The vectors of sentences that an index keeps."""

    def __init__(self, folder: Path, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self._folder, self._encode = folder, encode

    @cached_property
    def _table(self) -> Any:
        return connect(self._folder).create_table(TABLE, schema=_SCHEMA, exist_ok=True)

    def of(self, text: str, sentences: Sequence[str]) -> NDArray[np.float16]:
        """Return the vectors of a document's sentences, and keep them."""
        names = {"document": text_hash(text), "sentences": text_hash("\n".join(sentences))}
        if is_kept(self._folder):
            where = " AND ".join(is_one_of(column, [name]) for column, name in names.items())
            with store_errors(self._folder, "read"):
                kept = self._table.search().where(where).select(["vectors"]).limit(1).to_arrow()["vectors"].to_pylist()
            if kept:
                return np.frombuffer(kept[0], dtype=np.float16).reshape(len(sentences), -1)
        vectors = self._encode(sentences).astype(np.float16)
        try:
            with store_errors(self._folder, "written"):
                self._table.add(pa.Table.from_pylist([{**names, "vectors": vectors.tobytes()}], schema=_SCHEMA))
        except StoreError as error:
            logger.info("The vectors of sentences are not kept: %s", error)
        return vectors


def is_kept(folder: Path) -> bool:
    """Return whether an index has vectors of sentences."""
    return (folder / f"{TABLE}.lance").exists()


def remove_unused(folder: Path, store: Store) -> None:
    """Remove the vectors of documents that the index no longer has, and join small files."""
    if not is_kept(folder):
        return
    with store_errors(folder, "written"):
        table = connect(folder).open_table(TABLE)
        kept = {*table.search().select(["document"]).limit(None).to_arrow()["document"].to_pylist()}
        there = {*store.rows_of("hash", sorted(kept), ["hash"], "part = 0")["hash"].to_pylist()}
        for start in range(0, len(gone := sorted(kept - there)), VALUES):
            table.delete(is_one_of("document", gone[start : start + VALUES]))
        table.optimize(cleanup_older_than=KEPT)
