"""Random batches in which no two documents of a group meet."""

from __future__ import annotations

import logging
from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.training.batching.base import PlannedBatchSampler, Rows

logger = logging.getLogger(__name__)


class SeparatedBatchSampler(PlannedBatchSampler):
    """Random batches that keep groups of documents apart: copies of a text would be false negatives of each other.

    In each epoch the documents are shuffled and cut into batches. Of a group's documents in a batch the first stays.
    Each other one goes to a batch without its group, in exchange for a document that fits where one is missing.

    A group with more members than there are batches has only as many in an epoch, other ones each time. In a small
    corpus of many copies a document may find no place, and a batch is one short. The log says how many an epoch leaves
    out.

    Args:
        dataset: The documents.
        batch_size: Documents in a batch; the last one of an epoch may be smaller, as in the stock sampler.
        drop_last: Leave that one out.
        groups: A group for each document, shape (documents,), as of
            :func:`~simlte_st.data.duplicates.find_duplicates`.
        **arguments: The Trainer's other arguments.

    Raises:
        ConfigurationError: Batches of one document, or groups of another number of documents.
        EmptyCorpusError: Fewer than two documents could be in a batch.
    """

    def __init__(
        self, dataset: Sized, batch_size: int, drop_last: bool, *, groups: ArrayLike, **arguments: Any
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        if batch_size < 2:
            raise ConfigurationError(f"batch_size={batch_size}: the negatives are the other documents; use 2 or more.")
        self.check_rows("groups", len(np.asarray(groups)))
        self.groups: Rows = np.unique(groups, return_inverse=True)[1].reshape(-1)
        self._used, self._batches = self._fit()

    def _fit(self) -> tuple[int, int]:
        """Count the documents and the batches that are left if no group has more members than there are batches."""
        sizes = np.bincount(self.groups)
        used, batches = self.documents, self._count(self.documents)
        while (fewer := int(np.minimum(sizes, batches).sum())) < used:
            used, batches = fewer, self._count(fewer)
        if used < 2 or batches < 1:
            raise EmptyCorpusError(
                f"Of {self.documents} documents {used} can be kept apart as groups= asks, too few for a batch: "
                f"batch_size={self.batch_size}, drop_last={self.drop_last}."
            )
        return used, batches

    def _count(self, documents: int) -> int:
        return documents // self.batch_size if self.drop_last else -(-documents // self.batch_size)

    def __len__(self) -> int:
        return self._batches

    def plan(self, epoch: int) -> list[Rows]:
        """Make the batches of an epoch."""
        rng = self.generator_of(epoch)
        rows = self._members(rng.permutation(self.documents))
        size = self.batch_size
        batches = [rows[number * size : (number + 1) * size].tolist() for number in range(self._batches)]
        left_out = self.documents - self._used + self._separate(batches, rng)
        if left_out:
            logger.warning(
                "Epoch %d leaves out %d of %d documents: their groups are too large to be kept apart.",
                epoch,
                left_out,
                self.documents,
            )
        return [np.array(batch, dtype=np.int64) for batch in batches]

    def _members(self, rows: Rows) -> Rows:
        """Take as many of each group as there are batches."""
        groups = self.groups[rows]
        order = np.argsort(groups, kind="stable")
        starts = np.searchsorted(groups[order], groups[order])  # of each row's group
        rank = np.empty(len(rows), dtype=np.int64)
        rank[order] = np.arange(len(rows)) - starts
        return rows[rank < self._batches]

    def _separate(self, batches: list[list[int]], rng: np.random.Generator) -> int:
        """Exchange documents until no two of a group are in one batch; give the number of those left out."""
        homeless: list[int] = []
        missing = np.zeros(len(batches), dtype=np.int64)
        for number, batch in enumerate(batches):
            stay = np.sort(np.unique(self.groups[batch], return_index=True)[1])
            homeless += np.delete(batch, stay).tolist()
            missing[number] = len(batch) - len(stay)
            batches[number] = np.take(batch, stay).tolist()
        return sum(not self._place(homeless[index], batches, missing, rng) for index in rng.permutation(len(homeless)))

    def _place(self, row: int, batches: list[list[int]], missing: Rows, rng: np.random.Generator) -> bool:
        """Put a document into a batch without its group, and what it replaces into one where a document is missing."""
        for number in rng.permutation(len(batches)).tolist():
            groups = self.groups[batches[number]]
            if self.groups[row] in groups:
                continue
            if missing[number]:
                batches[number].append(row)
                missing[number] -= 1
                return True
            for other in rng.permutation(np.flatnonzero(missing)).tolist():
                movable = np.flatnonzero(~np.isin(groups, self.groups[batches[other]]))
                if len(movable):
                    place = int(rng.choice(movable))
                    batches[other].append(batches[number][place])
                    batches[number][place] = row
                    missing[other] -= 1
                    return True
        return False
