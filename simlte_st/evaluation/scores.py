"""Score the similarity of texts by embeddings or words (TF-IDF), and compute bootstrap intervals of means."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.stats import bootstrap
from sklearn.feature_extraction.text import TfidfVectorizer

from simlte_st.arguments import check_arguments
from simlte_st.errors import DataError
from simlte_st.models.vectors import Ints, row_blocks, unit_rows
from simlte_st.words.analyzer import extract_features
from simlte_st.words.languages import check_language

LEVEL, RESAMPLES = 0.95, 2000
"""Coverage of a bootstrap interval, and number of resamples."""


class PairScores(Protocol):
    """Similarity scores of pairs of texts; higher means more similar.

    Attributes:
        size: Number of texts.
        tolerance: Maximum difference between scores that count as equal; matrix products round equal dot products
            differently depending on their position.
        unrelated: Score of texts that have nothing in common; related texts score higher.
    """

    size: int
    tolerance: float
    unrelated: float

    def rows(self, queries: Ints, others: Ints) -> NDArray[Any]:
        """Return the scores of every query ``[q]`` with every other text ``[n]``, shape ``[q, n]``."""
        ...

    def pairs(self, pairs: Ints) -> NDArray[Any]:
        """Return the scores of pairs ``[n, 2]``, shape ``[n]``."""
        ...


class CosineScores:
    """Cosine similarity of embeddings.

    Args:
        embeddings: Embeddings of the texts, shape ``[size, dim]``, any float dtype.

    Raises:
        DataError: The array is not two-dimensional, is empty, or has a value that is not finite.
    """

    tolerance = 1e-9  # far below the precision of float32 embeddings
    unrelated = -np.inf

    def __init__(self, embeddings: ArrayLike) -> None:
        self._set_rows(unit_rows(embeddings))

    def _set_rows(self, rows: Any) -> None:
        """Store rows of length 1, as an array or a SciPy sparse matrix."""
        self._rows = rows
        self.size: int = rows.shape[0]

    def rows(self, queries: Ints, others: Ints) -> NDArray[np.float64]:
        """Return the scores of every query with every other text."""
        scores = self._rows[queries] @ self._rows[others].T
        return np.asarray(scores.toarray() if issparse(scores) else scores)

    def pairs(self, pairs: Ints) -> NDArray[np.float64]:
        """Return the scores of pairs."""
        first, second = self._rows[pairs[:, 0]], self._rows[pairs[:, 1]]
        products = first.multiply(second) if issparse(first) else first * second
        return np.asarray(products.sum(axis=1), dtype=np.float64).reshape(-1)


def fit_tfidf(texts: Sequence[str], *, stop_words: Sequence[str] = (), **settings: Any) -> TfidfVectorizer:
    """Fit scikit-learn's TF-IDF vectorizer, which uses sublinear term frequencies and returns rows of length 1.

    Features come from :func:`~simlte_st.words.analyzer.extract_features`. A text without words gets a row of zeros.

    Args:
        texts: Texts to fit on.
        stop_words: ISO 639-1 codes of languages whose stop words to remove.
        **settings: Further settings of the vectorizer.
    """
    return _fit(TfidfVectorizer.fit, texts, stop_words, settings)


def tfidf_rows(texts: Sequence[str], *, stop_words: Sequence[str] = (), **settings: Any) -> Any:
    """Return the TF-IDF rows of texts, fitted on the same texts."""
    return _fit(TfidfVectorizer.fit_transform, texts, stop_words, settings)


@check_arguments
def tfidf_parts(train: Sequence[str], test: Sequence[str]) -> tuple[Any, Any]:
    """Return the TF-IDF rows of training and test texts, with the vocabulary and idf of the training texts.

    Even few-shot probes use the vocabulary and idf of all training texts, because these need no labels.
    """
    rows = fit_tfidf(train).transform([*train, *test])
    return rows[: len(train)], rows[len(train) :]


def _fit(method: Callable[..., Any], texts: Sequence[str], stop_words: Sequence[str], settings: dict[str, Any]) -> Any:
    analyzer = functools.partial(extract_features, languages=tuple(map(check_language, stop_words)))
    try:
        return method(TfidfVectorizer(sublinear_tf=True, analyzer=analyzer, **settings), texts)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise DataError(f"TF-IDF cannot be fitted on these {len(texts)} texts: {error}") from error


class TfidfScores(CosineScores):
    """Cosine similarity of TF-IDF vectors with sublinear term frequencies.

    Args:
        texts: Texts to score, on which the vocabulary and idf are fitted.
        **settings: Settings of :func:`fit_tfidf`. For English papers, ``stop_words=["en"], min_df=2`` retrieves best.

    Raises:
        DataError: The texts contain no words.
        ConfigurationError: A language in ``stop_words`` is not supported.
    """

    unrelated = 0.0

    @check_arguments
    def __init__(self, texts: Sequence[str], **settings: Any) -> None:
        self._set_rows(tfidf_rows(texts, **settings))


def bootstrap_interval(values: ArrayLike, seed: int = 0) -> tuple[float, float]:
    """Return the 95% percentile bootstrap interval of the mean (Efron, 1979), from 2,000 resamples.

    Args:
        values: One value per query, shape ``[n]``, n >= 2, finite.
        seed: Random seed; the same seed gives the same interval.

    Returns:
        Lower and upper end of the interval.

    Raises:
        DataError: There are fewer than two values.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or len(data) < 2:
        raise DataError(f"Expected a one-dimensional array of at least 2 values, got shape {data.shape}.")
    batch, generator = row_blocks(RESAMPLES, len(data))[0].stop, np.random.default_rng(seed)
    options = {"n_resamples": RESAMPLES, "batch": batch, "method": "percentile", "random_state": generator}
    means = bootstrap((data,), np.mean, **options).bootstrap_distribution
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
