"""Softmax against entmax as a text grows (AST, Figure 1 and Appendix A), measured and in closed form.

The scores are the appendix's: cosines, each drawn uniformly from -1 to 1. For many of them, S, the weights follow from
the density alone. Softmax: ``e^z / (S (e^2 - 1) / 2e)``, so that the largest is 2.31 / S and none is 0. Entmax leaves
weight to the scores above a threshold, where ``S E[p(z)] = 1``: sparsemax, ``p = max(0, z - t)``, to sqrt(S) of them,
the largest 2 / sqrt(S); entmax at alpha 1.5, ``p = max(0, z / 2 - t)^2``, to 3^(1/3) S^(2/3), the largest
(3 / S)^(2/3).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from simlte_st.extras import require

LENGTHS = (5, 25, 128, 512, 2048, 8192)
"""The first two are the paper's."""

DRAWS = 50
TITLES = {"softmax": "softmax", "entmax15": "entmax, alpha 1.5", "sparsemax": "sparsemax"}

CLOSED: dict[str, tuple[Callable[[int], float], Callable[[int], float]]] = {
    "softmax": (lambda size: size, lambda size: math.e / expected_sum(size)),
    "entmax15": (lambda size: 3 ** (1 / 3) * size ** (2 / 3), lambda size: (3 / size) ** (2 / 3)),
    "sparsemax": (lambda size: math.sqrt(size), lambda size: 2 / math.sqrt(size)),
}
"""How many tokens have weight and what the largest is, for many tokens."""


def expected_sum(size: int) -> float:
    """Return the expectation of the denominator of softmax (Eq. 8 to 12)."""
    return size * (math.e**2 - 1) / (2 * math.e)


def measure(lengths: tuple[int, ...] = LENGTHS, draws: int = DRAWS) -> list[dict[str, Any]]:
    """Weigh random scores."""
    library = require("entmax", "ast", "sparse attention")
    functions = {"softmax": torch.softmax, "entmax15": library.entmax15, "sparsemax": library.sparsemax}
    generator = torch.Generator().manual_seed(0)
    rows = []
    for size in lengths:
        scores = 2 * torch.rand(draws, size, generator=generator, dtype=torch.float64) - 1
        row: dict[str, Any] = {"tokens": size, "sum": float(scores.exp().sum(dim=1).mean())}
        for name, function in functions.items():
            weights = function(scores, dim=-1)
            row[name] = {
                "weighted": float((weights > 0).sum(dim=1).double().mean()),
                "largest": float(weights.amax(dim=1).mean()),
            }
        rows.append(row)
    return rows
