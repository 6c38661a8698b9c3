"""Why a document was found: its sentences nearest to the question, and the words that both have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from simlte_st.data.document import Document
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import segment_document
from simlte_st.index.hits import Hit
from simlte_st.index.queries import Question
from simlte_st.index.sentence_vectors import SentenceVectors
from simlte_st.index.store import Store, is_one_of

SENTENCES = 3
"""Sentences that are given of a document."""

WORDS = 8
"""Shared words that are given."""


class Reasons:
    """Finds the reasons for hits, each from the highest on: sentences with their cosine, and shared words."""

    def __init__(
        self, store: Store, vectors: SentenceVectors, segmenter: Callable[[], Segmenter], question: Question,
        texts: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._store, self._vectors, self._segmenter, self._question = store, vectors, segmenter, question
        self._texts = texts

    @cached_property
    def _words(self) -> dict[str, tuple[tuple[str, float], ...]]:
        return _shared_words(self._store, self._question.words, self._texts)  # of all: each word is looked for once

    def of(self, hit: Hit) -> Hit:
        """Return a hit with its reasons; a shared word comes with what it adds to the BM25 score."""
        nearest: tuple[tuple[str, float], ...] = ()
        if self._question.vector is not None:
            text = self._texts[hit.id]
            sentences = list(dict.fromkeys(segment_document(Document(hit.id, text), self._segmenter()).sentences))
            cosines = self._vectors.of(text, sentences).astype(np.float32) @ self._question.vector
            best = np.argsort(-cosines, kind="stable")[:SENTENCES]
            nearest = tuple((sentences[i], float(cosines[i])) for i in best)
        return replace(hit, sentences=nearest, words=self._words[hit.id])


def _shared_words(
    store: Store, words: Mapping[str, str], names: Iterable[str]
) -> dict[str, tuple[tuple[str, float], ...]]:
    """Weigh the words of a question by the store's own score of each: what is shown is what was searched by."""
    weights: dict[str, list[tuple[str, float]]] = {name: [] for name in names}
    where = is_one_of("id", weights)
    for term, word in words.items():
        for name, score in store.matching([term], where, len(weights)).items():
            weights[name].append((word, score))
    return {name: tuple(sorted(pairs, key=lambda item: (-item[1], item[0]))[:WORDS]) for name, pairs in weights.items()}
