from __future__ import annotations

import logging

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.stats import bootstrap

from simlte_st.errors import DataError
from simlte_st.evaluation import statistics
from simlte_st.evaluation.statistics import RESAMPLES, alignment, bootstrap_interval, uniformity


def test_interval_covers_the_mean_and_shrinks_with_n() -> None:
    generator = np.random.default_rng(1)
    widths = []
    for n in (50, 500, 5000):
        values = generator.random(n)
        low, high = bootstrap_interval(values)
        assert low < values.mean() < high
        widths.append(high - low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[0] / widths[2] == pytest.approx(10, rel=0.3)  # the width falls with the root of n


@pytest.mark.parametrize("seed", [0, 5])
def test_interval_is_scipys_of_the_same_seed(seed: int) -> None:
    values = np.random.default_rng(2).random(200)
    reference = bootstrap(
        (values,), np.mean, n_resamples=RESAMPLES, method="percentile", random_state=np.random.default_rng(seed)
    )
    assert bootstrap_interval(values, seed) == pytest.approx(tuple(reference.confidence_interval), rel=1e-12)


def test_interval_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(2).random(200)
    expected = scipy.stats.norm.interval(0.95, values.mean(), values.std() / np.sqrt(len(values)))
    # An end of 2,000 resamples has a standard deviation of .06 standard errors here: five of them.
    assert bootstrap_interval(values) == pytest.approx(expected, abs=0.3 * values.std() / np.sqrt(len(values)))


def test_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    inside = 0
    for trial in range(200):
        low, high = bootstrap_interval(generator.random(80), seed=trial)
        inside += low <= 0.5 <= high
    assert 0.88 <= inside / 200 <= 0.99


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


def test_interval_of_equal_values_is_a_point() -> None:
    assert bootstrap_interval([1.0, 1.0, 1.0]) == (1.0, 1.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [[1.0, 2.0]]])
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


def test_uniformity_against_torch_pdist() -> None:
    # The two lines Wang & Isola print in their paper.
    x = torch.nn.functional.normalize(torch.randn(200, 8, generator=torch.Generator().manual_seed(0)).double(), dim=1)
    y = torch.nn.functional.normalize(torch.randn(200, 8, generator=torch.Generator().manual_seed(1)).double(), dim=1)
    assert uniformity(x.numpy()) == pytest.approx(torch.pdist(x, p=2).pow(2).mul(-2).exp().mean().log().item())
    assert alignment(x.numpy(), y.numpy()) == pytest.approx((x - y).norm(dim=1).pow(2).mean().item())


def test_uniformity_chunks_agree_and_extremes(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(8).normal(size=(50, 6))
    whole = uniformity(x)
    for scratch in (1, 150, 350):
        monkeypatch.setattr("simlte_st.models.vectors._SCRATCH_VALUES", scratch)
        assert uniformity(x) == pytest.approx(whole)
    assert uniformity(np.ones((10, 3))) == pytest.approx(0.0)
    assert uniformity([[1.0, 0.0], [-1.0, 0.0]]) == pytest.approx(-8.0)


def test_uniformity_samples_rows_and_says_so(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(9).normal(size=(600, 4))
    whole = uniformity(x)
    monkeypatch.setattr(statistics, "UNIFORMITY_ROWS", 300)
    with caplog.at_level(logging.INFO, logger="simlte_st"):
        sampled = uniformity(x, seed=1)
    assert "300 of 600 rows" in caplog.text
    assert sampled == uniformity(x, seed=1)
    assert sampled == pytest.approx(whole, abs=0.1)


def test_measures_refuse() -> None:
    with pytest.raises(DataError):
        alignment(np.ones((2, 3)), np.ones((3, 3)))
    with pytest.raises(DataError):
        uniformity(np.ones((1, 3)))
    with pytest.raises(DataError, match="not finite"):
        uniformity([[1.0, float("nan")], [0.0, 1.0]])
