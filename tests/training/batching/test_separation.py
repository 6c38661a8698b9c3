from __future__ import annotations

import numpy as np
import pytest

from simlte_st.training.batching.separation import Apart, separate


def batches_of(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def assert_apart(batches: list[np.ndarray], apart: Apart) -> None:
    for batch in batches:
        clashes = apart.clashes(batch, batch)
        np.fill_diagonal(clashes, False)
        assert not clashes.any()


def test_what_clashes() -> None:
    rows, others = np.array([0, 3]), np.array([0, 1, 2])
    groups = np.array([7, 8, 7, 8])
    codes = np.array([[10, 0], [9, 4], [0, 10], [6, 8]], dtype=np.int16)
    assert Apart(groups).clashes(rows, others).tolist() == [[True, False, True], [False, True, False]]
    assert Apart(None, codes, 79.0).clashes(rows, others).tolist() == [[True, True, False], [False, True, True]]
    assert Apart(None, codes, 90.0).clashes(rows, others).tolist() == [[True, False, False], [False, False, False]]
    both = Apart(groups, codes, 79.0)
    assert both.clashes(rows, others).tolist() == [[True, True, True], [False, True, True]]
    assert not both.needless
    assert Apart().needless
    assert Apart(None, codes).needless


def test_nothing_is_done_where_nothing_clashes() -> None:
    rng = np.random.default_rng(0)
    batches = batches_of(rng.permutation(20), 4)
    for apart in (Apart(), Apart(np.arange(20))):
        changed, left_out = separate(batches, apart, rng)
        assert [batch.tolist() for batch in changed] == [batch.tolist() for batch in batches]
        assert left_out == []


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("with_codes", [False, True])
def test_nothing_that_clashes_stays_together(seed: int, with_codes: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.permutation(203)
    groups = np.minimum(rng.integers(0, 60, size=203), rng.integers(0, 60, size=203))  # some are large
    codes = rng.integers(-60, 60, size=(203, 6)).astype(np.int16) if with_codes else None
    apart = Apart(groups, codes, 9_000.0 if with_codes else np.inf)
    before = batches_of(rows, 10)
    with pytest.raises(AssertionError):
        assert_apart(before, apart)
    after, left_out = separate(before, apart, rng)
    assert_apart(after, apart)
    assert left_out == []
    assert sorted(np.concatenate(after)) == list(range(203))
    assert [len(batch) for batch in after] == [10] * 20 + [3]
    # Only what had to move has moved, and what it was exchanged for.
    stayed = sum(len(set(one) & set(other)) for one, other in zip(before, after, strict=True))
    assert stayed > 203 - 2 * 90


def test_a_group_as_large_as_there_are_batches() -> None:
    groups = np.concatenate([np.zeros(10, dtype=int), np.arange(1, 71)])
    after, left_out = separate(batches_of(np.arange(80), 8), Apart(groups), np.random.default_rng(0))
    assert left_out == []
    assert [int((batch < 10).sum()) for batch in after] == [1] * 10


def test_what_fits_nowhere_is_left_out() -> None:
    groups = np.concatenate([np.zeros(13, dtype=int), np.arange(1, 68)])
    apart = Apart(groups)
    after, left_out = separate(batches_of(np.arange(80), 8), apart, np.random.default_rng(0))
    assert_apart(after, apart)
    assert len(left_out) == 3
    assert all(row < 13 for row in left_out)
    assert sorted([*np.concatenate(after), *left_out]) == list(range(80))
    sizes = [len(batch) for batch in after]
    assert sum(sizes) == 77
    assert max(sizes) == 8


@pytest.mark.parametrize("seed", range(20))
def test_room_that_others_have_left_is_used(seed: int) -> None:
    # Each batch has two of a group: what leaves one fits where the other left.
    groups = np.array([0, 0, 1, 1, 2, 2])
    batches = [np.array([0, 1, 2]), np.array([3, 4, 5])]
    after, left_out = separate(batches, Apart(groups), np.random.default_rng(seed))
    assert left_out == []
    assert sorted(groups[after[0]]) == sorted(groups[after[1]]) == [0, 1, 2]


def test_the_generator_decides() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 30, size=120)
    before = batches_of(rng.permutation(120), 10)

    def run(seed: int) -> str:
        return str(separate(before, Apart(groups), np.random.default_rng(seed)))

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_hopeless_case_ends() -> None:
    apart = Apart(np.zeros(4_000, dtype=int))
    after, left_out = separate(batches_of(np.arange(4_000), 10), apart, np.random.default_rng(0))
    assert [len(batch) for batch in after] == [1] * 400
    assert sorted([*np.concatenate(after), *left_out]) == list(range(4_000))
