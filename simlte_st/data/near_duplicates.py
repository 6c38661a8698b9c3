"""Near-duplicates: which documents share enough of their runs of words with one that is kept, exactly and quickly."""

from __future__ import annotations

import functools
import hashlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

RUN = 5
"""Words that are compared together; a shorter document is one run."""

_COUNTERS = 1 << 22  # runs are counted by the last bits of their hash
_PARITIES = 1 << 11  # of a set: how many of its elements are in each part of the range of hashes, odd or even
_TOGETHER = 1 << 14  # sets whose parities are compared at once
_ROUNDING = 1e-9


def hash_runs(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes of a document's different runs of words, ascending."""
    hashes = np.array([_hash(word) for word in words] or [0], dtype=np.uint64)
    run = min(RUN, len(hashes))
    mixed = np.full(len(hashes) - run + 1, run, dtype=np.uint64)
    for place in range(run):
        mixed = (mixed ^ hashes[place : place + len(mixed)]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


@functools.lru_cache(1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def similar_earlier(sets: Sequence[NDArray[np.uint64]], threshold: float) -> Iterator[int | None]:
    """Yield for each set the first kept one whose Jaccard similarity with it reaches the threshold; None if it is kept.

    A set is kept if no kept one is similar, so that whatever is left out is similar to one that is there. Pairs are
    found by prefix filtering (Chaudhuri et al., 2006) with positions (Xiao et al., PPJoin, 2008): with all elements in
    one order, from the rarest on, two similar sets share one among their first few, and enough can follow it. Most of
    those pairs are ruled out by parities (Sandes et al., Bitmap-Xor, 2019). Nothing is estimated. Documents of one
    template share their frequent runs, which come last and so are hardly looked at.
    """
    counts, kept = _count(sets), _KeptSets(sets, threshold)
    for number, elements in enumerate(sets):
        rarity = counts[elements & np.uint64(_COUNTERS - 1)]
        # Before the first element that two sets of this similarity share there are at most this many others.
        most = len(elements) - ceil(threshold * len(elements) - _ROUNDING)
        first = np.argsort(rarity, kind="stable")[: most + 1]
        # Nothing else has an element that was counted once.
        places = [(place, int(elements[row])) for place, row in enumerate(first.tolist()) if rarity[row] > 1]
        found = next(kept.similar(elements, kept.candidates(len(elements), places)), None)
        if found is None:
            kept.add(number, places)
        yield found


def _count(sets: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    counts = np.zeros(_COUNTERS, dtype=np.uint32)
    for elements in sets:
        np.add.at(counts, elements & np.uint64(_COUNTERS - 1), 1)
    return counts


class _KeptSets:
    """The sets that are kept so far, by the elements that they begin with."""

    def __init__(self, sets: Sequence[NDArray[np.uint64]], threshold: float) -> None:
        self._sets, self._threshold = sets, threshold
        self._sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
        self._parities = np.zeros((len(sets), _PARITIES // 64), dtype=np.uint64)  # of kept ones
        self._numbers = array("I")
        # By element and size: the numbers of the sets, and the element's places in them, in turns.
        self._beginning: dict[int, dict[int, array[int]]] = {}

    def add(self, number: int, places: Iterable[tuple[int, int]]) -> None:
        """Keep a set, with its first elements and their places."""
        size = len(self._sets[number])
        self._numbers.append(number)
        self._parities[number] = _parities(self._sets[number])
        for place, element in places:
            self._beginning.setdefault(element, {}).setdefault(size, array("I")).extend((number, place))

    def candidates(self, size: int, places: Iterable[tuple[int, int]]) -> NDArray[np.uint32]:
        """Return the numbers of those that may be similar to a set of a size and first elements, in order."""
        found, total = [np.zeros(0, dtype=np.uint32)], 0
        for place, element in places:
            for other_size, pairs in self._beginning.get(element, {}).items():
                needed = self._threshold * (size + other_size) / (1 + self._threshold) - _ROUNDING  # in common
                # If this is the first of them, the others come after it.
                if needed <= min(size - place, other_size):
                    numbers, theirs = np.frombuffer(pairs, dtype=np.uint32).reshape(-1, 2).T
                    found.append(numbers[theirs <= other_size - needed])
                    total += len(found[-1])
            if total > len(self._numbers):  # frequent elements alone: to look at all of them costs less
                return np.array(self._numbers, dtype=np.uint32)
        return np.unique(np.concatenate(found))

    def similar(self, elements: NDArray[np.uint64], candidates: NDArray[np.uint32]) -> Iterator[int]:
        """Yield the numbers of those candidates that are similar, in order."""
        own = _parities(elements)
        for begin in range(0, len(candidates), _TOGETHER):
            numbers = candidates[begin : begin + _TOGETHER]
            both = len(elements) + self._sizes[numbers]
            # What only one of two sets has makes a parity differ, or makes it the same again.
            apart = np.bitwise_count(self._parities[numbers] ^ own).sum(axis=1, dtype=np.int64)
            needed = 2 * self._threshold * both / (1 + self._threshold) - _ROUNDING
            for other in numbers[both - apart >= needed].tolist():
                common = len(np.intersect1d(elements, self._sets[other], assume_unique=True))
                if common >= self._threshold * (len(elements) + len(self._sets[other]) - common) - _ROUNDING:
                    yield other


def _parities(elements: NDArray[np.uint64]) -> NDArray[np.uint64]:
    parts = (elements >> np.uint64(65 - _PARITIES.bit_length())).astype(np.int64)
    odd = np.bincount(parts, minlength=_PARITIES).astype(np.uint8) & 1
    return np.packbits(odd).view(np.uint64)
