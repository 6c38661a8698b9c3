"""The statistics that evaluators report: intervals, and two label-free measures of an embedding space."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import bootstrap

from simlte_st.errors import DataError
from simlte_st.models.vectors import row_blocks, unit_rows

logger = logging.getLogger(__name__)


LEVEL, RESAMPLES = 0.95, 2000
"""What an interval is meant to cover, and its resamples."""

UNIFORMITY_ROWS = 5000
"""Most rows that uniformity is computed of: 12.5 million pairs."""


def bootstrap_interval(values: ArrayLike, seed: int = 0) -> tuple[float, float]:
    """95% percentile bootstrap interval of the mean (Efron, 1979), of 2,000 resamples with replacement.

    Args:
        values: One value per query, shape ``[n]``, n >= 2, finite.
        seed: Seed of the resampling; the same seed gives the same interval.

    Returns:
        Lower and upper end of the interval.

    Raises:
        DataError: Fewer than two values.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or len(data) < 2:
        raise DataError(f"A one-dimensional array of at least 2 values is needed, got shape {data.shape}.")
    drawn = bootstrap(
        (data,),
        np.mean,
        n_resamples=RESAMPLES,
        batch=row_blocks(RESAMPLES, len(data))[0].stop,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(drawn.bootstrap_distribution, [tail, 1.0 - tail])
    return float(low), float(high)


def alignment(a: ArrayLike, b: ArrayLike) -> float:
    """Mean squared distance of positive pairs on the unit sphere (Wang & Isola, 2020, with alpha = 2). Lower is better.

    Args:
        a: Embeddings of the one side, shape ``[n, dim]``, any float dtype.
        b: Embeddings of the other side, same shape; row i is the positive of row i of ``a``.

    Returns:
        A number in [0, 4].

    Raises:
        DataError: The shapes differ, are not two-dimensional or empty, or a value is not finite.
    """
    first, second = unit_rows(a), unit_rows(b)
    if first.shape != second.shape:
        raise DataError(f"Positive pairs need two arrays of one shape, got {first.shape} and {second.shape}.")
    return float(np.square(first - second).sum(axis=1).mean())


def uniformity(x: ArrayLike, seed: int = 0) -> float:
    """Logarithm of the mean Gaussian potential over distinct pairs (Wang & Isola, 2020, with t = 2). Lower is better.

    Embeddings are L2-normalised first. The full n x n matrix is never held; beyond 5,000 rows a seeded sample of that
    many rows stands for all of them, and that is logged.

    Args:
        x: Embeddings, shape ``[n, dim]``, n >= 2, any float dtype.
        seed: Seed of the sample of rows.

    Returns:
        A number in [-8, 0]; 0 means that all embeddings coincide.

    Raises:
        DataError: Not two-dimensional, or a value that is not finite.
    """
    # The sample is taken before normalising: 50,000 rows need not be copied to float64 for the sake of 5,000.
    data = np.asarray(x)
    if len(data) > UNIFORMITY_ROWS:
        logger.info("Uniformity is computed on a sample of %d of %d rows (seed %d).", UNIFORMITY_ROWS, len(data), seed)
        data = data[np.sort(np.random.default_rng(seed).choice(len(data), UNIFORMITY_ROWS, replace=False))]
    rows = unit_rows(data)
    n = len(rows)
    total = 0.0
    for block in row_blocks(n, n):
        squared = np.maximum(2.0 - 2.0 * (rows[block] @ rows[block.start :].T), 0.0)
        # Row i of the block is column i here; what lies right of that diagonal are the pairs not met before.
        total += np.exp(-2.0 * squared[np.triu_indices(len(squared), k=1, m=squared.shape[1])]).sum()
    return float(min(np.log(total / (n * (n - 1) / 2)), 0.0))
