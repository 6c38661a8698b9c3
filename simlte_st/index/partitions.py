"""How an approximate index divides its vectors, and how many of the partitions a question looks through.

LanceDB's own number is a partition for every 4,096 rows, and its ``optimize`` merges others until that is so, unless an
index was made with a ``target_partition_size``.
"""

from __future__ import annotations

from math import ceil, sqrt

APPROXIMATE_FROM = 50_000
"""Rows from which on the vectors have an approximate index (IVF); fewer are compared one by one, which is quick."""

PROBES = 100
"""Partitions that a question for a few rows looks through: recall@10 is then .974 to .987 from 60,000 to a million rows
(``benchmarks.index_scale``)."""

_FEW = 100  # rows
_MOST_SEGMENTS = 8  # of an index that is left as it is; with eight a question takes up to twice as long as with one


def partition_size(rows: int) -> int:
    """Return the rows of a partition, such that there are about ``2 * sqrt(rows)`` partitions."""
    return max(1, round(sqrt(rows) / 2))


def partition_count(rows: int) -> int:
    """Return the number of partitions of an index that is made for so many rows."""
    return rows // partition_size(rows)


def outgrown(target: int, segments: int, rows: int) -> bool:
    """Return whether an index is to be made anew."""
    made_for = (2 * target) ** 2
    return not made_for / 2 < rows < made_for * 2 or segments >= _MOST_SEGMENTS


def probes(rows: int, matching: int, nearest: int) -> int:
    """Return the number of partitions that a question looks through.

    A filter leaves fewer rows in each partition, so more are looked through: as many rows are compared as without it.
    """
    return or_all(ceil(PROBES * rows / max(1, matching) * sqrt(max(1.0, nearest / _FEW))), rows)


def or_all(number: int, rows: int) -> int:
    """Return a number of partitions; ``rows`` where that is about all of them."""
    return number if number < partition_count(rows) else rows
