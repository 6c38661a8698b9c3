"""Which documents make a batch."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler


class SeededBatchSampler(DefaultBatchSampler):
    """Batches of a permutation that depends on (seed, epoch) only.

    The stock sampler draws from one generator from epoch to epoch, so a run resumed in a later epoch sees another
    order than the run it continues.
    """

    def __iter__(self) -> Iterator[list[int]]:
        """Yield lists of row numbers."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        order = torch.randperm(len(self.sampler), generator=generator).tolist()  # type: ignore[arg-type]
        stop = len(self) * self.batch_size
        for start in range(0, stop, self.batch_size):
            yield order[start : start + self.batch_size]
