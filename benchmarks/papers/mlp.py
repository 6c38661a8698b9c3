"""The papers' classifier of frozen embeddings, an MLP, for ``fit=`` of the probes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from simlte_st.evaluation.probe import Fit

# The paper gives no number of epochs. A 20-class set with 5 examples each has 13 batches of 8 in an epoch: a fixed
# small number of epochs would leave the MLP close to its start. Hence a least number of updates as well as of passes.
_LEAST_UPDATES = 2000
_LEAST_EPOCHS = 10
_BATCH_SIZE = 8


def epochs_of(rows: int) -> int:
    """Return the number of passes that makes at least 10 passes and at least 2,000 updates."""
    return max(_LEAST_EPOCHS, math.ceil(_LEAST_UPDATES / math.ceil(rows / _BATCH_SIZE)))


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
        x: Embeddings, shape ``[n, dim]``, as they are, neither standardised nor normalised.
        y: Numbers of their classes.
        seed: Seed of first weights and batches.
        hidden: Widths of the hidden layers; None for one as wide as the embedding.
        epochs: Passes; None for :func:`epochs_of`.
    """
    mlp = MLPClassifier(
        hidden or (x.shape[1],),
        batch_size=min(_BATCH_SIZE, len(x)),
        learning_rate_init=3e-4,
        max_iter=epochs or epochs_of(len(x)),
        tol=0.0,
        n_iter_no_change=10**9,
        random_state=seed,
    )
    with warnings.catch_warnings():  # all passes are wanted
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mlp.fit(x, y)


HEADS: dict[str, Fit | None] = {"mlp": fit_mlp, "logistic": None}
"""By name, what fits a probe; None for the package's logistic regression."""
