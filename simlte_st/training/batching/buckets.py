"""Documents sorted by length, cut into buckets of similar length."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simlte_st.training.batching.lengths import Lengths

_RATIO = 1.25  # a bucket's longest document through its shortest
_LEAST_BATCHES = 4  # in a bucket (two in that of the shortest): with few, the same documents meet in every epoch


@dataclass(frozen=True, slots=True)
class Bucket:
    """A run of documents sorted by length.

    Attributes:
        start: The first of them.
        stop: The one after the last.
        cost: Tokens of the longest.
        size: Documents that a batch can hold.
        batches: Batches that it is cut into, of sizes that differ by one at most.
    """

    start: int
    stop: int
    cost: int
    size: int
    batches: int

    @classmethod
    def of(cls, start: int, stop: int, cost: int, size: int) -> Bucket:
        """Make one with as few batches as possible."""
        return cls(start, stop, cost, size, -(-(stop - start) // size))

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.stop - self.start

    @property
    def largest(self) -> int:
        """Tokens of its largest batch, padding included."""
        return -(-self.documents // self.batches) * self.cost

    def can_split(self, least: int) -> bool:
        """Whether one batch more would still leave ``least`` documents in each."""
        return self.documents // least > self.batches


def cut_buckets(costs: Lengths, budget: int, least: int) -> list[Bucket] | None:
    """Cut documents into buckets of which every batch fits a budget.

    A bucket's longest document is at most 1.25 times its shortest, unless that makes fewer than four batches.
    """
    buckets: list[Bucket] = []
    start = 0
    while start < len(costs):
        cost = int(costs[start])
        size = budget // cost
        if size < min(2 * least - 1, len(costs)):
            return None
        stop = int(np.searchsorted(-costs, -cost / _RATIO, side="right"))
        stop = max(stop, start + _LEAST_BATCHES * size)
        if stop >= len(costs) or len(costs) - stop <= budget // int(costs[stop]):
            stop = len(costs)  # what is left would be one batch, the same in every epoch
        buckets.append(Bucket.of(start, stop, cost, size))
        start = stop
    return buckets


def split_to(buckets: Sequence[Bucket], batches: int, least: int) -> list[Bucket]:
    """Cut buckets into more batches until there are so many; the largest batches are made smaller first."""
    result = list(buckets)
    while sum(bucket.documents // least for bucket in result) < batches:
        # Only a handful of documents makes it so: the two shortest become one bucket.
        first, second = result[-2:]
        result[-2:] = [Bucket.of(first.start, second.stop, first.cost, first.size)]
    heap = [(-bucket.largest, index) for index, bucket in enumerate(result) if bucket.can_split(least)]
    heapq.heapify(heap)
    for _ in range(batches - sum(bucket.batches for bucket in result)):
        _, index = heapq.heappop(heap)
        result[index] = replace(result[index], batches=result[index].batches + 1)
        if result[index].can_split(least):
            heapq.heappush(heap, (-result[index].largest, index))
    return result
