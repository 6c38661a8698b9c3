"""Vectors of pieces of documents, made when they are first needed and kept in a table of the index."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.errors import StoreError
from simlte_st.search.store import KEPT, VALUES, Store, connect, is_one_of, store_errors, text_hash

TABLE = "sentences"

_SCHEMA = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # hash of its text
        pa.field("sentences", pa.string(), nullable=False),  # hash of all of them: another version may split otherwise
        pa.field("vectors", pa.binary(), nullable=False),  # float16, one after the other
    ]
)

_VERSIONS = 64  # of the table, after which small files are joined: each query may add one

logger = logging.getLogger(__name__)


class KeptVectors:
    """The vectors of sentences or passages of documents.

    Several processes may read and add: LanceDB's commits are atomic, and rows are only ever added under their hashes.
    """

    def __init__(
        self, folder: Path, encode: Callable[[Sequence[str]], NDArray[np.float32]], model: str | None = None
    ) -> None:
        self._folder, self._encode, self._model = folder, encode, [] if model is None else [model]

    @cached_property
    def _table(self) -> Any:
        return connect(self._folder).create_table(TABLE, schema=_SCHEMA, exist_ok=True)

    def of(self, groups: Sequence[tuple[str, Sequence[str]]]) -> list[NDArray[np.float16]]:
        """Return the vectors of each group, a document and some texts of it, and keep them."""
        names = [(text_hash(text), text_hash("\n".join([*self._model, *pieces]))) for text, pieces in groups]
        vectors = self._kept(names)
        missing = {name: pieces for name, (_, pieces) in zip(names, groups, strict=True) if name not in vectors}
        if missing:
            made = iter(self._encode([piece for pieces in missing.values() for piece in pieces]).astype(np.float16))
            new = {name: np.stack([*islice(made, len(pieces))]) for name, pieces in missing.items()}
            self._keep(new)
            vectors |= new
        return [vectors[name].reshape(len(pieces), -1) for name, (_, pieces) in zip(names, groups, strict=True)]

    def _kept(self, names: Sequence[tuple[str, str]]) -> dict[tuple[str, str], NDArray[np.float16]]:
        if not names or not has_table(self._folder):
            return {}
        where = " AND ".join(
            is_one_of(column, sorted({name[place] for name in names}))
            for place, column in enumerate(("document", "sentences"))
        )
        with store_errors(self._folder, "read"):
            rows = self._table.search().where(where).limit(None).to_arrow().to_pylist()
        return {(row["document"], row["sentences"]): np.frombuffer(row["vectors"], np.float16) for row in rows}

    def _keep(self, vectors: dict[tuple[str, str], NDArray[np.float16]]) -> None:
        rows = [
            {"document": document, "sentences": pieces, "vectors": each.tobytes()}
            for (document, pieces), each in vectors.items()
        ]
        try:
            with store_errors(self._folder, "written"):
                self._table.add(pa.Table.from_pylist(rows, schema=_SCHEMA))
                if self._table.version % _VERSIONS == 0:
                    self._table.optimize(cleanup_older_than=KEPT)
        except StoreError as error:
            logger.info("The vectors of sentences are not kept: %s", error)


def has_table(folder: Path) -> bool:
    """Return whether an index keeps any."""
    return (folder / f"{TABLE}.lance").exists()


def remove_unused(folder: Path, store: Store) -> None:
    """Remove the vectors of documents that the index no longer has, and join small files."""
    if not has_table(folder):
        return
    try:
        with store_errors(folder, "written"):
            table = connect(folder).open_table(TABLE)
            kept = {*table.search().select(["document"]).limit(None).to_arrow()["document"].to_pylist()}
            there = {*store.rows_of("hash", sorted(kept), ["hash"], "part = 0")["hash"].to_pylist()}
            for start in range(0, len(gone := sorted(kept - there)), VALUES):
                table.delete(is_one_of("document", gone[start : start + VALUES]))
            table.optimize(cleanup_older_than=KEPT)
    except StoreError as error:  # searches may add to it and join its files meanwhile
        logger.info("Vectors of sentences that are no longer needed stay for now: %s", error)
