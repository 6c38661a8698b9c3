"""Metrics of the embedding space during contrastive training, averaged between two log lines."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

_MOST_ROWS = 1024


class BatchMetrics:
    """Running means over the batches since they were last taken.

    - ``mean_cosine``: mean cosine between embeddings of different documents of a batch. It rises when the space
      collapses into a cone, which an MLM term can cause.
    - ``alignment``: mean squared distance between the two views of a document (Wang & Isola, 2020).
    - ``uniformity``: log of the mean of ``exp(-2 d^2)`` over pairs of different documents (same source); lower is
      more uniform.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._batches: dict[str, int] = {}  # by name: a batch of one document has no pair of different ones

    @torch.no_grad()
    def update(self, embeddings: list[Tensor]) -> None:
        """Add one batch."""
        anchor, positive = (
            functional.normalize(column[:_MOST_ROWS].detach().float(), dim=1) for column in embeddings[:2]
        )
        values = {"alignment": (anchor - positive).square().sum(dim=1).mean()}
        if len(anchor) > 1:
            others = ~torch.eye(len(anchor), dtype=torch.bool, device=anchor.device)
            values["mean_cosine"] = (anchor @ positive.T)[others].mean()
            # On the unit sphere d^2 = 2 - 2 cos.
            distances = torch.cat([(2 - 2 * (side @ side.T))[others] for side in (anchor, positive)])
            values["uniformity"] = distances.mul(-2).exp().mean().log()
        for name, value in values.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value
            self._batches[name] = self._batches.get(name, 0) + 1

    def take(self) -> dict[str, float]:
        """Return the means since the last call, none if there was no batch, and reset them."""
        means = {name: round((total / self._batches[name]).item(), 4) for name, total in self._sums.items()}
        self._sums, self._batches = {}, {}
        return means
