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
    """Give the rows of a partition, such that there are about ``2 * sqrt(rows)`` partitions."""
    return max(1, round(sqrt(rows) / 2))


def partition_count(rows: int) -> int:
    """Give the number of partitions of an index that is made for so many rows."""
    return rows // partition_size(rows)


def outgrown(target: int, segments: int, rows: int) -> bool:
    """Say whether an index is to be made anew.

    Args:
        target: Rows of a partition that it was made for; 0 where nothing was said.
        segments: Its parts: each addition makes one more, with as many partitions, of which a question looks through as
            many as of the first.
        rows: Rows of the table now.

    Returns:
        Whether the rows are twice or half as many as it was made for, or the segments too many.
    """
    made_for = (2 * target) ** 2
    return not made_for / 2 < rows < made_for * 2 or segments >= _MOST_SEGMENTS


def probes(rows: int, matching: int, nearest: int) -> int:
    """Give the number of partitions that a question looks through.

    A filter leaves fewer rows in each partition, so more are looked through: as many rows are compared as without it.

    Args:
        rows: Rows of the table.
        matching: Those of them that fulfil the condition of the question.
        nearest: How many are asked for.

    Returns:
        The number; ``rows``, which is more than there are partitions, where all are looked through.
    """
    return or_all(ceil(PROBES * rows / max(1, matching) * sqrt(max(1.0, nearest / _FEW))), rows)


def or_all(number: int, rows: int) -> int:
    """Give a number of partitions; ``rows`` where that is about all of them."""
    return number if number < partition_count(rows) else rows
