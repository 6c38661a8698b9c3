"""Windows: what a pass sees of a document that is longer than the model reads."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from simlte_st.data.views import choose_window

least = st.integers(1, 3)


@settings(max_examples=300)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=25), st.integers(1, 200), least, st.integers(0, 2**32))
def test_windows_are_runs_within_budget_and_full(sizes: list[int], budget: int, at_least: int, seed: int) -> None:
    window = choose_window(sizes, budget, Random(seed), at_least)
    assert window == list(range(window[0], window[-1] + 1))
    assert set(window) <= set(range(len(sizes)))
    assert len(window) >= min(at_least, len(sizes))
    taken = sum(sizes[index] for index in window)
    if sum(sizes) <= budget:
        assert window == list(range(len(sizes)))
        return
    assert taken <= budget or len(window) == at_least or len(window) == len(sizes)
    # As full as whole sentences can make it: the next, after it or, at the document's end, before it, does not fit.
    if window[-1] + 1 < len(sizes):
        assert taken + sizes[window[-1] + 1] > budget
    elif window[0] > 0 and len(window) > at_least:
        assert taken + max(sizes) > budget
    assert window == choose_window(sizes, budget, Random(seed), at_least)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 40), least)
def test_windows_reach_every_sentence(sizes: list[int], budget: int, at_least: int) -> None:
    rng = Random(0)
    windows = [choose_window(sizes, budget, rng, at_least) for _ in range(400)]
    assert {index for window in windows for index in window} == set(range(len(sizes)))


def test_windows_begin_everywhere_equally_often() -> None:
    rng = Random(1)
    starts = [choose_window([1] * 10, 4, rng)[0] for _ in range(7000)]
    assert set(starts) == set(range(7))
    assert all(850 < starts.count(start) < 1150 for start in range(7))
    assert choose_window([4, 5, 6], None, rng) == [0, 1, 2]
