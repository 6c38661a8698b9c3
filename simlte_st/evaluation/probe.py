"""Classification probes on frozen embeddings: with all labels, or with a few labels per class in several draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation.splits import Label, draw_shots, number_labels
from simlte_st.models.vectors import check_embeddings, row_blocks

# Anything that NumPy converts to a float array [n, dim], or a SciPy sparse matrix (which has no type stubs).
Rows: TypeAlias = Any

Fit: TypeAlias = Callable[[Rows, NDArray[np.int64], int], Any]
"""Takes embeddings, class numbers and a seed, and returns a fitted classifier with scikit-learn's ``predict``."""

INVERSE_L2 = (1.0, 10.0, 100.0, 1000.0)
"""Candidates for ``C`` of the logistic regression."""

_CHOOSE_ROWS = 2000
"""Maximum number of training rows for that choice: more rows take minutes and lead to the same choice."""

_FOLDS = 3

RESAMPLES = 1000
"""Number of bootstrap resamples of few-shot scores."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Scores of a probe on the test part.

    Attributes:
        accuracy: Share of test texts with the right class.
        macro_f1: Unweighted mean of the F1 scores of all classes in the test labels and predictions.
        test: Class numbers of the test texts, shape ``[n_test]``, int64.
        predicted: Predicted class numbers, shape ``[n_test]``, int64.
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
    bar: Any = None,
) -> ProbeResult:
    """Train a classifier on frozen embeddings and score it on held-out ones.

    The classifier is scikit-learn's ``LogisticRegression``. Its ``C`` is chosen by cross-validation, because with
    scikit-learn's default of 1 it predicts only the largest class if embeddings have length 1.

    Args:
        train_x: Training embeddings, shape ``[n_train, dim]``, any float dtype, or a SciPy sparse matrix.
        train_y: Training labels, strings or integers.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Test labels. A class without training examples counts as missed.
        seed: Random seed of the cross-validation, or of ``fit``.
        inverse_l2: ``C`` of the logistic regression; None to choose it.
        fit: Function that fits another classifier, such as an MLP, to embeddings, class numbers and a seed.
        bar: Progress bar to move by the rows of each logistic regression.

    Raises:
        DataError: A value is not finite, or there are fewer than two classes.
        ValueError: The numbers of embeddings and labels differ.

    Example:
        ::

            known, unknown = model.encode(train_texts), model.encode(test_texts)
            print(fit_probe(known, train_labels, unknown, test_labels).macro_f1)
    """
    train, test = check_embeddings(train_x), check_embeddings(test_x)
    train_index, test_index = number_labels(train_y, test_y)
    parts: Iterable[Any] = [test]
    if fit is None:
        if hasattr(train, "tocsr") and train.shape[0] <= _CHOOSE_ROWS:
            train, parts = _span(train, test)
        chosen = choose_inverse_l2(train, train_index, seed, bar) if inverse_l2 is None else inverse_l2
        classifier = _logistic(chosen, train, train_index, bar)
    else:
        classifier = fit(train, train_index, seed)
    predicted = np.concatenate([classifier.predict(part) for part in parts])
    return ProbeResult(
        accuracy=float(accuracy_score(test_index, predicted)),
        macro_f1=float(f1_score(test_index, predicted, average="macro", zero_division=0.0)),
        test=test_index,
        predicted=np.asarray(predicted, dtype=np.int64),
    )


def _span(train: Any, test: Any) -> tuple[NDArray[np.float64], Iterable[NDArray[np.float64]]]:
    """Return sparse rows in a basis of the span of the training rows, where a logistic regression's weights lie.

    With few rows of many words, the same classifier is fitted 50 times as fast. The test rows, which become dense, come
    in blocks.
    """
    train, test = train.astype(np.float64), test.astype(np.float64)
    squares, axes = np.linalg.eigh((train @ train.T).toarray())
    kept = squares >= 1e-10 * squares[-1]
    basis = axes[:, kept] / np.sqrt(squares[kept].clip(1e-10))  # without any word, all are 0
    blocks = row_blocks(test.shape[0], train.shape[0])
    return (train @ train.T) @ basis, ((test[rows] @ train.T) @ basis for rows in blocks)


def choose_inverse_l2(x: Rows, y: NDArray[np.int64], seed: int = 0, bar: Any = None) -> float:
    """Return the smallest ``C`` with the best accuracy in three-fold cross-validation."""
    generator = np.random.default_rng(seed)
    rows = generator.permutation(len(y))[:_CHOOSE_ROWS]
    # The i-th row of a class is in fold i modulo the number of folds.
    order = rows[np.argsort(y[rows], kind="stable")]
    starts = np.searchsorted(y[order], y[order])
    folds = (np.arange(len(order)) - starts) % _FOLDS
    right = np.zeros(len(INVERSE_L2), dtype=np.int64)
    for fold in range(_FOLDS):
        train, test = order[folds != fold], order[folds == fold]
        if len(test) and len(np.unique(y[train])) > 1:
            fitted = (_logistic(c, x[train], y[train], bar) for c in INVERSE_L2)
            right += [int((classifier.predict(x[test]) == y[test]).sum()) for classifier in fitted]
    return INVERSE_L2[int(right.argmax())] if np.bincount(y).max() > 1 else 10.0


def _logistic(inverse_l2: float, x: Rows, y: NDArray[np.int64], bar: Any = None) -> Any:
    with warnings.catch_warnings():  # about regression targets, with one or two examples per class
        warnings.filterwarnings("ignore", "The number of unique classes is greater than")
        # Unscaled embeddings often need more than scikit-learn's 100 iterations.
        fitted = LogisticRegression(C=inverse_l2, max_iter=2000).fit(x, y)
    if bar is not None:
        bar.update(len(y))
    return fitted


def fitted_rows(rows: int) -> int:
    """Return the number of rows that :func:`fit_probe` fits in all, with the choice of ``C`` in folds."""
    return rows + len(INVERSE_L2) * (_FOLDS - 1) * min(rows, _CHOOSE_ROWS)


@dataclass(frozen=True, slots=True)
class FewShotResult:
    """Scores of a few-shot probe over several draws.

    Attributes:
        draws: The result of each draw. With the same labels, shots and seed, draw i of two models has the same texts,
            for paired comparisons.
    """

    draws: tuple[ProbeResult, ...]

    @property
    def macro_f1(self) -> float:
        """Mean macro-F1 of the draws."""
        return float(np.mean([draw.macro_f1 for draw in self.draws]))

    def metrics(self) -> dict[str, float]:
        """Return mean and sample standard deviation of both scores; the deviation of a single draw is NaN."""
        metrics = {}
        for name in ("accuracy", "macro_f1"):
            values = np.array([getattr(result, name) for result in self.draws])
            metrics[f"{name}_mean"] = float(values.mean())
            metrics[f"{name}_deviation"] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        return metrics

    def resamples(self, seed: int = 0) -> NDArray[np.float64]:
        """Return the macro-F1 of bootstrap resamples of both test texts and draws (Efron, 1979).

        Resampling draws alone gives intervals that are too narrow, because all draws share their test texts.
        """
        return resampled_macro_f1([(slice(None), draw) for draw in self.draws], len(self.draws[0].test), seed)

    def interval(self, seed: int = 0, base: FewShotResult | None = None) -> tuple[float, float]:
        """Return a 95% bootstrap interval of the mean macro-F1, or of its difference from ``base``.

        Raises:
            DataError: ``base`` has other test texts or another number of draws.
        """
        values = self.resamples(seed)
        if base is not None:
            test, drawn = self.draws[0].test, [*self.draws, *base.draws]
            if len(base.draws) != len(self.draws) or any(not np.array_equal(each.test, test) for each in drawn):
                raise DataError("Probes can only be compared with the same test texts and number of draws.")
            values = values - base.resamples(seed)
        low, high = np.quantile(values, [0.025, 0.975])
        return float(low), float(high)


def resampled_macro_f1(
    draws: Sequence[tuple[NDArray[np.int64] | slice, ProbeResult]], texts: int, seed: int = 0
) -> NDArray[np.float64]:
    """Return the macro-F1 of resamples of draws and texts; each draw is scored on some rows of the texts."""
    generator, count = np.random.default_rng(seed), len(draws)
    scores = np.empty((RESAMPLES, count))
    for rows in row_blocks(RESAMPLES, texts):
        weights = generator.multinomial(texts, np.full(texts, 1 / texts), size=rows.stop - rows.start).astype(float)
        for draw, (tested, result) in enumerate(draws):
            scores[rows, draw] = macro_f1(weights[:, tested], result.test, result.predicted)
    shares = generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    return np.asarray((shares * scores).sum(axis=1))


def macro_f1(
    weights: NDArray[np.float64], test: NDArray[np.int64], predicted: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the macro-F1 of weighted texts, as scikit-learn defines it."""
    classes = np.arange(max(test.max(), predicted.max()) + 1)
    is_test, is_predicted = test[:, None] == classes, predicted[:, None] == classes
    hits = weights @ (is_test & is_predicted)
    either = weights @ is_test + weights @ is_predicted
    scores = np.divide(2 * hits, either, out=np.zeros_like(hits), where=either > 0)
    return np.asarray(scores.sum(axis=1) / (either > 0).sum(axis=1))


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
    """Fit probes on ``shots`` examples per class, ``draws`` times, and score each on the whole test set.

    DocSplit (2023, appendix A.1) uses 5 or 10 examples per class and averages 10 repetitions.

    Args:
        train_x: Embeddings to draw from, shape ``[n_train, dim]``, or a SciPy sparse matrix.
        train_y: Their labels.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Their labels.
        shots: Number of examples per class.
        draws: Number of repetitions.
        seed: Random seed of the draws; draw i uses ``seed + i`` for its probe.
        **settings: Further settings of :func:`~simlte_st.evaluation.fit_probe`, whose errors are raised too.
    """
    x = train_x if hasattr(train_x, "tocsr") else np.asarray(train_x)
    results = []
    for draw in range(draws):
        rows = draw_shots(train_y, shots, draw, seed)
        known = [train_y[row] for row in rows]
        results.append(fit_probe(x[rows], known, test_x, test_y, seed=seed + draw, **settings))
    return FewShotResult(tuple(results))
