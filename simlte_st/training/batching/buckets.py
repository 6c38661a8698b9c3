"""Documents sorted by length, cut into buckets of similar length."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simlte_st.training.batching.lengths import Lengths

_RATIO = 1.25  # of a bucket's longest document to its shortest
_LEAST_BATCHES = 4  # in a bucket (2 in the last): with fewer, the same documents meet in every epoch


@dataclass(frozen=True, slots=True)
class Bucket:
    """A run of documents sorted by length.

    Attributes:
        start: Index of the first.
        stop: Index after the last.
        cost: Tokens of the longest.
        size: Documents that a batch can hold.
        batches: Number of its batches, whose sizes differ by at most one.
    """

    start: int
    stop: int
    cost: int
    size: int
    batches: int

    @classmethod
    def of(cls, start: int, stop: int, cost: int, size: int) -> Bucket:
        """Return a bucket with as few batches as possible."""
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
        """Return whether one more batch would leave ``least`` documents in each."""
        return self.documents // least > self.batches


def cut_buckets(costs: Lengths, budget: int, least: int) -> list[Bucket] | None:
    """Return buckets whose batches fit a budget of tokens; None if the longest documents do not fit.

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
    """Raise the number of batches of buckets to ``batches`` in total, dividing the largest first."""
    result = list(buckets)
    while sum(bucket.documents // least for bucket in result) < batches:
        # Happens with a handful of documents: the buckets of the shortest become one.
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
