"""Bag-of-words baselines, to stand next to every number of a model: word overlap alone goes a long way."""

from __future__ import annotations

from collections.abc import Sequence

from simlte_st.errors import DataError
from simlte_st.evaluation.few_shot import FewShotResult, few_shot_probe
from simlte_st.evaluation.labels import Label, check_lengths
from simlte_st.evaluation.lexical import Bm25Index, fit_tfidf
from simlte_st.evaluation.probe import ProbeResult, fit_probe
from simlte_st.evaluation.split_half import SplitHalfResult, check_documents, diagonal_ranks, result_from_ranks

TFIDF_INVERSE_L2 = 100.0
"""``C`` of the logistic regression on TF-IDF vectors.

scikit-learn's 1 is too small for vectors of length one with thousands of columns where classes are uneven: it learns
the frequent classes only. On 1,000 arXiv abstracts in 20 classes macro-F1 is 14 with 1, 41 with 10 and 44 with 100.
With five examples a class it makes no difference.
"""


def tfidf_split_half(
    anchors: Sequence[str], positives: Sequence[str], seed: int = 0, chunk: int = 1024
) -> SplitHalfResult:
    """Split-half retrieval by the cosine of TF-IDF vectors, fitted on both views of these documents.

    Args:
        anchors: View A of each document.
        positives: View B of each document, in the same order.
        seed: Seed of the bootstrap.
        chunk: Anchors compared at once.

    Returns:
        The result; alignment and uniformity are None, as they describe learned embeddings.

    Raises:
        DataError: The lists differ in length, hold fewer than two documents, or no words.
    """
    _check_pairs(anchors, positives)
    vectorizer = fit_tfidf([*anchors, *positives])
    first, second = vectorizer.transform(anchors), vectorizer.transform(positives).T.tocsc()
    ranks = diagonal_ranks(lambda rows: (first[rows] @ second).toarray(), len(anchors), chunk=chunk, tolerance=1e-9)
    return result_from_ranks(ranks, seed=seed)


def bm25_split_half(anchors: Sequence[str], positives: Sequence[str], seed: int = 0) -> SplitHalfResult:
    """Split-half retrieval by BM25: the A view is the query, the B views are searched.

    bm25s with its default settings, without stop words and without stemming.

    Args:
        anchors: View A of each document.
        positives: View B of each document, in the same order.
        seed: Seed of the bootstrap.

    Returns:
        The result; alignment and uniformity are None.

    Raises:
        DataError: The lists differ in length, hold fewer than two documents, or no words.
        MissingExtraError: bm25s is not installed.
    """
    _check_pairs(anchors, positives)
    index = Bm25Index(positives)
    ranks = diagonal_ranks(lambda rows: index.scores(anchors[rows]), len(anchors), chunk=256, tolerance=0.0)
    return result_from_ranks(ranks, seed=seed)


def tfidf_probe(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    inverse_l2: float = TFIDF_INVERSE_L2,
) -> ProbeResult:
    """Logistic regression on TF-IDF vectors fitted on the training texts.

    Args:
        train_texts: Texts to learn from, read whole.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        inverse_l2: ``C`` of the logistic regression.

    Returns:
        Accuracy and macro-F1.

    Raises:
        DataError: Texts and labels differ in number, hold no words, or there are fewer than two classes.
    """
    check_lengths(train_texts, train_labels, "training")
    check_lengths(test_texts, test_labels, "test")
    vectorizer = fit_tfidf(train_texts)
    return fit_probe(
        vectorizer.transform(train_texts),
        train_labels,
        vectorizer.transform(test_texts),
        test_labels,
        head="logistic",
        inverse_l2=inverse_l2,
    )


def tfidf_few_shot(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    *,
    shots: int = 5,
    draws: int = 10,
    seed: int = 0,
    corpus: Sequence[str] | None = None,
    inverse_l2: float = TFIDF_INVERSE_L2,
) -> FewShotResult:
    """:func:`tfidf_probe` on the very draws of :func:`~simlte_st.evaluation.few_shot_probe`.

    Vocabulary and idf come from unlabelled texts, as an encoder's training does: from ``corpus``, or from all training
    texts, drawn or not, where it is None. No test text and no label enters them.

    Args:
        train_texts: Texts the examples are drawn from.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        shots: Examples per class.
        draws: Repetitions.
        seed: Seed of the draws.
        corpus: Texts to fit the vectorizer on.
        inverse_l2: ``C`` of the logistic regression.

    Returns:
        The result of every draw.

    Raises:
        DataError: Texts and labels differ in number, hold no words, or there are fewer than two classes.
        ConfigurationError: A number of shots or draws below 1.
    """
    check_lengths(train_texts, train_labels, "training")
    check_lengths(test_texts, test_labels, "test")
    vectorizer = fit_tfidf(train_texts if corpus is None else corpus)
    return few_shot_probe(
        vectorizer.transform(train_texts),
        train_labels,
        vectorizer.transform(test_texts),
        test_labels,
        shots=shots,
        draws=draws,
        head="logistic",
        seed=seed,
        inverse_l2=inverse_l2,
    )


def _check_pairs(anchors: Sequence[str], positives: Sequence[str]) -> None:
    if len(anchors) != len(positives):
        raise DataError(f"There are {len(anchors)} anchors but {len(positives)} positives.")
    check_documents(len(anchors))
