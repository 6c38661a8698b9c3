"""Windows: what a pass sees of a document that is longer than the model reads."""

from __future__ import annotations

from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simlte_st.data.drawing import WindowMode, choose_window

MODES = get_args(WindowMode)

sizes_of_units = st.lists(st.integers(1, 40), min_size=1, max_size=25)
modes = st.sampled_from(MODES)
least = st.integers(1, 3)


@settings(max_examples=300)
@given(sizes_of_units, st.integers(1, 200), modes, least, st.integers(0, 2**32))
def test_windows_are_ascending_within_budget_and_full(
    sizes: list[int], budget: int, mode: WindowMode, at_least: int, seed: int
) -> None:
    window = choose_window(sizes, budget, mode, Random(seed), at_least)
    assert window == sorted(set(window))
    assert set(window) <= set(range(len(sizes)))
    assert len(window) >= min(at_least, len(sizes))
    taken = sum(sizes[index] for index in window)
    if sum(sizes) <= budget:
        assert window == list(range(len(sizes)))
        return
    assert taken <= budget or len(window) == at_least or len(window) == len(sizes)
    if mode == "head":
        assert window[0] == 0
    if mode != "spread":
        assert window == list(range(window[0], window[-1] + 1))
    # as full as whole units can make it: the next unit, after it or, at the document's end, before it, does not fit
    if mode == "spread":
        assert len(window) == len(sizes) or taken + max(sizes) > budget
    elif window[-1] + 1 < len(sizes):
        assert taken + sizes[window[-1] + 1] > budget
    elif window[0] > 0 and len(window) > at_least:
        assert taken + max(sizes) > budget


@settings(max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40), least)
def test_random_windows_reach_every_unit(sizes: list[int], budget: int, at_least: int) -> None:
    rng = Random(0)
    windows = [choose_window(sizes, budget, "random", rng, at_least) for _ in range(400)]
    assert {index for window in windows for index in window} == set(range(len(sizes)))


def test_random_windows_reach_the_last_unit_when_units_do_not_divide_the_budget() -> None:
    rng = Random(0)
    windows = {tuple(choose_window([10] * 5, 25, "random", rng)) for _ in range(200)}
    assert windows == {(0, 1), (1, 2), (2, 3), (3, 4)}


def test_random_windows_begin_everywhere_equally_often() -> None:
    rng = Random(1)
    starts = [choose_window([1] * 10, 4, "random", rng)[0] for _ in range(7000)]
    assert set(starts) == set(range(7))
    assert all(850 < starts.count(start) < 1150 for start in range(7))


def test_spread_covers_the_document() -> None:
    rng = Random(2)
    windows = [choose_window([1] * 100, 20, "spread", rng) for _ in range(50)]
    assert all(len(window) == 20 for window in windows)
    # from all over: hardly ever does a fifth of the units leave half of the document out
    assert sum(window[0] < 25 and window[-1] >= 75 for window in windows) >= 48
    assert {index for window in windows for index in window} == set(range(100))


def test_head_is_the_head_whatever_the_chance() -> None:
    assert {tuple(choose_window([3, 3, 3, 3], 7, "head", Random(seed))) for seed in range(20)} == {(0, 1)}


@pytest.mark.parametrize("mode", MODES)
def test_a_document_that_fits_is_taken_whole(mode: WindowMode) -> None:
    assert choose_window([4, 5, 6], 15, mode, Random(0)) == [0, 1, 2]
    assert choose_window([4, 5, 6], None, mode, Random(0)) == [0, 1, 2]
    assert choose_window([4, 5, 6], 14, mode, Random(0)) != [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
def test_at_least_so_many_units_even_beyond_the_budget(mode: WindowMode) -> None:
    for seed in range(20):
        assert len(choose_window([50] * 6, 10, mode, Random(seed), at_least=2)) == 2
        assert len(choose_window([50] * 6, 10, mode, Random(seed), at_least=1)) == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_window_depends_on_its_generator_only(mode: WindowMode) -> None:
    sizes = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    draws = [choose_window(sizes, 12, mode, Random(seed)) for seed in range(10)]
    assert draws == [choose_window(sizes, 12, mode, Random(seed)) for seed in range(10)]
    assert mode == "head" or len({tuple(draw) for draw in draws}) > 1
