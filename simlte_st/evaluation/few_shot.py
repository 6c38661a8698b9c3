"""Probes with a few labelled examples of each class, repeated over random draws; and the same on TF-IDF vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import DataError
from simlte_st.evaluation.probe import ProbeResult, Rows, fit_probe
from simlte_st.evaluation.scores import fit_tfidf, warn_of_wordless
from simlte_st.evaluation.splits import Label, check_lengths, few_shot_rows, warned_once

RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class FewShotResult:
    """Scores over the draws.

    Attributes:
        draws: The result of each draw. With the same labels, shots and seed, draw i of two models used the same texts:
            compare them in pairs.
    """

    draws: tuple[ProbeResult, ...]

    @property
    def macro_f1(self) -> float:
        """Mean of the draws."""
        return float(np.mean([draw.macro_f1 for draw in self.draws]))

    def metrics(self) -> dict[str, float]:
        """Return mean and sample deviation of both scores over the draws; the deviation of a single draw is NaN."""
        metrics = {}
        for name in ("accuracy", "macro_f1"):
            values = np.array([getattr(result, name) for result in self.draws])
            metrics[f"{name}_mean"] = float(values.mean())
            metrics[f"{name}_deviation"] = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        return metrics

    def resamples(self, seed: int = 0) -> NDArray[np.float64]:
        """Return the macro-F1 of bootstrap resamples, which draw test texts and draws anew (Efron, 1979).

        Intervals over draws alone are too narrow, as all draws are scored on the same texts.
        """
        return resampled_macro_f1([(slice(None), draw) for draw in self.draws], len(self.draws[0].test), seed)

    def interval(self, seed: int = 0, base: FewShotResult | None = None) -> tuple[float, float]:
        """Return a 95 % bootstrap interval of the mean macro-F1, or of its difference to ``base``.

        Raises:
            DataError: ``base`` was scored on other texts, or with another number of draws.
        """
        values = self.resamples(seed)
        if base is not None:
            test, drawn = self.draws[0].test, [*self.draws, *base.draws]
            if len(base.draws) != len(self.draws) or any(not np.array_equal(each.test, test) for each in drawn):
                raise DataError("Two probes can be compared only if they have the same test texts and number of draws.")
            values = values - base.resamples(seed)
        low, high = np.quantile(values, [0.025, 0.975])
        return float(low), float(high)


def resampled_macro_f1(
    draws: Sequence[tuple[NDArray[np.int64] | slice, ProbeResult]], texts: int, seed: int = 0
) -> NDArray[np.float64]:
    """Return the macro-F1 of resamples of draws, each of which was scored on some rows of the same texts."""
    generator, count = np.random.default_rng(seed), len(draws)
    weights = generator.multinomial(texts, np.full(texts, 1 / texts), size=RESAMPLES).astype(np.float64)
    shares = generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    scores = np.zeros(RESAMPLES)
    for draw, (tested, result) in enumerate(draws):
        scores += shares[:, draw] * macro_f1(weights[:, tested], result.test, result.predicted)
    return scores


def macro_f1(
    weights: NDArray[np.float64], test: NDArray[np.int64], predicted: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the macro-F1 of texts with weights, as scikit-learn counts it."""
    classes = np.arange(max(test.max(), predicted.max()) + 1)
    is_test, is_predicted = test[:, None] == classes, predicted[:, None] == classes
    hits = weights @ (is_test & is_predicted)
    either = weights @ is_test + weights @ is_predicted
    scores = np.divide(2 * hits, either, out=np.zeros_like(hits), where=either > 0)
    return np.asarray(scores.sum(axis=1) / (either > 0).sum(axis=1))


@warned_once()
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
    """Probe with ``shots`` examples per class, ``draws`` times, always scored on the whole test part.

    DocSplit (2023, appendix A.1) takes 5 or 10 examples per class and the mean over 10 repetitions.

    Args:
        train_x: Embeddings to draw from, shape ``[n_train, dim]``, or a SciPy sparse matrix.
        train_y: Their labels.
        test_x: Test embeddings, shape ``[n_test, dim]``.
        test_y: Their labels.
        shots: Examples per class.
        draws: Repetitions.
        seed: Seed of the draws; the probe of draw i has ``seed + i``.
        **settings: Further settings of :func:`~simlte_st.evaluation.fit_probe`, whose errors are raised here too.
    """
    check_lengths(range(np.shape(train_x)[0]), train_y, "training")
    drawn = few_shot_rows(train_y, shots, draws, seed)
    return probe_draws(train_x, train_y, test_x, test_y, drawn, seed=seed, **settings)


def probe_draws(
    train_x: Rows,
    train_y: Sequence[Label],
    test_x: Rows,
    test_y: Sequence[Label],
    draws: Sequence[Sequence[int]],
    *,
    seed: int,
    **settings: Any,
) -> FewShotResult:
    """Return the result of :func:`few_shot_probe` for draws that are given as rows of ``train_x``."""
    x = train_x if hasattr(train_x, "tocsr") else np.asarray(train_x)
    return FewShotResult(
        tuple(
            fit_probe(x[list(rows)], [train_y[row] for row in rows], test_x, test_y, seed=seed + draw, **settings)
            for draw, rows in enumerate(draws)
        )
    )


def tfidf_probe(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    inverse_l2: float | None = None,
) -> ProbeResult:
    """Fit a logistic regression on TF-IDF vectors, with vocabulary and idf of the training texts.

    Args:
        train_texts: Texts to learn from, read whole.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        inverse_l2: ``C`` of the logistic regression; None to choose it, as :func:`~simlte_st.evaluation.fit_probe`.

    Raises:
        DataError: Texts and labels differ in number, hold no words, or there are fewer than two classes.
    """
    vectors = _tfidf(train_texts, train_labels, test_texts, test_labels)
    return fit_probe(vectors[0], train_labels, vectors[1], test_labels, inverse_l2=inverse_l2)


def tfidf_few_shot(
    train_texts: Sequence[str],
    train_labels: Sequence[Label],
    test_texts: Sequence[str],
    test_labels: Sequence[Label],
    **settings: Any,
) -> FewShotResult:
    """Fit :func:`tfidf_probe` on the draws of :func:`~simlte_st.evaluation.few_shot_probe`.

    Vocabulary and idf come from all training texts, drawn or not, as an encoder's training uses unlabelled texts.

    Args:
        train_texts: Texts the examples are drawn from.
        train_labels: Their classes.
        test_texts: Texts to score on.
        test_labels: Their classes.
        **settings: ``shots``, ``draws``, ``seed`` and ``inverse_l2`` of
            :func:`~simlte_st.evaluation.few_shot_probe`.

    Raises:
        DataError: As for :func:`tfidf_probe`.
    """
    vectors = _tfidf(train_texts, train_labels, test_texts, test_labels)
    return few_shot_probe(vectors[0], train_labels, vectors[1], test_labels, **settings)


def _tfidf(
    train_texts: Sequence[str], train_labels: Sequence[Label], test_texts: Sequence[str], test_labels: Sequence[Label]
) -> tuple[Rows, Rows]:
    check_lengths(train_texts, train_labels, "training")
    check_lengths(test_texts, test_labels, "test")
    vectorizer = fit_tfidf(train_texts)
    rows = vectorizer.transform([*train_texts, *test_texts])
    warn_of_wordless(rows)
    return rows[: len(train_texts)], rows[len(train_texts) :]
