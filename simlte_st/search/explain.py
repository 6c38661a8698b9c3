"""Why a document was found: its sentences nearest to the query, and the words that both share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import segment_document
from simlte_st.errors import StoreError
from simlte_st.search.hits import Hit
from simlte_st.search.query import Query
from simlte_st.search.store import KEPT, VALUES, Store, connect, is_one_of, store_errors, text_hash

SENTENCES = 3
"""Sentences shown of a document, at most."""

WORDS = 8
"""Shared words shown, at most."""

TABLE = "sentences"

_SCHEMA = pa.schema(
    [
        pa.field("document", pa.string(), nullable=False),  # hash of its text
        pa.field("sentences", pa.string(), nullable=False),  # hash of all of them: another version may split otherwise
        pa.field("vectors", pa.binary(), nullable=False),  # float16, one after the other
    ]
)

logger = logging.getLogger(__name__)


class Explainer:
    """Explains the hits of a query; ``texts`` are those of its hits, by their ids."""

    def __init__(
        self,
        store: Store,
        vectors: SentenceVectors,
        segmenter: Callable[[], Segmenter],
        query: Query,
        texts: Mapping[str, str],
    ) -> None:
        self._store, self._vectors, self._segmenter, self._query, self._texts = store, vectors, segmenter, query, texts

    def __call__(self, hit: Hit) -> Hit:
        """Return a hit with its nearest sentences and shared words, each from the highest score on."""
        nearest: tuple[tuple[str, float], ...] = ()
        if self._query.vector is not None:
            text = self._texts[hit.id]
            sentences = list(dict.fromkeys(segment_document(Document(hit.id, text), self._segmenter()).sentences))
            cosines = self._vectors.of(text, sentences).astype(np.float32) @ self._query.vector
            best = np.argsort(-cosines, kind="stable")[:SENTENCES]
            nearest = tuple((sentences[i], float(cosines[i])) for i in best)
        words = sorted(self._shared_words[hit.id], key=lambda item: (-item[1], item[0]))[:WORDS]
        return replace(hit, sentences=nearest, words=tuple(words))

    @cached_property
    def _shared_words(self) -> dict[str, list[tuple[str, float]]]:
        """The words of the query in each document, with what each adds to the BM25 score: the store's own score."""
        shared: dict[str, list[tuple[str, float]]] = {name: [] for name in self._texts}
        where = is_one_of("id", shared)
        for term, word in self._query.words.items():
            for name, score in self._store.matching([term], where, len(shared)).items():
                shared[name].append((word, score))
        return shared


class SentenceVectors:
    """The vectors of documents' sentences, made when they are first needed and kept in a table of the index."""

    def __init__(self, folder: Path, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self._folder, self._encode = folder, encode

    @cached_property
    def _table(self) -> Any:
        return connect(self._folder).create_table(TABLE, schema=_SCHEMA, exist_ok=True)

    def of(self, text: str, sentences: Sequence[str]) -> NDArray[np.float16]:
        """Return the vectors of a document's sentences, and keep them."""
        names = {"document": text_hash(text), "sentences": text_hash("\n".join(sentences))}
        if _has_table(self._folder):
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


def _has_table(folder: Path) -> bool:
    return (folder / f"{TABLE}.lance").exists()


def remove_unused_sentences(folder: Path, store: Store) -> None:
    """Remove the vectors of documents that the index no longer has, and join small files."""
    if not _has_table(folder):
        return
    with store_errors(folder, "written"):
        table = connect(folder).open_table(TABLE)
        kept = {*table.search().select(["document"]).limit(None).to_arrow()["document"].to_pylist()}
        there = {*store.rows_of("hash", sorted(kept), ["hash"], "part = 0")["hash"].to_pylist()}
        for start in range(0, len(gone := sorted(kept - there)), VALUES):
            table.delete(is_one_of("document", gone[start : start + VALUES]))
        table.optimize(cleanup_older_than=KEPT)
