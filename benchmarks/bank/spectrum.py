"""A measure without labels: how evenly an embedding space uses its directions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from simlte_st.models.vectors import check_embeddings

LARGEST = 100
"""Variances to which the power law is fitted: the largest."""

_NEGLIGIBLE = 1e-10
"""Variances up to this are rounding."""


def alpha_req(embeddings: ArrayLike) -> float:
    """Return how far the decay of a space's variances is from 1 / rank: alpha-ReQ of Agrawal et al. (2022).

    The variances along the principal directions of a space fall about as ``rank ** -alpha``. Where alpha is near 1 the
    space generalises best; where it is larger few directions hold all, the space collapses; where it is smaller the
    space is mostly noise. With few documents alpha is larger: only values of as many documents can be compared.

    "alpha-ReQ: Assessing Representation Quality in Self-Supervised Learning by measuring eigenspectrum decay",
    NeurIPS 2022.
    """
    rows = check_embeddings(embeddings, np.float64)
    variances = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    largest = variances[: min(LARGEST, int((variances > _NEGLIGIBLE).sum()))]
    if len(largest) < 2:
        return -np.inf
    slope = np.polyfit(np.log(np.arange(1, len(largest) + 1)), np.log(largest), 1)[0]
    return float(-abs(-slope - 1.0))
