"""The papers' classifier of frozen embeddings: an MLP for the probes' ``fit=``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from simlte_st.evaluation.probe import Fit

# The paper does not give the number of epochs. With 5 examples of each of 20 classes, an epoch has only 13 batches of
# 8, so a few epochs would leave the MLP close to its initial weights. Hence a minimum of both updates and epochs.
_MIN_UPDATES = 2000
_MIN_EPOCHS = 10
_BATCH_SIZE = 8


def epoch_count(rows: int) -> int:
    """Return the number of epochs with at least 2,000 updates, but no fewer than 10."""
    return max(_MIN_EPOCHS, math.ceil(_MIN_UPDATES / math.ceil(rows / _BATCH_SIZE)))


def fit_mlp(
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    seed: int,
    *,
    hidden: Sequence[int] | None = None,
    epochs: int | None = None,
) -> MLPClassifier:
    """Fit the MLP of DocSplit (2023, appendix A.1): learning rate 3e-4, batch size 8, cross-entropy.

    Args:
        x: Embeddings, shape ``[n, dim]``, neither standardised nor normalised.
        y: Class numbers, shape ``[n]``.
        seed: Seed of initial weights and batches.
        hidden: Widths of the hidden layers; None for one layer as wide as the embedding.
        epochs: Number of epochs; None for :func:`epoch_count`.
    """
    mlp = MLPClassifier(
        hidden or (x.shape[1],),
        batch_size=min(_BATCH_SIZE, len(x)),
        learning_rate_init=3e-4,
        max_iter=epochs or epoch_count(len(x)),
        tol=0.0,
        n_iter_no_change=10**9,
        random_state=seed,
    )
    with warnings.catch_warnings():  # it should run all epochs
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mlp.fit(x, y)


HEADS: dict[str, Fit | None] = {"mlp": fit_mlp, "logistic": None}
"""Functions that fit a probe by name; None for the package's logistic regression."""
