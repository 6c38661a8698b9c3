"""BM25 scores of text pairs, for the lexical rows of the tables."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from simlte_st.words.analyzer import extract_features


class Bm25Scores:
    """BM25 with the default settings of bm25s, without stop words or stemming; a pair's first text is the query.

    Args:
        texts: The texts, which also supply document frequencies and lengths. Equal texts have equal scores.
    """

    tolerance = unrelated = 0.0

    def __init__(self, texts: Sequence[str]) -> None:
        self._words = list(map(extract_features, texts))  # stop words stay: idf gives them little weight
        self.size = len(self._words)
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # bm25s imports JAX, if there, which takes most of a GPU's memory
        import bm25s

        self._index = bm25s.BM25()
        self._index.index(self._words, show_progress=False)

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score every query against every other text."""
        # bm25s cannot score a query without words.
        found = [
            self._index.get_scores(words) if (words := self._words[query]) else np.zeros(self.size)
            for query in queries.tolist()
        ]
        return np.stack(found).astype(np.float32, copy=False)[:, others]

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score pairs; each first text is searched for once."""
        scores = np.empty(len(pairs), dtype=np.float32)
        for query in np.unique(pairs[:, 0]):
            chosen = pairs[:, 0] == query
            scores[chosen] = self.rows(np.array([query]), pairs[chosen, 1])[0]
        return scores
