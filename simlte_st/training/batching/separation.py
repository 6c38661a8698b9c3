"""Documents that must not meet in a batch: copies of each other, and ones so alike that they are no negatives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.training.batching.base import Rows
from simlte_st.training.batching.embeddings import Codes

# What is tried for a document before it is left out, and how many in a row may be left out before the rest is too:
# bounds on the time that a corpus costs which has more copies of a text than there are batches.
_BATCHES = 256
_EXCHANGES = 32
_FAILURES = 50

Clashes = NDArray[np.bool_]


class Apart:
    """Tells which documents must be kept apart.

    Args:
        groups: Group of each document; two of one group clash. Shape (documents,).
        codes: Integer embeddings, shape (documents, dimensions).
        limit: Two documents clash if the product of their codes is above this.
    """

    def __init__(self, groups: NDArray[Any] | None = None, codes: Codes | None = None, limit: float = np.inf) -> None:
        self.groups = groups
        self.codes = codes if limit < np.inf else None
        self.limit = limit

    @property
    def needless(self) -> bool:
        """Whether nothing clashes."""
        return self.groups is None and self.codes is None

    def clashes(self, rows: Rows, others: Rows) -> Clashes:
        """Tell which of ``rows`` clash with which of ``others``: shape (rows, others)."""
        found = np.zeros((len(rows), len(others)), dtype=bool)
        if self.groups is not None:
            found |= self.groups[rows][:, None] == self.groups[others][None]
        if self.codes is not None:
            found |= self.codes[rows].astype(np.float32) @ self.codes[others].astype(np.float32).T > self.limit
        return found


def separate(batches: list[Rows], apart: Apart, rng: np.random.Generator) -> tuple[list[Rows], list[int]]:
    """Exchange documents between batches until no two that clash are in one.

    Of documents that clash, the first stays. For each of the others a batch is looked for where it clashes with
    nothing, and there a document to give in exchange that clashes with nothing in a batch with room: batches in random
    order, at most 256. A document for which there is none is left out, and a batch stays one short; after 50 such
    documents in a row all that are left are left out.

    Args:
        batches: The batches.
        apart: What clashes.
        rng: Source of randomness.

    Returns:
        The batches, of the same sizes where nothing was left out, and the rows that were left out.
    """
    if apart.needless:
        return batches, []
    members, homeless, room = [], [], []
    for number, batch in enumerate(batches):
        stay, leave = _split(apart, batch)
        members.append(stay)
        homeless += leave
        room += [number] * len(leave)
    left_out: list[int] = []
    failures = 0
    for index in rng.permutation(len(homeless)):
        if failures < _FAILURES and _place(homeless[index], members, room, apart, rng):
            failures = 0
        else:
            failures += 1
            left_out.append(homeless[index])
    return [np.array(batch, dtype=np.int64) for batch in members], left_out


def _split(apart: Apart, batch: Rows) -> tuple[list[int], list[int]]:
    clashes = apart.clashes(batch, batch)
    np.fill_diagonal(clashes, False)
    if not clashes.any():
        return batch.tolist(), []
    stay: list[int] = []
    leave: list[int] = []
    for place in range(len(batch)):
        (leave if clashes[place, stay].any() else stay).append(place)
    return batch[stay].tolist(), batch[leave].tolist()


def _place(row: int, members: list[list[int]], room: list[int], apart: Apart, rng: np.random.Generator) -> bool:
    """Put a row into a batch; ``room`` names a batch as often as documents are missing from it."""
    alone = np.array([row])
    exchanges = 0
    for number in rng.permutation(len(members))[:_BATCHES].tolist():
        there = np.array(members[number], dtype=np.int64)
        if apart.clashes(alone, there).any():
            continue
        if number in room:
            members[number].append(row)
            room.remove(number)
            return True
        for other in rng.permutation(sorted(set(room))).tolist():
            movable = np.flatnonzero(~apart.clashes(there, np.array(members[other], dtype=np.int64)).any(axis=1))
            if len(movable):
                place = int(rng.choice(movable))
                members[other].append(members[number][place])
                members[number][place] = row
                room.remove(other)
                return True
            exchanges += 1
            if exchanges == _EXCHANGES:
                return False
    return False
