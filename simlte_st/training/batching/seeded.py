"""Random batches."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from typing import Any

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import Sampler


class EpochPermutation(Sampler[int]):
    """A permutation of the rows that depends on (seed, epoch) only.

    Args:
        size: Number of rows.
        seed: The run's seed.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Take over the epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        """Yield row numbers."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        yield from torch.randperm(self.size, generator=generator).tolist()


class SeededBatchSampler(DefaultBatchSampler):
    """Batches of an :class:`EpochPermutation`.

    The stock sampler draws from one generator from epoch to epoch, so a run resumed in a later epoch sees another
    order than the run it continues. That the permutation is this sampler's ``sampler`` matters: when a run resumes,
    accelerate wraps the batch sampler, and tells the epoch to the sampler inside.
    """

    def __init__(self, dataset: Sized, *args: Any, **kwargs: Any) -> None:
        super().__init__(dataset, *args, **kwargs)
        self.sampler: EpochPermutation = EpochPermutation(len(dataset), self.seed)

    def set_epoch(self, epoch: int) -> None:
        """Take over the epoch."""
        super().set_epoch(epoch)
        self.sampler.set_epoch(epoch)
