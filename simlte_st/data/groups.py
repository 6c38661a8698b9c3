"""A stream in groups that are worked on at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def groups(
    items: Iterable[Item], size: Callable[[Item], int], largest: int, most: int | None = None
) -> Iterator[list[Item]]:
    """Part items into groups, in their order."""
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
