"""How alike two texts are, to a model or to a bag of words: all that retrieval and similarity need to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.evaluation.lexical import Bm25Index, fit_tfidf
from simlte_st.evaluation.statistics import unit_rows


class PairScores(Protocol):
    """Scores of pairs out of one list of texts; the higher, the more alike.

    Attributes:
        size: Number of texts.
        tolerance: Two scores that differ by no more than this are the same: matrix products round the same dot product
            differently at different places.
    """

    size: int
    tolerance: float

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[Any]:
        """Score every query ``[q]`` against every other text ``[n]``: shape ``[q, n]``."""
        ...

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[Any]:
        """Score pairs ``[n, 2]`` one by one: shape ``[n]``."""
        ...


class CosineScores:
    """Cosine similarity of embeddings.

    Args:
        embeddings: Shape ``[size, dim]``, any float dtype.

    Raises:
        DataError: Not two-dimensional, empty, or a value that is not finite.
    """

    # Far below any difference that float32 embeddings express.
    tolerance = 1e-9

    def __init__(self, embeddings: ArrayLike) -> None:
        self._rows = unit_rows(embeddings)
        self.size = len(self._rows)

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score every query against every other text."""
        scores: NDArray[np.float64] = self._rows[queries] @ self._rows[others].T
        return scores

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score pairs one by one."""
        scores: NDArray[np.float64] = (self._rows[pairs[:, 0]] * self._rows[pairs[:, 1]]).sum(axis=1)
        return scores


class TfidfScores:
    """Cosine similarity of TF-IDF vectors, as :func:`~simlte_st.evaluation.lexical.fit_tfidf` makes them.

    Args:
        texts: The texts.
        corpus: Texts that vocabulary and idf are taken from; None for the texts themselves.
        **settings: Further settings of scikit-learn's ``TfidfVectorizer``. English papers are retrieved best with
            ``stop_words="english", min_df=2``.

    Raises:
        DataError: The texts hold no words.
    """

    tolerance = 1e-9

    def __init__(self, texts: Sequence[str], corpus: Sequence[str] | None = None, **settings: Any) -> None:
        self._rows = fit_tfidf(texts if corpus is None else corpus, **settings).transform(texts)
        self.size = len(texts)

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score every query against every other text."""
        scores: NDArray[np.float64] = (self._rows[queries] @ self._rows[others].T).toarray()
        return scores

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score pairs one by one."""
        products = self._rows[pairs[:, 0]].multiply(self._rows[pairs[:, 1]])
        return np.asarray(products.sum(axis=1), dtype=np.float64).reshape(-1)


class Bm25Scores:
    """BM25, as :class:`~simlte_st.evaluation.lexical.Bm25Index` has it: the first of two texts is the query.

    Args:
        texts: The texts; document frequencies and lengths are taken from all of them.

    Raises:
        DataError: The texts hold no words.
        MissingExtraError: bm25s is not installed.
    """

    tolerance = 0.0

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = list(texts)
        self._index = Bm25Index(self._texts)
        self.size = len(self._texts)

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score every query against every other text."""
        return self._index.scores([self._texts[query] for query in queries.tolist()])[:, others]

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Score pairs one by one; each first text is searched with once."""
        scores = np.empty(len(pairs), dtype=np.float32)
        for query in np.unique(pairs[:, 0]):
            chosen = pairs[:, 0] == query
            scores[chosen] = self.rows(np.array([query]), pairs[chosen, 1])[0]
        return scores
