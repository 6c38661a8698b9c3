"""Which part of a document longer than the model reads goes into a pass.

The window is drawn *before* the split into views, so that both views fill what the model reads; cutting afterwards
would keep the head of each view and never show the model the rest of the document.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Literal

WindowMode = Literal["random", "head", "spread"]


def choose_window(
    sizes: Sequence[int], budget: int | None, mode: WindowMode, rng: Random, at_least: int = 2
) -> list[int]:
    """Choose the units that a pass sees."""
    everything = list(range(len(sizes)))
    if budget is None or sum(sizes) <= budget:
        return everything
    if mode == "spread":
        rng.shuffle(everything)
        return sorted(_fill(everything, sizes, budget, at_least))
    if mode == "head":
        return _fill(everything, sizes, budget, at_least)
    rest = 0
    last_start = len(sizes)
    # The last start is the one from which the rest fits as a whole: one earlier, and the last unit is never reached.
    while last_start > 0 and (rest + sizes[last_start - 1] <= budget or len(sizes) - last_start < at_least):
        last_start -= 1
        rest += sizes[last_start]
    return _fill(everything[rng.randint(0, last_start) :], sizes, budget, at_least)


def _fill(order: Sequence[int], sizes: Sequence[int], budget: int, at_least: int) -> list[int]:
    chosen: list[int] = []
    taken = 0
    for index in order:
        # Stop at the first unit that does not fit: going on to smaller ones would favour fragments.
        if taken + sizes[index] > budget and len(chosen) >= at_least:
            break
        chosen.append(index)
        taken += sizes[index]
    return chosen
