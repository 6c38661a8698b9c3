"""Bag-of-words baselines, to stand next to every number of a model: word overlap alone goes a long way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from simlte_st.errors import DataError
from simlte_st.evaluation.classification_probe import FewShotResult, few_shot_probe
from simlte_st.evaluation.labels import Label, check_lengths
from simlte_st.evaluation.pair_scores import CosineScores
from simlte_st.evaluation.probe import ProbeResult, Rows, fit_probe
from simlte_st.extras import require

TFIDF_INVERSE_L2 = 100.0
"""``C`` of the logistic regression on TF-IDF vectors in benchmarks, which do not choose it.

scikit-learn's 1 is too small for vectors of length one with thousands of columns where classes are uneven: it learns
the frequent classes only. On 1,000 arXiv abstracts in 20 classes macro-F1 is 14 with 1, 41 with 10 and 44 with 100.
With five examples a class it makes no difference.
"""


def fit_tfidf(texts: Sequence[str], **settings: Any) -> TfidfVectorizer:
    """Fit scikit-learn's vectorizer with sublinear term frequencies; its rows have length 1."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, **settings)
    try:
        return vectorizer.fit(texts)
    except ValueError as error:  # scikit-learn's "empty vocabulary"
        raise DataError(f"TF-IDF cannot be fitted on these {len(texts)} texts: {error}") from error


class Bm25Index:
    """Texts to be searched by BM25: bm25s with its default settings, without stop words and without stemming.

    Equal texts get bit-equal scores, as each adds up the same numbers in the same order.
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
        """Score all texts for each query."""
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


class TfidfScores(CosineScores):
    """Cosine similarity of TF-IDF vectors, as :func:`fit_tfidf` makes them.

    Args:
        texts: The texts; vocabulary and idf are taken from them.
        **settings: Further settings of scikit-learn's ``TfidfVectorizer``. English papers are retrieved best with
            ``stop_words="english", min_df=2``.

    Raises:
        DataError: The texts hold no words.
    """

    def __init__(self, texts: Sequence[str], **settings: Any) -> None:
        self._set_rows(fit_tfidf(texts, **settings).transform(texts))


class Bm25Scores:
    """BM25, as :class:`Bm25Index` has it: the first of two texts is the query.

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


def tfidf_probe(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    inverse_l2: float | None = None,
) -> ProbeResult:
    """Logistic regression on TF-IDF vectors fitted on the training texts.

    Args:
        train_texts: Texts to learn from, read whole.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        inverse_l2: ``C`` of the logistic regression; None to choose it, as :func:`~simlte_st.evaluation.fit_probe`.

    Returns:
        Accuracy and macro-F1.

    Raises:
        DataError: Texts and labels differ in number, hold no words, or there are fewer than two classes.
    """
    train_x, test_x = _vectors(train_texts, train_labels, test_texts, test_labels)
    return fit_probe(train_x, train_labels, test_x, test_labels, head="logistic", inverse_l2=inverse_l2)


def tfidf_few_shot(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    *,
    inverse_l2: float | None = None,
    **settings: Any,
) -> FewShotResult:
    """:func:`tfidf_probe` on the very draws of :func:`~simlte_st.evaluation.few_shot_probe`.

    Vocabulary and idf come from unlabelled texts, as an encoder's training does: from all training texts, drawn or not.
    No test text and no label enters them.

    Args:
        train_texts: Texts the examples are drawn from.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        inverse_l2: ``C`` of the logistic regression; None to choose it, as :func:`~simlte_st.evaluation.fit_probe`.
        **settings: ``shots``, ``draws`` and ``seed`` of :func:`~simlte_st.evaluation.few_shot_probe`.

    Returns:
        The result of every draw.

    Raises:
        DataError: Texts and labels differ in number, hold no words, or there are fewer than two classes.
        ConfigurationError: A number of shots or draws below 1.
    """
    train_x, test_x = _vectors(train_texts, train_labels, test_texts, test_labels)
    return few_shot_probe(
        train_x, train_labels, test_x, test_labels, head="logistic", inverse_l2=inverse_l2, **settings
    )


def _vectors(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
) -> tuple[Rows, Rows]:
    check_lengths(train_texts, train_labels, "training")
    check_lengths(test_texts, test_labels, "test")
    vectorizer = fit_tfidf(train_texts)
    return vectorizer.transform(train_texts), vectorizer.transform(test_texts)
