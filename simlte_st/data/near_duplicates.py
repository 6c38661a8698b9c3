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
_ROUNDING = 1e-9

_Kept = dict[int, dict[int, "array[int]"]]
"""By element and size, the numbers of the kept sets that begin with the element, and its places in them, in turns."""


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
    one order, from the rarest on, two similar sets share one among their first few, and enough can follow it. Nothing
    is estimated. Documents of one template share their frequent runs, which come last and so are hardly looked at.
    """
    counts = _count(sets)
    kept: _Kept = {}
    for number, elements in enumerate(sets):
        rarity = counts[elements & np.uint64(_COUNTERS - 1)]
        size = len(elements)
        # Before the first element that two sets of this similarity share there are at most this many others.
        first = np.argsort(rarity, kind="stable")[: size - ceil(threshold * size - _ROUNDING) + 1]
        # Nothing else has an element that was counted once.
        places = [(place, int(elements[row])) for place, row in enumerate(first.tolist()) if rarity[row] > 1]
        found = next(_similar(elements, places, kept, sets, threshold), None)
        if found is None:
            for place, element in places:
                kept.setdefault(element, {}).setdefault(size, array("I")).extend((number, place))
        yield found


def _count(sets: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    counts = np.zeros(_COUNTERS, dtype=np.uint32)
    for elements in sets:
        np.add.at(counts, elements & np.uint64(_COUNTERS - 1), 1)
    return counts


def _similar(
    elements: NDArray[np.uint64],
    places: Iterable[tuple[int, int]],
    kept: _Kept,
    sets: Sequence[NDArray[np.uint64]],
    threshold: float,
) -> Iterator[int]:
    """Yield the kept sets that are similar, in order."""
    size = len(elements)
    candidates = [np.zeros(0, dtype=np.uint32)]
    for place, element in places:
        for other_size, pairs in kept.get(element, {}).items():
            needed = threshold * (size + other_size) / (1 + threshold) - _ROUNDING  # elements in common
            # If this is the first of them, the others come after it.
            if needed <= min(size - place, other_size):
                numbers, theirs = np.frombuffer(pairs, dtype=np.uint32).reshape(-1, 2).T
                candidates.append(numbers[theirs <= other_size - needed])
    for other in np.unique(np.concatenate(candidates)).tolist():
        common = len(np.intersect1d(elements, sets[other], assume_unique=True))
        if common >= threshold * (size + len(sets[other]) - common) - _ROUNDING:
            yield other
