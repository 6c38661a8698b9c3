"""Random batches that depend on (seed, epoch) only, divided among the processes of a distributed run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sized
from typing import Any

import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from torch.utils.data import Sampler

from simlte_st.distributed import world


class EpochPermutation(Sampler[int]):
    """A permutation of the rows that depends on (seed, epoch) only."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        """Yield row numbers."""
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + self.epoch) % 2**63)
        yield from torch.randperm(self.size, generator=generator).tolist()


class SeededBatchSampler(DefaultBatchSampler):
    """Batches of an :class:`EpochPermutation`.

    The stock sampler draws all epochs from one generator, so a run resumed in a later epoch sees another order than
    the run it continues. The permutation has to be the attribute ``sampler``: when a run resumes, accelerate wraps the
    batch sampler and sets the epoch of the sampler inside.

    Several processes take batches in turn (accelerate's ``BatchSamplerShard``); together these are a batch of the run,
    with the same documents as in one process. The last documents are divided into equal parts; a remainder, fewer than
    there are processes, is skipped, other documents in each epoch. ``drop_last``, which sentence-transformers sets for
    several processes, would skip more, and has no effect then.

    Attributes:
        processes: Number of processes.
    """

    def __init__(self, dataset: Sized, batch_size: int, drop_last: bool = False, **arguments: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        self.sampler: EpochPermutation = EpochPermutation(len(dataset), self.seed)
        self.processes = world()
        if self.processes > 1:
            self.part_size = batch_size
            self.batch_size = None  # type: ignore[assignment]  # else accelerate drops smaller batches

    def __len__(self) -> int:
        if self.processes == 1:
            return super().__len__()
        return -(-(len(self.sampler) // self.processes) // self.part_size) * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the current epoch as row numbers; those of several processes in turn."""
        if self.processes == 1:
            yield from super().__iter__()
            return
        rows = itertools.islice(self.sampler, len(self.sampler) - len(self.sampler) % self.processes)
        while batch := list(itertools.islice(rows, self.part_size * self.processes)):
            yield from equal_parts(batch, self.processes)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch."""
        super().set_epoch(epoch)
        self.sampler.set_epoch(epoch)


class _InOrder(EpochPermutation):
    def __iter__(self) -> Iterator[int]:
        yield from range(self.size)


class OrderedBatchSampler(SeededBatchSampler):
    """Batches of rows in their order: those of a stream are shuffled already."""

    def __init__(self, dataset: Sized, batch_size: int, drop_last: bool = False, **arguments: Any) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        self.sampler = _InOrder(len(dataset), self.seed)


def equal_parts(batch: list[int], parts: int) -> Iterator[list[int]]:
    """Yield equal parts of a batch, without the rows left over."""
    size = len(batch) // parts
    for start in range(0, size * parts, size):
        yield batch[start : start + size]
