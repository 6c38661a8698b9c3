"""The statistics that evaluators report: intervals, and two label-free measures of an embedding space."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import bootstrap

from simlte_st.checks import check_count, check_number
from simlte_st.errors import DataError
from simlte_st.vectors import row_blocks, unit_rows

logger = logging.getLogger(__name__)


def bootstrap_interval(
    values: ArrayLike, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean (Efron, 1979).

    Args:
        values: One value per query, shape ``[n]``, n >= 2, finite.
        level: Probability the interval is meant to cover, in (0, 1).
        resamples: Number of resamples with replacement.
        seed: Seed of the resampling; the same seed gives the same interval.

    Returns:
        Lower and upper end of the interval.

    Raises:
        DataError: Fewer than two values, or one that is not finite.
        ConfigurationError: ``level`` or ``resamples`` is out of range.
    """
    check_number("level", level, above=0, below=1)
    check_count("resamples", resamples)
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1 or len(data) < 2:
        raise DataError(f"A one-dimensional array of at least 2 values is needed, got shape {data.shape}.")
    if not np.isfinite(data).all():
        raise DataError("The values to summarise hold NaN or infinity.")
    drawn = bootstrap(
        (data,),
        np.mean,
        n_resamples=resamples,
        batch=row_blocks(resamples, len(data))[0].stop,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    tail = (1.0 - level) / 2.0
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


def uniformity(x: ArrayLike, t: float = 2.0, max_rows: int = 5000, seed: int = 0) -> float:
    """Logarithm of the mean Gaussian potential over distinct pairs (Wang & Isola, 2020). Lower is better.

    Embeddings are L2-normalised first. The full n x n matrix is never held; beyond ``max_rows`` rows a seeded sample of
    that many rows stands for all of them (5,000 rows are 12.5 million pairs), and that is logged.

    Args:
        x: Embeddings, shape ``[n, dim]``, n >= 2, any float dtype.
        t: Sharpness of the potential ``exp(-t * distance ** 2)``, positive.
        max_rows: Most rows to use.
        seed: Seed of the sample of rows.

    Returns:
        A number in [-4 t, 0]; 0 means that all embeddings coincide.

    Raises:
        DataError: Fewer than two rows, not two-dimensional, or a value that is not finite.
        ConfigurationError: ``t`` is not positive or ``max_rows`` is below 2.
    """
    check_number("t", t, above=0)
    check_count("max_rows", max_rows, least=2)
    # The sample is taken before normalising: 50,000 rows need not be copied to float64 for the sake of 5,000.
    data = np.asarray(x)
    if data.ndim != 2 or len(data) < 2:
        raise DataError(f"Uniformity needs an array of at least two rows, got shape {data.shape}.")
    if len(data) > max_rows:
        logger.info("Uniformity is computed on a sample of %d of %d rows (seed %d).", max_rows, len(data), seed)
        data = data[np.sort(np.random.default_rng(seed).choice(len(data), max_rows, replace=False))]
    rows = unit_rows(data)
    n = len(rows)
    total = -np.inf  # logarithm of the sum so far: exp(-t d^2) underflows for a large t, its logarithm does not
    for block in row_blocks(n, n):
        squared = np.maximum(2.0 - 2.0 * (rows[block] @ rows[block.start :].T), 0.0)
        # Row i of the block is column i here; what lies right of that diagonal are the pairs not met before.
        pairs = -t * squared[np.triu_indices(len(squared), k=1, m=squared.shape[1])]
        if len(pairs):
            total = np.logaddexp(total, np.logaddexp.reduce(pairs))
    return float(min(total - np.log(n * (n - 1) / 2), 0.0))
