"""BM25 scores of text pairs, for the tables' lexical rows."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simlte_st.words.analyzer import extract_features


class Bm25Scores:
    """BM25 with bm25s's default settings, without stop words and stemming; a pair's first text is the query.

    Args:
        texts: The texts, from which document frequencies and lengths are computed. Equal texts have equal scores.
    """

    tolerance = unrelated = 0.0

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = list(map(extract_features, texts))  # with stop words: idf gives them little weight
        self.size = len(self._words)
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # bm25s imports JAX, which would reserve most of a GPU
        import bm25s

        self._index = bm25s.BM25()
        self._index.index(self._words, show_progress=False)

    def rows(self, queries: NDArray[np.int64], documents: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score every query against every other text."""
        # bm25s cannot score empty queries.
        scores = [
            self._index.get_scores(words) if (words := self._words[query]) else np.zeros(self.size)
            for query in queries.tolist()
        ]
        return np.stack(scores).astype(np.float32, copy=False)[:, documents]

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score pairs, with one search per distinct first text."""
        scores = np.empty(len(pairs), dtype=np.float32)
        for query in np.unique(pairs[:, 0]):
            of_query = pairs[:, 0] == query
            scores[of_query] = self.rows(np.array([query]), pairs[of_query, 1])[0]
        return scores
