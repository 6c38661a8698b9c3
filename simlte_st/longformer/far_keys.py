"""Merge keys beyond the window into a fused kernel's softmax, through the logsumexp that the kernel returns.

Given the merged output and logsumexp, the kernel's own backward pass returns the gradients of its share of the softmax.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class FarKeys(NamedTuple):
    """Keys and values, ``(..., heads, far, size)``, and the queries that see them."""

    key: Tensor
    value: Tensor
    bias: Tensor  # 0 where a query sees a key, otherwise minus infinity; broadcast to the scores, at least float32
    factor: Tensor | None = None  # of dropout: 0 or 1 / (1 - dropout), (..., heads, queries, far)

    def scores(self, query: Tensor) -> Tensor:
        """Return scores in the bias' dtype, ``(..., heads, queries, far)``."""
        wide = self.bias.dtype
        return query.to(wide) @ self.key.to(wide).transpose(-2, -1) / math.sqrt(query.shape[-1]) + self.bias

    def merge(self, query: Tensor, attended: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Return the output and logsumexp, ``(..., heads, queries)``, of all keys."""
        scores = self.scores(query)
        merged = torch.logaddexp(total, scores.logsumexp(-1))
        weights = (scores - merged[..., None]).exp()
        if self.factor is not None:
            weights *= self.factor
        # In float32: a factor rounded to 16 bits would shift a whole row and its gradients.
        kept = attended * (total - merged).exp()[..., None]
        kept += weights @ self.value.to(weights.dtype)
        return kept, merged

    def gradients(self, query: Tensor, grad: Tensor, out: Tensor, total: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of queries, keys and values; ``out`` and ``total`` are the merged ones."""
        weights = (self.scores(query) - total[..., None]).exp()
        wide, used = weights.dtype, weights
        gains = grad.to(wide) @ self.value.to(wide).transpose(-2, -1)
        if self.factor is not None:
            used, gains = weights * self.factor, gains * self.factor
        # The softmax's gradient: each weight times the gain of its value over the output.
        gains -= (grad.to(wide) * out).sum(-1, keepdim=True)
        to_scores = (weights * gains / math.sqrt(query.shape[-1])).to(grad.dtype)
        to_key = to_scores.transpose(-2, -1) @ query
        return to_scores @ self.key, to_key, used.to(grad.dtype).transpose(-2, -1) @ grad
