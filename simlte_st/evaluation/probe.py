"""Probe frozen embeddings with classifiers trained on all labels, or on several draws of a few per class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation.splits import Label, draw_shots, number_labels
from simlte_st.models.vectors import Ints, check_embeddings, row_blocks

if TYPE_CHECKING:
    from tqdm import tqdm

# Anything that NumPy converts to a float array [n, dim], or a SciPy sparse matrix (SciPy has no type stubs).
Rows: TypeAlias = Any


Fit: TypeAlias = Callable[[Rows, Ints, int], ClassifierMixin]
"""Function of embeddings, class numbers and a seed that returns a fitted scikit-learn classifier."""

INVERSE_L2 = (1.0, 10.0, 100.0, 1000.0)
"""Candidate values of ``C``, the inverse L2 regularisation strength of the logistic regression."""

_MAX_ROWS_TO_CHOOSE = 2000
"""Maximum number of training rows used to choose ``C``; more rows take minutes and lead to the same choice."""

_FOLDS = 3

RESAMPLES = 1000
"""Number of bootstrap resamples for few-shot scores."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Scores of a probe on the test texts.

    Attributes:
        accuracy: Fraction of test texts classified correctly.
        macro_f1: Unweighted mean F1 of the classes that occur in the test labels or the predictions.
        test: Class numbers of the test texts, shape ``[n_test]``, int64.
        predicted: Predicted class numbers, shape ``[n_test]``, int64.
    """

    accuracy: float
    macro_f1: float
    test: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)
    predicted: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)


def fit_probe(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    seed: int = 0,
    *,
    inverse_l2: float | None = None,
    fit: Fit | None = None,
    bar: tqdm | None = None,
) -> ProbeResult:
    """Train a classifier on frozen embeddings and score it on held-out ones.

    The classifier is scikit-learn's ``LogisticRegression``. Its ``C`` is chosen by cross-validation, because with
    scikit-learn's default of 1 and embeddings of length 1 it would predict only the largest class.

    Args:
        train_x: Training embeddings, shape ``[n_train, dim]``, any float dtype, or a SciPy sparse matrix.
        train_y: Training labels, strings or integers.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Test labels. Classes without training examples count as misses.
        seed: Random seed of the cross-validation, or of ``fit``.
        inverse_l2: ``C`` of the logistic regression; None to choose it by cross-validation.
        fit: Function that fits a different classifier, such as an MLP, given embeddings, class numbers and a seed.
        bar: Progress bar, advanced by the number of rows each logistic regression is fitted to.

    Raises:
        DataError: A value is not finite, or there are fewer than two classes.
        ValueError: The numbers of embeddings and labels differ.

    Example:
        ::

            train, test = model.encode(train_texts), model.encode(test_texts)
            print(fit_probe(train, train_labels, test, test_labels).macro_f1)
    """
    train, test = check_embeddings(train_x), check_embeddings(test_x)
    train_classes, test_classes = number_labels(train_y, test_y)
    blocks: Iterable[Rows] = [test]
    if fit is None:
        if hasattr(train, "tocsr") and train.shape[0] <= _MAX_ROWS_TO_CHOOSE:
            train, blocks = _project(train, test)
        if inverse_l2 is None:
            inverse_l2 = choose_inverse_l2(train, train_classes, seed, bar)
        classifier = _fit_logistic(inverse_l2, train, train_classes, bar)
    else:
        classifier = fit(train, train_classes, seed)
    predicted = np.concatenate([classifier.predict(block) for block in blocks]).astype(np.int64, copy=False)
    f1 = float(f1_score(test_classes, predicted, average="macro", zero_division=0.0))
    return ProbeResult(float(accuracy_score(test_classes, predicted)), f1, test_classes, predicted)


def _project(train: Rows, test: Rows) -> tuple[NDArray[np.float64], Iterable[NDArray[np.float64]]]:
    """Project sparse rows onto the span of the training rows, which contains the weights of a logistic regression.

    For few rows with many features, the same classifier is then fitted 50 times as fast. The test rows become dense
    and are yielded in blocks.
    """
    train, test = train.astype(np.float64), test.astype(np.float64)
    squares, axes = np.linalg.eigh((train @ train.T).toarray())
    in_span = squares >= 1e-10 * squares[-1]
    basis = axes[:, in_span] / np.sqrt(squares[in_span].clip(1e-10))  # all squares are 0 if no text has a word
    blocks = row_blocks(test.shape[0], train.shape[0])
    return (train @ train.T) @ basis, ((test[rows] @ train.T) @ basis for rows in blocks)


def choose_inverse_l2(x: Rows, y: Ints, seed: int = 0, bar: tqdm | None = None) -> float:
    """Return the smallest ``C`` with the best accuracy in three-fold cross-validation."""
    rows = np.random.default_rng(seed).permutation(len(y))[:_MAX_ROWS_TO_CHOOSE]
    # The i-th row of each class goes to fold i modulo the number of folds.
    order = rows[np.argsort(y[rows], kind="stable")]
    starts = np.searchsorted(y[order], y[order])
    folds = (np.arange(len(order)) - starts) % _FOLDS
    correct = np.zeros(len(INVERSE_L2), dtype=np.int64)
    for fold in range(_FOLDS):
        train, test = order[folds != fold], order[folds == fold]
        if len(test) and len(np.unique(y[train])) > 1:
            classifiers = (_fit_logistic(c, x[train], y[train], bar) for c in INVERSE_L2)
            correct += [int((classifier.predict(x[test]) == y[test]).sum()) for classifier in classifiers]
    return INVERSE_L2[int(correct.argmax())] if np.bincount(y).max() > 1 else 10.0


def _fit_logistic(inverse_l2: float, x: Rows, y: Ints, bar: tqdm | None) -> LogisticRegression:
    with warnings.catch_warnings():  # few examples per class look like regression targets
        warnings.filterwarnings("ignore", "The number of unique classes is greater than")
        # Unscaled embeddings often need more than scikit-learn's 100 iterations.
        classifier = LogisticRegression(C=inverse_l2, max_iter=2000).fit(x, y)
    if bar is not None:
        bar.update(len(y))
    return classifier


def count_fitted_rows(rows: int) -> int:
    """Return the number of rows :func:`fit_probe` fits in total, including the folds used to choose ``C``."""
    return rows + len(INVERSE_L2) * (_FOLDS - 1) * min(rows, _MAX_ROWS_TO_CHOOSE)


@dataclass(frozen=True, slots=True)
class FewShotResult:
    """Scores of a few-shot probe over several draws.

    Attributes:
        draws: Result of each draw. Given the same labels, shots and seed, draw i uses the same texts for all models,
            for paired comparisons.
    """

    draws: tuple[ProbeResult, ...]

    @property
    def macro_f1(self) -> float:
        """Mean macro-F1 over the draws."""
        return float(np.mean([draw.macro_f1 for draw in self.draws]))

    def metrics(self) -> dict[str, float]:
        """Return mean and sample standard deviation of accuracy and macro-F1; the deviation is NaN for one draw."""
        metrics = {}
        for name in ("accuracy", "macro_f1"):
            scores = np.array([getattr(draw, name) for draw in self.draws])
            metrics[f"{name}_mean"] = float(scores.mean())
            metrics[f"{name}_deviation"] = float(scores.std(ddof=1)) if len(scores) > 1 else float("nan")
        return metrics

    def resamples(self, seed: int = 0) -> NDArray[np.float64]:
        """Return the macro-F1 of bootstrap resamples (Efron, 1979) of both test texts and draws.

        Resampling only the draws would give intervals that are too narrow, because all draws share their test texts.
        """
        return resampled_macro_f1([(slice(None), draw) for draw in self.draws], len(self.draws[0].test), seed)

    def interval(self, seed: int = 0, base: FewShotResult | None = None) -> tuple[float, float]:
        """Return a 95% bootstrap interval of the mean macro-F1, or of its difference from ``base``.

        Raises:
            DataError: ``base`` has different test texts or a different number of draws.
        """
        scores = self.resamples(seed)
        if base is not None:
            test, draws = self.draws[0].test, [*self.draws, *base.draws]
            if len(base.draws) != len(self.draws) or any(not np.array_equal(draw.test, test) for draw in draws):
                raise DataError("Probes can only be compared on the same test texts and with the same number of draws.")
            scores = scores - base.resamples(seed)
        low, high = np.quantile(scores, [0.025, 0.975])
        return float(low), float(high)


def resampled_macro_f1(
    draws: Sequence[tuple[Ints | slice, ProbeResult]], texts: int, seed: int = 0
) -> NDArray[np.float64]:
    """Return the macro-F1 of resamples of draws and texts; each draw comes with the rows of its test texts."""
    rng, count = np.random.default_rng(seed), len(draws)
    scores = np.empty((RESAMPLES, count))
    for rows in row_blocks(RESAMPLES, texts):
        weights = rng.multinomial(texts, np.full(texts, 1 / texts), size=rows.stop - rows.start).astype(float)
        for draw, (test_rows, result) in enumerate(draws):
            scores[rows, draw] = macro_f1(weights[:, test_rows], result.test, result.predicted)
    shares = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    return np.asarray((shares * scores).sum(axis=1))


def macro_f1(weights: NDArray[np.float64], test: Ints, predicted: Ints) -> NDArray[np.float64]:
    """Return macro-F1 for each row of text weights, as defined by scikit-learn."""
    classes = np.arange(max(test.max(), predicted.max()) + 1)
    is_test, is_predicted = test[:, None] == classes, predicted[:, None] == classes
    hits = weights @ (is_test & is_predicted)
    totals = weights @ is_test + weights @ is_predicted
    scores = np.divide(2 * hits, totals, out=np.zeros_like(hits), where=totals > 0)
    return np.asarray(scores.sum(axis=1) / (totals > 0).sum(axis=1))


def few_shot_probe(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    *,
    shots: int = 5,
    draws: int = 10,
    seed: int = 0,
    **settings: Any,
) -> FewShotResult:
    """Fit ``draws`` probes, each on ``shots`` random examples per class, and score each on the whole test set.

    The DocSplit paper (2023, appendix A.1) uses 5 or 10 examples per class and averages 10 repetitions.

    Args:
        train_x: Embeddings to draw from, shape ``[n_train, dim]``, or a SciPy sparse matrix.
        train_y: Labels of ``train_x``.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Labels of ``test_x``.
        shots: Number of examples per class.
        draws: Number of draws.
        seed: Random seed of the draws; the probe of draw i uses ``seed + i``.
        **settings: Further settings of :func:`~simlte_st.evaluation.fit_probe`, whose errors may also be raised.
    """
    x = train_x if hasattr(train_x, "tocsr") else np.asarray(train_x)
    results = []
    for draw in range(draws):
        rows = draw_shots(train_y, shots, draw, seed)
        results.append(fit_probe(x[rows], [train_y[row] for row in rows], test_x, test_y, seed=seed + draw, **settings))
    return FewShotResult(tuple(results))
