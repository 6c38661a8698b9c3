from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap

from simlte_st.errors import DataError
from simlte_st.evaluation.scores import RESAMPLES, alignment, bootstrap_interval, uniformity


@pytest.mark.parametrize("seed", [0, 5])
def test_interval_is_scipys_of_the_same_seed(seed: int) -> None:
    values = np.random.default_rng(2).random(200)
    reference = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", random_state=np.random.default_rng(seed)
    )
    assert bootstrap_interval(values, seed) == pytest.approx(tuple(reference.confidence_interval), rel=1e-12)


def test_interval_is_seeded_and_chunking_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).random(100)
    before = torch.random.get_rng_state()
    numpy_before = np.random.get_state()[1].copy()
    first = bootstrap_interval(values, seed=5)
    assert first == bootstrap_interval(values, seed=5) != bootstrap_interval(values, seed=6)
    monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", 700)
    assert first == bootstrap_interval(values, seed=5)
    assert torch.equal(before, torch.random.get_rng_state())
    assert np.array_equal(numpy_before, np.random.get_state()[1])


@pytest.mark.parametrize("values", [[], [1.0], [[1.0, 2.0]]])
def test_interval_refuses(values: list[float]) -> None:
    with pytest.raises(DataError):
        bootstrap_interval(values)


def _unit(row: np.ndarray) -> np.ndarray:
    return row / np.sqrt((row**2).sum())


def test_alignment_and_uniformity_against_double_loops() -> None:
    generator = np.random.default_rng(7)
    a, b = generator.normal(size=(13, 5)), generator.normal(size=(13, 5)).astype(np.float32)
    assert alignment(a, b) == pytest.approx(
        np.mean([((_unit(x) - _unit(y)) ** 2).sum() for x, y in zip(a, b, strict=True)])
    )
    pairs = [np.exp(-2 * ((_unit(a[i]) - _unit(a[j])) ** 2).sum()) for i in range(13) for j in range(i)]
    assert uniformity(a) == pytest.approx(np.log(np.mean(pairs)))


def test_measures_refuse() -> None:
    with pytest.raises(DataError):
        alignment(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(DataError, match="not finite"):
        uniformity([[1.0, float("nan")], [0.0, 1.0]])
