"""The hits of a search, and their explanations: the nearest sentences, and the words shared with the query.

The index keeps the vectors of sentences, once they are made.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.sentences import Segmenter, segment_document
from simlte_st.errors import StoreError
from simlte_st.search.query import Query
from simlte_st.search.store import OLD, VALUES, Store, connect, is_one_of, store_errors, text_hash

SENTENCES = 3
"""Sentences of a document in an explanation, at most."""

WORDS = 8
"""Shared words in an explanation, at most."""

KEPT_TABLE = "sentences"
"""Name of the table of :class:`KeptVectors`."""

_VERSIONS = 64  # of that table, after which small files are joined: each query may add one

logger = logging.getLogger(__name__)


_OWN = pa.schema(
    {"id": pa.string(), "score": pa.float64(), "cosine": pa.float64(), "bm25": pa.float64(), "reranked": pa.float64()}
    | {"beginning": pa.string(), "passage": pa.string()}
)
_REASONS = pa.schema(
    {
        "sentences": pa.list_(pa.struct({"sentence": pa.string(), "cosine": pa.float64()})),
        "words": pa.list_(pa.struct({"word": pa.string(), "bm25": pa.float64()})),
    }
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    Attributes:
        id: Id of the document.
        score: Score that orders the hits. With ``mode="hybrid"`` or ``rerank=``, the sum of reciprocal ranks, plus 1
            for a document with words of the query that hardly any other document has; otherwise the cosine or the BM25
            score.
        cosine: Cosine of the query and the document, or its best passage; None with ``mode="text"``.
        bm25: BM25 score of the document; None if it is not among the documents ranked by BM25.
        beginning: The first words of the text, with an ellipsis if it goes on.
        passage: The passage nearest to the query, in an index with passages; None if the model reads the whole
            document, and with ``mode="text"``. With ``rerank=``, the passage that was read.
        metadata: The values of the other columns.
        sentences: With ``explain=True``, the sentences nearest to the query, and the cosine of each.
        words: With ``explain=True``, the words shared with the query, and the share of each in the BM25 score.
        reranked: Cosine of the query and the passage by the model of ``rerank=``; None if it did not read the document.
    """

    id: str
    score: float
    cosine: float | None
    bm25: float | None
    beginning: str
    passage: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sentences: tuple[tuple[str, float], ...] = ()
    words: tuple[tuple[str, float], ...] = ()
    reranked: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the hit as JSON values, metadata among them."""
        values = self.values()
        for name, value in self.metadata.items():
            if isinstance(value, date):
                values[name] = value.isoformat()
            elif isinstance(value, float) and not isfinite(value):  # JSON has no such number
                values[name] = None
        return values

    def values(self) -> dict[str, Any]:
        """Return the hit as values of Python, metadata among them."""
        return {
            **{name: getattr(self, name) for name in _OWN.names},
            **self.metadata,
            "sentences": [{"sentence": sentence, "cosine": cosine} for sentence, cosine in self.sentences],
            "words": [{"word": word, "bm25": score} for word, score in self.words],
        }


class Hits(list[Hit]):
    """The hits of a search, best first.

    Args:
        hits: The hits.
        metadata: Columns of their metadata.
        explain: Returns a hit with its sentences and words.
    """

    def __init__(self, hits: Iterable[Hit], metadata: pa.Schema, explain: Callable[[Hit], Hit]) -> None:
        super().__init__(hits)
        self._explain = explain
        self._schema = pa.schema([*_OWN, *metadata, *_REASONS])

    def explain(self, hit: Hit) -> Hit:
        """Return one of the hits with its nearest sentences and shared words.

        After a search with ``mode="text"`` and without ``explain=True``, there are shared words only.
        """
        return self._explain(hit)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each hit: its attributes, and a column for each of the metadata."""
        return pa.Table.from_pylist([hit.values() for hit in self], schema=self._schema)


_LAST_WORD = re.compile(r"\s+\S{0,40}$")


def shortened(text: str, length: int) -> str:
    """Return a text, or its first words up to a length in characters, with a mark that it goes on."""
    return text if len(text) <= length else _LAST_WORD.sub("", text[: length + 1])[:length] + " …"


@dataclass
class Explainer:
    """Explains the hits of a query; ``texts`` are those of its hits, by their ids."""

    store: Store
    vectors: KeptVectors
    segmenter: Callable[[], Segmenter]
    query: Query
    texts: Mapping[str, str]

    def __call__(self, hit: Hit) -> Hit:
        """Return a hit with its nearest sentences and shared words, each from the highest score on."""
        nearest: tuple[tuple[str, float], ...] = ()
        if self.query.vector is not None:
            text = self.texts[hit.id]
            sentences = list(dict.fromkeys(segment_document(Document(hit.id, text), self.segmenter()).sentences))
            cosines = self.vectors.of([(text, sentences)])[0].astype(np.float32) @ self.query.vector
            best = np.argsort(-cosines, kind="stable")[:SENTENCES]
            nearest = tuple((sentences[i], float(cosines[i])) for i in best)
        words = sorted(self._shared_words[hit.id].items(), key=lambda item: (-item[1], item[0]))[:WORDS]
        return replace(hit, sentences=nearest, words=tuple(words))

    @cached_property
    def _shared_words(self) -> dict[str, Counter[str]]:
        """The words of the query in each document, with what each adds to the BM25 score: the store's own score."""
        shared: dict[str, Counter[str]] = {name: Counter() for name in self.texts}
        where = is_one_of("id", shared)
        for term, word in self.query.words.items():
            for name, score in self.store.matching({term: self.query.weights[term]}, where, len(shared)).items():
                shared[name][word] += score  # type: ignore[assignment]  # a word may have a term in several languages
        return shared


class KeptVectors:
    """The vectors of sentences or passages of documents, made when they are first needed and kept in a table.

    Several processes may read and add: LanceDB's commits are atomic, and rows are only ever added under their hashes.
    """

    _SCHEMA = pa.schema(
        [
            pa.field("document", pa.string(), nullable=False),  # hash of its text
            pa.field("sentences", pa.string(), nullable=False),  # hash of all of them: they may be cut in another way
            pa.field("vectors", pa.binary(), nullable=False),  # float16, one after the other
        ]
    )

    def __init__(
        self, folder: Path, encode: Callable[[Sequence[str]], NDArray[np.float32]], model: str | None = None
    ) -> None:
        self._folder, self._encode, self._model = folder, encode, [] if model is None else [model]

    @cached_property
    def _table(self) -> Any:
        return connect(self._folder).create_table(KEPT_TABLE, schema=self._SCHEMA, exist_ok=True)

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
        if not names or not _keeps_vectors(self._folder):
            return {}
        documents, sentences = ({name[place] for name in names} for place in (0, 1))
        where = f"{is_one_of('document', sorted(documents))} AND {is_one_of('sentences', sorted(sentences))}"
        with store_errors(self._folder, "read"):
            rows = self._table.search().where(where).limit(None).to_arrow().to_pylist()
        return {(row["document"], row["sentences"]): np.frombuffer(row["vectors"], np.float16) for row in rows}

    def _keep(self, vectors: dict[tuple[str, str], NDArray[np.float16]]) -> None:
        documents, sentences = zip(*vectors, strict=True)
        columns = {
            "document": documents,
            "sentences": sentences,
            "vectors": [each.tobytes() for each in vectors.values()],
        }
        with _unless_unwritable(self._folder):
            self._table.add(pa.table(columns, schema=self._SCHEMA))
            if self._table.version % _VERSIONS == 0:
                self._table.optimize(cleanup_older_than=OLD)


def remove_unused_vectors(store: Store) -> None:
    """Remove the kept vectors of documents that the index no longer has, and join small files."""
    if not _keeps_vectors(store.folder):
        return
    with _unless_unwritable(store.folder):
        table = connect(store.folder).open_table(KEPT_TABLE)
        kept = {*table.search().select(["document"]).limit(None).to_arrow()["document"].to_pylist()}
        there = {*store.rows_of("hash", sorted(kept), ["hash"], "part = 0")["hash"].to_pylist()}
        for start in range(0, len(gone := sorted(kept - there)), VALUES):
            table.delete(is_one_of("document", gone[start : start + VALUES]))
        table.optimize(cleanup_older_than=OLD)


def _keeps_vectors(folder: Path) -> bool:
    return (folder / f"{KEPT_TABLE}.lance").exists()


@contextmanager
def _unless_unwritable(folder: Path) -> Iterator[None]:
    """Let kept vectors be as they are where the index is read-only, or searches write to them at the same time."""
    try:
        with store_errors(folder, "written"):
            yield
    except StoreError as error:
        logger.info("The vectors of sentences are not kept: %s", error)
