"""The papers' headline: the mean over data sets of the relative gain in macro-F1, with a bootstrap interval.

From the printed tables (:mod:`benchmarks.grid.printed`) this definition gives the printed +12.0% (few-shot) and +3.9%
(full), and for Longformer +24.3% and +9.4%.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.grid.printed import COMPARED, TABLES

Scores = Mapping[str, ArrayLike]
"""Macro-F1 by data set, ``(seeds, draws)``: trainings, and draws of labelled examples for each."""


RESAMPLES = 2000


def papers_gain(setting: str, architecture: str = "BERT") -> float:
    """Compute the headline from the papers' tables."""
    return float(np.mean(list(papers_gains(setting, architecture).values())))


def papers_gains(setting: str, architecture: str = "BERT") -> dict[str, float]:
    """Compute the gain on each data set from the papers' tables; see :func:`papers_gain`."""
    ours, theirs = (TABLES[setting][name] for name in COMPARED[architecture])
    return {data: ours[data][1] / theirs[data][1] - 1 for data in ours}


def relative_gain(ours: Scores, theirs: Scores) -> float:
    """Mean over data sets of ``mean(ours) / mean(theirs) - 1``."""
    return _gain(_pairs(ours, theirs))


def gain_interval(ours: Scores, theirs: Scores) -> tuple[float, float] | None:
    """95% percentile bootstrap interval of :func:`relative_gain`; where nothing but trainings differ, their range.

    Resampled are the seeds, the same for all data sets (one training is measured on all of them), and within each data
    set the draws; both objectives keep together what has the same seed and draw. The data sets are as they are: the
    interval says how sure the gain is on these, not on others. With one draw for each training there is little to
    resample, and three trainings make no interval: then it is the least and the largest gain of a training.
    """
    pairs = _pairs(ours, theirs)
    (count,) = {len(one) for one, _ in pairs}
    if all(one.shape[1] == 1 for one, _ in pairs):
        each = [_gain([(one[row], other[row]) for one, other in pairs]) for row in range(count)]
        return (min(each), max(each)) if count > 1 else None
    generator = np.random.default_rng(0)
    gains = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        rows = generator.integers(0, count, count)
        resampled = []
        for one, other in pairs:
            draws = generator.integers(0, one.shape[1], one.shape[1])
            chosen = np.ix_(rows, draws)
            resampled.append((one[chosen], other[chosen]))
        gains[number] = _gain(resampled)
    low, high = np.quantile(gains, [0.025, 0.975])
    return float(low), float(high)


def _gain(pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> float:
    return float(np.mean([one.mean() / other.mean() - 1 for one, other in pairs]))


def _pairs(ours: Scores, theirs: Scores) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    return [(np.asarray(ours[data], dtype=float), np.asarray(theirs[data], dtype=float)) for data in ours]
