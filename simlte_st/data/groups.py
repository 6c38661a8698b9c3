"""A stream in groups that are worked on at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def groups(
    items: Iterable[Item], size: Callable[[Item], int], largest: int, most: int | None = None
) -> Iterator[list[Item]]:
    """Part items into groups, in their order.

    Args:
        items: The items, taken as they are needed.
        size: Gives the size of one, such as the length of a text.
        largest: Size of a group at most, unless a single item has more.
        most: Items of a group at most; None for any number.
    """
    group: list[Item] = []
    total = 0
    for item in items:
        own = size(item)
        if group and (total + own > largest or len(group) == most):
            yield group
            group, total = [], 0
        group.append(item)
        total += own
    if group:
        yield group
