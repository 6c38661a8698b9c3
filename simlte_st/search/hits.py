"""The hits of a search, and their explanations: the nearest sentences, and the words shared with the query."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.reading.document import Document
from simlte_st.search.query import Query
from simlte_st.search.store import Store, sql_in
from simlte_st.words.sentences import Segmenter, segment_document

SENTENCES = 3
"""Maximum number of sentences in an explanation."""

WORDS = 8
"""Maximum number of shared words in an explanation."""

REMEMBERED = 50_000
"""Maximum number of remembered vectors of sentences or passages: 38 MB for 384 dimensions."""

_LAST_WORD = re.compile(r"\s+\S{0,40}$")


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found by a search.

    Attributes:
        id: Id of the document.
        score: Score that orders the hits. With ``mode="hybrid"``, the BM25 score plus the weighted cosine, each
            standardised; otherwise the cosine or the BM25 score. With ``rerank=``, this score plus the weighted cosine
            of the other model, each standardised.
        cosine: Cosine of the query and the document, or its best passage; None with ``mode="text"``.
        bm25: BM25 score of the document; None if BM25 did not rank it.
        beginning: The first words of the text, with an ellipsis if it is longer.
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
        names = ("id", "score", "cosine", "bm25", "reranked", "beginning", "passage")
        values = {name: getattr(self, name) for name in names}
        for name, value in self.metadata.items():
            is_finite = not isinstance(value, float) or isfinite(value)  # JSON has no other numbers
            values[name] = value.isoformat() if isinstance(value, date) else value if is_finite else None
        values["sentences"] = [{"sentence": sentence, "cosine": cosine} for sentence, cosine in self.sentences]
        return values | {"words": [{"word": word, "bm25": score} for word, score in self.words]}


def shorten(text: str, length: int) -> str:
    """Return a text, or its first words up to a length in characters and an ellipsis."""
    return text if len(text) <= length else _LAST_WORD.sub("", text[: length + 1])[:length] + " …"


class RememberedVectors:
    """The vectors of sentences or passages, encoded once while an index is open."""

    def __init__(self, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self._encode, self._vectors = encode, dict[str, NDArray[np.float16]]()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts: shape ``[len(texts), dimension]``."""
        if len(self._vectors) > REMEMBERED:
            self._vectors.clear()
        if missing := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(missing, self._encode(missing).astype(np.float16), strict=True))
        return np.stack([self._vectors[text] for text in texts]).astype(np.float32)


def explain_hits(
    hits: Sequence[Hit],
    texts: Mapping[str, str],
    query: Query,
    *,
    store: Store,
    segmenter: Segmenter,
    vectors: RememberedVectors,
) -> list[Hit]:
    """Return hits with their nearest sentences and shared words, highest scores first.

    Args:
        hits: The hits of a query.
        texts: The texts of the hits, by their ids.
        query: The query; without a vector, only shared words are added.
        store: The table of the index.
        segmenter: Splits texts into sentences.
        vectors: The vectors of sentences.
    """
    explained = []
    shared = _shared_words(texts, query, store) if hits else {}
    for hit in hits:
        nearest: tuple[tuple[str, float], ...] = ()
        if query.vector is not None:
            document = Document(hit.id, texts[hit.id])
            sentences = list(dict.fromkeys(segment_document(document, segmenter).sentences))
            cosines = vectors(sentences) @ query.vector
            order = np.argsort(-cosines, kind="stable")[:SENTENCES]
            nearest = tuple((sentences[row], float(cosines[row])) for row in order)
        words = sorted(shared[hit.id].items(), key=lambda item: (-item[1], item[0]))[:WORDS]
        explained.append(replace(hit, sentences=nearest, words=tuple(words)))
    return explained


def _shared_words(texts: Mapping[str, str], query: Query, store: Store) -> dict[str, dict[str, float]]:
    """Return the words of the query in each document, with their shares in its BM25 score."""
    shared: dict[str, dict[str, float]] = {doc_id: defaultdict(float) for doc_id in texts}
    where = sql_in("id", texts)
    for term, word in query.words.items():  # a word may have a term in several languages
        for doc_id, score in store.bm25_scores({term: query.weights[term]}, where, len(texts)).items():
            shared[doc_id][word] += score
    return shared
