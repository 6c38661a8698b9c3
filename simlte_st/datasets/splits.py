"""A training and a test part for data sets that come without: by class, by seed, and copies never on both sides."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError

TRAIN, TEST, NEITHER = 0, 1, -1


def text_key(text: str) -> int:
    """Give a signed 64-bit hash of a text: the same for copies, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big", signed=True)


def stratified_split(
    classes: NDArray[np.int32], keys: NDArray[np.int64], test_share: float, seed: int
) -> NDArray[np.int8]:
    """Divide documents into training and test part, each class in proportion.

    The documents of a class are put in an order that (seed, text) decides, and the first of them are for the test. So
    the split does not depend on the order in which they are stored, and copies of a text in a class stay together.

    Args:
        classes: Index of each document's class ``[n]``, -1 where it has none.
        keys: :func:`text_key` of each document ``[n]``.
        test_share: Share of each class for the test, above 0 and below 1. A class keeps at least one training document.
        seed: Decides the order.

    Returns:
        :data:`TRAIN`, :data:`TEST` or :data:`NEITHER` (no class) for each document ``[n]``, int8.

    Raises:
        ConfigurationError: ``test_share`` is out of its range.
    """
    if not 0 < test_share < 1:
        raise ConfigurationError(f"test_share must be above 0 and below 1, not {test_share}.")
    sides = np.full(len(classes), NEITHER, dtype=np.int8)
    sides[classes >= 0] = TRAIN
    places = _mix(keys, seed)
    order = np.lexsort((places, classes))
    starts = np.searchsorted(classes[order], np.arange(classes.max(initial=-1) + 2))
    for start, stop in itertools.pairwise(starts):
        members = order[start:stop]
        sides[members[: _test_size(places[members], test_share)]] = TEST
    return sides


def _test_size(places: NDArray[np.uint64], share: float) -> int:
    """Give how many of a class are for the test: the size asked for, moved up or else down so as not to part copies."""
    wanted = min(round(len(places) * share), len(places) - 1)
    ends = np.flatnonzero(places[1:] != places[:-1]) + 1  # sizes at which no copies are parted
    if wanted < 1 or not len(ends):
        return 0
    return int(ends[min(int(np.searchsorted(ends, wanted)), len(ends) - 1)])


def _mix(keys: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Hash keys together with the seed (SplitMix64's finaliser: a bijection, so distinct keys stay distinct)."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "big")
    mixed = keys.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


def split_strings(sides: NDArray[np.int8]) -> Any:
    """Write a split as an Arrow column of strings, null for neither."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = pa.array(["train", "test"])
    return pc.take(names, pa.array(sides.astype(np.int32), mask=sides == NEITHER))
