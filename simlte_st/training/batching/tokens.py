"""Batches of a number of tokens instead of a number of documents."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError
from simlte_st.training.batching.base import SeededBatchSampler, equal_parts
from simlte_st.training.batching.buckets import Bucket, cut_buckets, split_to
from simlte_st.training.batching.lengths import Lengths

logger = logging.getLogger(__name__)

Rows = NDArray[np.int64]
"""Row numbers."""

_LEAST = 2  # documents in a batch: the negatives are the other ones
_SLACK = 50  # one batch in 50 more than the first epoch needs: other epochs may draw longer views
_STEP = 1.01  # factor by which the budget rises if they do not fit all the same
_WORTH_A_WARNING = 1.05


class TokenBudgetBatchSampler(SeededBatchSampler):
    """Batches by tokens: many short documents or few long ones.

    In each epoch documents are put into buckets by the length of their views, each bucket is shuffled and cut into
    batches that fit the budget, and the batches are shuffled. A bucket's longest view is at most 1.25 times its
    shortest, unless it would hold fewer than four batches, so that documents meet many others over the epochs. Within
    a bucket lengths do not reveal which views belong together, as they do in random batches: both views of a long
    document are long.

    With ``packed`` nothing is padded or sorted: every batch gets the same number of documents of all lengths, and
    nearly the same number of tokens.

    The batches of an epoch are planned at its beginning, from the seed and the epoch; each document is in exactly one.
    All epochs have the same number of batches, which the Trainer counts once and needs to resume: those that the first
    epoch's views need, and 2% more. An epoch that needs more exceeds the budget by the least that suffices, with a
    warning above 5%.

    Several processes get equal parts of each batch and of the budget. A remainder, fewer documents than there are
    processes, is skipped, other documents in each epoch.
    """

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        drop_last: bool,
        *,
        lengths: Lengths | Callable[[int], Lengths],
        batch_tokens: int,
        packed: bool = False,
        **arguments: Any,
    ) -> None:
        super().__init__(dataset, batch_size, drop_last, **arguments)
        self.documents = len(dataset)
        if self.documents < _LEAST:
            raise ConfigurationError(f"{self.documents} documents make no batch of at least {_LEAST}.")
        self.lengths = lengths
        self.batch_tokens = batch_tokens
        self.packed = packed
        # Batches are planned in units of one document for each process.
        self.units = self.documents // self.processes
        self.least = -(-_LEAST // self.processes)
        needed = self._fewest_packed() if packed else self._fewest_padded()
        self._batches = min(needed + -(-needed // _SLACK), self.units // self.least)

    def __len__(self) -> int:
        return self._batches * self.processes

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the current epoch as row numbers; the parts of several processes in turn."""
        for batch in self.plan(self.sampler.epoch):
            yield from equal_parts(batch.tolist(), self.processes)

    def plan(self, epoch: int) -> list[Rows]:
        """Return the batches of an epoch, those of all processes together."""
        rng = self._generator(epoch)
        lengths = self._lengths(epoch)
        batches = (self._packed if self.packed else self._padded)(lengths, rng)
        largest = max(self._cost(lengths[rows]) for rows in batches)
        if largest > self.batch_tokens * _WORTH_A_WARNING:
            logger.warning(
                "Epoch %d has a batch of %d tokens, more than batch_tokens=%d: its views are longer than the first's.",
                epoch,
                largest,
                self.batch_tokens,
            )
        return [batches[index] for index in rng.permutation(len(batches))]

    def _cost(self, lengths: Lengths) -> int:
        return int(lengths.sum() if self.packed else lengths.max() * lengths.size)

    def _lengths(self, epoch: int) -> Lengths:
        lengths = self.lengths(epoch) if callable(self.lengths) else self.lengths
        if len(lengths) != self.documents:  # the Trainer asks for a sampler for its evaluation data too
            raise ConfigurationError(
                f"lengths has {len(lengths)} rows, the data set {self.documents}: {type(self).__name__} needs one for "
                "each document of the training data, and cannot be used with an eval_dataset or several data sets."
            )
        if lengths.ndim != 2 or lengths.min() < 1:
            raise ConfigurationError(
                f"lengths of shape {lengths.shape}, smallest {lengths.min()}: give the tokens of each view of each "
                "document, shape (documents, views), all at least 1."
            )
        return lengths

    def _generator(self, epoch: int) -> np.random.Generator:
        return np.random.default_rng([self.sampler.seed % 2**63, epoch])

    def _dealt(self, rng: np.random.Generator) -> Rows:
        """Return the documents of an epoch: all but a remainder that the processes cannot share evenly."""
        rest = self.documents % self.processes
        return np.sort(rng.permutation(self.documents)[rest:]) if rest else np.arange(self.documents)

    # Padded: buckets.

    def _cut(self, costs: Lengths, looser: float = 1.0) -> list[Bucket] | None:
        """Cut units, sorted by decreasing tokens, into buckets; None if the budget is too small."""
        return cut_buckets(costs, int(self.batch_tokens * looser), self.least)

    def _unit_costs(self, costs: Lengths) -> Lengths:
        """Return the tokens of units of documents sorted by decreasing tokens."""
        return costs[:: self.processes][: self.units] * self.processes

    def _fewest_padded(self) -> int:
        lengths = self._lengths(0)
        costs = -np.sort(-lengths.max(axis=1) * lengths.shape[1])
        buckets = self._cut(self._unit_costs(costs))
        if buckets is None:
            least = min(2 * self.least - 1, self.units) * self.processes
            raise ConfigurationError(
                f"batch_tokens={self.batch_tokens}: too small for {least} of the longest documents, of {costs[0]} "
                f"tokens each. Use at least {costs[0] * least}, or shorter views (max_view_length=)."
            )
        return sum(bucket.batches for bucket in buckets)

    def _padded(self, lengths: Lengths, rng: np.random.Generator) -> list[Rows]:
        costs = lengths.max(axis=1) * lengths.shape[1]
        shuffled = rng.permutation(self._dealt(rng))
        order = shuffled[np.argsort(-costs[shuffled], kind="stable")]
        looser = 1.0
        while True:
            buckets = self._cut(self._unit_costs(costs[order]), looser)
            if buckets is not None and sum(bucket.batches for bucket in buckets) <= self._batches:
                break
            looser *= _STEP
        batches = []
        for bucket in split_to(buckets, self._batches, self.least):
            rows = rng.permutation(order[bucket.start * self.processes : bucket.stop * self.processes])
            units = np.array_split(rows.reshape(-1, self.processes), bucket.batches)
            batches += [batch.T.ravel() for batch in units]
        return batches

    # Packed: as many documents of each length in every batch.

    def _fewest_packed(self) -> int:
        lengths = self._lengths(0)
        most = self.units // self.least
        batches = -(-int(lengths.sum()) // self.batch_tokens)
        while batches <= most:
            parts = self._parts(lengths, batches, self._generator(0))
            if max(int(lengths[rows].sum()) for rows in parts) * self.processes <= self.batch_tokens:
                return batches
            batches = math.ceil(batches * _STEP)
        raise ConfigurationError(
            f"batch_tokens={self.batch_tokens}: too small for batches of {self.least * self.processes} documents; "
            f"the longest has {lengths.sum(axis=1).max()} tokens in its views."
        )

    def _packed(self, lengths: Lengths, rng: np.random.Generator) -> list[Rows]:
        parts = self._parts(lengths, self._batches, rng)
        if self.processes == 1:
            return parts
        # The number of parts that are larger by one is a multiple of the processes: these come together.
        parts.sort(key=len)
        return [np.concatenate(parts[start : start + self.processes]) for start in range(0, len(parts), self.processes)]

    def _parts(self, lengths: Lengths, batches: int, rng: np.random.Generator) -> list[Rows]:
        rows = self._dealt(rng)
        return [rows[part] for part in deal(lengths[rows].sum(axis=1), batches * self.processes, rng)]


def deal(tokens: Lengths, batches: int, rng: np.random.Generator) -> list[Rows]:
    """Return batches of equal numbers of documents and nearly equal numbers of tokens.

    Each round adds one document to each batch, the longest of all first, and the longest of a round to the batch with
    the fewest tokens so far. Pairs of rounds are shuffled first, or the same documents would always meet.
    """
    shuffled = rng.permutation(len(tokens))
    order = shuffled[np.argsort(-tokens[shuffled], kind="stable")]
    for start in range(0, len(order), 2 * batches):
        order[start : start + 2 * batches] = rng.permutation(order[start : start + 2 * batches])
    filled = np.zeros(batches, dtype=np.int64)
    rounds = np.full((-(-len(order) // batches), batches), -1, dtype=np.int64)
    for number in range(len(rounds)):
        dealt = order[number * batches : (number + 1) * batches]
        dealt = dealt[np.argsort(-tokens[dealt], kind="stable")]
        chairs = rng.permutation(batches)
        chairs = chairs[np.argsort(filled[chairs], kind="stable")][: len(dealt)]
        rounds[number, chairs] = dealt
        filled[chairs] += tokens[dealt]
    return [column[column >= 0] for column in rounds.T]
