"""Why a document was found: its sentences nearest to the query, and the words that both share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from simlte_st.data.document import Document
from simlte_st.data.sentences import Segmenter, segment_document
from simlte_st.search.hits import Hit
from simlte_st.search.kept import KeptVectors
from simlte_st.search.query import Query
from simlte_st.search.store import Store, is_one_of

SENTENCES = 3
"""Sentences shown of a document, at most."""

WORDS = 8
"""Shared words shown, at most."""


class Explainer:
    """Explains the hits of a query; ``texts`` are those of its hits, by their ids."""

    def __init__(
        self,
        store: Store,
        vectors: KeptVectors,
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
            cosines = self._vectors.of([(text, sentences)])[0].astype(np.float32) @ self._query.vector
            best = np.argsort(-cosines, kind="stable")[:SENTENCES]
            nearest = tuple((sentences[i], float(cosines[i])) for i in best)
        words = sorted(self._shared_words[hit.id].items(), key=lambda item: (-item[1], item[0]))[:WORDS]
        return replace(hit, sentences=nearest, words=tuple(words))

    @cached_property
    def _shared_words(self) -> dict[str, Counter[str]]:
        """The words of the query in each document, with what each adds to the BM25 score: the store's own score."""
        shared: dict[str, Counter[str]] = {name: Counter() for name in self._texts}
        where = is_one_of("id", shared)
        for term, word in self._query.words.items():
            for name, score in self._store.matching({term: self._query.weights[term]}, where, len(shared)).items():
                shared[name][word] += score  # type: ignore[assignment]  # a word may have a term in several languages
        return shared
