from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from simlte_st.errors import DataError
from simlte_st.evaluation.classification_probe import FewShotResult
from simlte_st.evaluation.probe import ProbeResult
from simlte_st.evaluation.probe_difference import RESAMPLES, macro_f1, macro_f1_differences

TEST = np.arange(60) % 3


def probe(right: float, draws: int = 6, test: np.ndarray = TEST, seed: int = 0) -> FewShotResult:
    """Draws that are right with a probability, each about other texts."""
    generator = np.random.default_rng(seed)
    results = []
    for _ in range(draws):
        predicted = np.where(generator.random(len(test)) < right, test, generator.integers(0, 3, len(test)))
        score = float(f1_score(test, predicted, average="macro"))
        results.append(ProbeResult(float((predicted == test).mean()), score, test, predicted))
    return FewShotResult(tuple(results))


def test_macro_f1_is_scikit_learns() -> None:
    predicted = np.array([0, 0, 1, 3, 3])
    test = np.array([0, 1, 1, 2, 0])
    weights = np.array([[1, 1, 1, 1, 1], [2, 0, 3, 0, 0], [0, 0, 0, 4, 1]], dtype=np.float64)
    for row, score in zip(weights.astype(int), macro_f1(weights, test, predicted), strict=True):
        repeated = np.repeat(test, row), np.repeat(predicted, row)
        assert score == pytest.approx(f1_score(*repeated, average="macro", zero_division=0.0))


def test_differences_surround_the_difference() -> None:
    base, model = probe(0.5), probe(0.8, seed=1)
    differences = macro_f1_differences(base, model)
    scores = [np.mean([draw.macro_f1 for draw in result.draws]) for result in (base, model)]
    assert differences.shape == (RESAMPLES,)
    assert differences.mean() == pytest.approx(scores[1] - scores[0], abs=0.02)
    np.testing.assert_array_equal(differences, macro_f1_differences(base, model))
    assert not np.array_equal(differences, macro_f1_differences(base, model, seed=1))
    assert macro_f1_differences(base, base).tolist() == [0.0] * RESAMPLES


def test_intervals_are_over_texts_too() -> None:
    """Draws that all err on the same text have no spread among themselves."""
    wrong = TEST.copy()
    wrong[0] = 1
    one, other = ProbeResult(0.9, 0.9, TEST, TEST), ProbeResult(0.9, 0.9, TEST, wrong)
    differences = macro_f1_differences(FewShotResult((other,) * 5), FewShotResult((one,) * 5))
    assert differences.std() > 0.005
    assert differences.min() == 0.0, "some resamples lack that text"


def test_probes_of_other_texts_cannot_be_compared() -> None:
    for other in (probe(0.5, draws=5), probe(0.5, test=TEST[::-1].copy()), probe(0.5, test=TEST[:30])):
        with pytest.raises(DataError, match="same texts, with the same draws"):
            macro_f1_differences(probe(0.5), other)
