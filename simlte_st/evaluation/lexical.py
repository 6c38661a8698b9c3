"""Word counts of texts, for the bag-of-words baselines: TF-IDF vectors and a BM25 index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from simlte_st.errors import DataError
from simlte_st.extras import require


def fit_tfidf(texts: Sequence[str], **settings: Any) -> TfidfVectorizer:
    """Fit scikit-learn's vectorizer with sublinear term frequencies; its rows have length 1.

    Args:
        texts: Texts that vocabulary and idf are taken from.
        **settings: Further settings of scikit-learn's ``TfidfVectorizer``, such as ``stop_words`` and ``min_df``.

    Raises:
        DataError: The texts hold no words.
    """
    vectorizer = TfidfVectorizer(sublinear_tf=True, **settings)
    try:
        return vectorizer.fit(texts)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise DataError(f"TF-IDF cannot be fitted on these {len(texts)} texts: {error}") from error


class Bm25Index:
    """Texts to be searched by BM25: bm25s with its default settings, without stop words and without stemming.

    Equal texts get bit-equal scores, as each adds up the same numbers in the same order.

    Args:
        texts: The texts to be searched.

    Raises:
        DataError: No text holds a word.
        MissingExtraError: bm25s is not installed.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._bm25s = require("bm25s", "bm25", "the BM25 baseline")
        corpus = self._words(texts)
        if not any(corpus):
            raise DataError(f"None of the {len(texts)} texts to be searched holds a word of two or more letters.")
        self.size = len(corpus)
        self._index = self._bm25s.BM25()
        self._index.index(corpus, show_progress=False)

    def scores(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """Score all texts for each query.

        Args:
            queries: A word counts as often as it occurs in the query.

        Returns:
            Shape ``[len(queries), size]``. A query without words matches nothing: all its scores are 0.
        """
        # bm25s cannot score a query without words.
        rows: list[Any] = [
            self._index.get_scores(words) if words else np.zeros(self.size) for words in self._words(queries)
        ]
        return np.stack(rows).astype(np.float32, copy=False)

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        # No stop words: bm25s only knows lists by language, and idf already makes frequent words count little.
        words: list[list[str]] = self._bm25s.tokenize(
            list(texts), stopwords=None, return_ids=False, show_progress=False
        )
        return words
