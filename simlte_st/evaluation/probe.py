"""The frozen-embedding classification probe: how much of a class can be read off an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.evaluation.splits import Label, check_lengths, number_labels
from simlte_st.models.vectors import check_embeddings

# Anything NumPy makes a float array [n, dim] of, or a SciPy sparse matrix (which has no type stubs).
Rows: TypeAlias = Any

Fit: TypeAlias = Callable[[Rows, NDArray[np.int64], int], Any]
"""Returns a classifier, with scikit-learn's ``predict``, fitted to embeddings, the numbers of their classes, a seed."""

INVERSE_L2 = (1.0, 10.0, 100.0, 1000.0)
"""Values from which the logistic regression chooses its ``C``."""

_CHOOSE_ROWS = 2000
"""Training rows at most on which it chooses: more take minutes, and choose the same."""

_FOLDS = 3


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Scores of a probe on the test part.

    Attributes:
        accuracy: Share of test texts whose class was predicted.
        macro_f1: Unweighted mean of the F1 scores of the classes among test labels and predictions.
        test: Numbers of the classes of the test texts, shape ``[n_test]``, int64.
        predicted: Numbers of the classes that were predicted, likewise.
    """

    accuracy: float
    macro_f1: float
    test: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    predicted: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)


def fit_probe(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    seed: int = 0,
    *,
    inverse_l2: float | None = None,
    fit: Fit | None = None,
) -> ProbeResult:
    """Train a classifier on frozen embeddings and score it on held-out ones.

    The classifier is scikit-learn's ``LogisticRegression``. Its ``C`` is chosen by cross-validation: with
    scikit-learn's 1 it learns only the largest class where embeddings have length 1.

    Args:
        train_x: Training embeddings, shape ``[n_train, dim]``, any float dtype, or a SciPy sparse matrix.
        train_y: Training labels, strings or integers.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Test labels. A class without training example counts as missed, with a warning.
        seed: Seed of the folds of the cross-validation, or of ``fit``.
        inverse_l2: ``C`` of the logistic regression; None to choose it.
        fit: What fits another classifier, such as an MLP, to embeddings, numbers of classes, and a seed.

    Raises:
        DataError: Embeddings and labels differ in number, a value is not finite, or there are fewer than two classes.
    """
    train, test = check_embeddings(train_x), check_embeddings(test_x)
    check_lengths(range(train.shape[0]), train_y, "training")
    check_lengths(range(test.shape[0]), test_y, "test")
    _, train_index, test_index = number_labels(train_y, test_y)
    if fit is None:
        chosen = choose_inverse_l2(train, train_index, seed) if inverse_l2 is None else inverse_l2
        classifier = _logistic(chosen, train, train_index)
    else:
        classifier = fit(train, train_index, seed)
    predicted = classifier.predict(test)
    return ProbeResult(
        accuracy=float(accuracy_score(test_index, predicted)),
        macro_f1=float(f1_score(test_index, predicted, average="macro", zero_division=0.0)),
        test=test_index,
        predicted=np.asarray(predicted, dtype=np.int64),
    )


def choose_inverse_l2(x: Rows, y: NDArray[np.int64], seed: int = 0) -> float:
    """Return the smallest ``C`` with the best accuracy in three-fold cross-validation."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(y))[:_CHOOSE_ROWS]
    # Row i of a class, in that random order, is in fold i modulo the number of folds.
    order = rows[np.argsort(y[rows], kind="stable")]
    starts = np.searchsorted(y[order], y[order])
    folds = (np.arange(len(order)) - starts) % _FOLDS
    right = np.zeros(len(INVERSE_L2), dtype=np.int64)
    for fold in range(_FOLDS):
        train, test = order[folds != fold], order[folds == fold]
        if len(test) and len(np.unique(y[train])) > 1:
            right += [int((_logistic(c, x[train], y[train]).predict(x[test]) == y[test]).sum()) for c in INVERSE_L2]
    return INVERSE_L2[int(right.argmax())] if np.bincount(y).max() > 1 else 10.0


def _logistic(inverse_l2: float, x: Rows, y: NDArray[np.int64]) -> Any:
    with warnings.catch_warnings():  # with one or two examples a class it asks whether classes are numbers to predict
        warnings.filterwarnings("ignore", "The number of unique classes is greater than")
        # 2,000 iterations because unscaled embeddings often need more than scikit-learn's 100.
        return LogisticRegression(C=inverse_l2, max_iter=2000).fit(x, y)
