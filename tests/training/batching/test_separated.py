from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import skip_first_batches
from accelerate.data_loader import prepare_data_loader
from torch.utils.data import DataLoader

from simlte_st.errors import ConfigurationError, EmptyCorpusError
from simlte_st.training.batching import SeparatedBatchSampler

PAIRS = np.arange(300) // 2


def sampler(
    groups: Any, batch_size: int = 16, drop_last: bool = False, seed: int = 1, epoch: int = 0
) -> SeparatedBatchSampler:
    made = SeparatedBatchSampler(range(len(groups)), batch_size, drop_last, groups=groups, seed=seed)
    made.set_epoch(epoch)
    return made


def assert_apart(batches: list[list[int]], groups: Any) -> None:
    for batch in batches:
        assert len({groups[row] for row in batch}) == len(batch)


@pytest.mark.parametrize("batch_size", [2, 16, 50, 150])
@pytest.mark.parametrize("groups", [np.arange(300), PAIRS, [f"text {row % 160}" for row in range(300)]])
@pytest.mark.parametrize("epoch", [0, 3])
def test_each_document_once_and_no_two_of_a_group_together(batch_size: int, groups: Any, epoch: int) -> None:
    one = sampler(groups, batch_size, epoch=epoch)
    batches = list(one)
    assert_apart(batches, groups)
    assert sorted(row for batch in batches for row in batch) == list(range(300))
    full, rest = divmod(300, batch_size)
    assert [len(batch) for batch in batches] == [batch_size] * full + [rest] * (rest > 0)
    assert len(one) == len(batches)
    assert all(type(row) is int for batch in batches for row in batch)


@pytest.mark.parametrize("seed", range(10))
def test_only_what_must_move_moves(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.minimum(rng.integers(0, 60, size=203), rng.integers(0, 60, size=203))  # some are large
    random, separated = list(sampler(np.arange(203), 10, seed=seed)), list(sampler(groups, 10, seed=seed))
    with pytest.raises(AssertionError):
        assert_apart(random, groups)
    assert_apart(separated, groups)
    assert [len(batch) for batch in separated] == [10] * 20 + [3]
    stayed = sum(len(set(one) & set(other)) for one, other in zip(random, separated, strict=True))
    assert stayed > 203 - 2 * 90


def test_drop_last() -> None:
    one = sampler(PAIRS, drop_last=True)
    assert [len(batch) for batch in one] == [16] * 18
    assert len(one) == 18
    used = []
    for epoch in range(3):
        batches = list(sampler(PAIRS, drop_last=True, epoch=epoch))
        assert_apart(batches, PAIRS)
        used.append({row for batch in batches for row in batch})
    assert len(used[0] & used[1] & used[2]) < 300 - 24  # others are left out in each epoch


def test_seed_epoch_and_groups_decide_and_nothing_else() -> None:
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    one = sampler(PAIRS, seed=7)
    for epoch in range(3):
        one.set_epoch(epoch)
        batches = list(one)
        next(iter(one))  # a pass that was broken off
    assert list(sampler(PAIRS, seed=7, epoch=2)) == batches
    assert list(sampler(PAIRS[::-1], seed=7, epoch=2)) == batches  # numbers are names only
    assert list(sampler(PAIRS, seed=7, epoch=1)) != batches
    assert list(sampler(PAIRS, seed=8, epoch=2)) != batches
    assert torch.equal(torch.get_rng_state(), state)
    assert np.random.get_state()[1].tolist() == numpy_state
    assert len(list(sampler(PAIRS, seed=2**63 - 1, epoch=10**9))) == 19


def test_a_resumed_loader_sees_the_same_batches() -> None:
    # accelerate wraps the batch sampler to skip batches, and tells the epoch only to the sampler inside.
    loader = prepare_data_loader(DataLoader(range(300), batch_sampler=sampler(PAIRS), collate_fn=list))
    rest = skip_first_batches(loader, 5)
    rest.set_epoch(2)
    assert list(rest) == list(sampler(PAIRS, epoch=2))[5:]


@pytest.mark.parametrize("seed", range(20))
def test_room_that_others_have_left_is_used(seed: int) -> None:
    groups = np.array([0, 0, 1, 1, 2, 2])
    batches = list(sampler(groups, 3, seed=seed))
    assert [sorted(groups[batch]) for batch in batches] == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize(("groups", "batch_size"), [(np.arange(4_000) % 8, 8), (np.maximum(np.arange(1_000), 499), 2)])
def test_groups_with_a_member_in_every_batch(groups: np.ndarray, batch_size: int) -> None:
    batches = list(sampler(groups, batch_size))
    assert_apart(batches, groups)
    assert [len(batch) for batch in batches] == [batch_size] * 500


def test_a_group_larger_than_the_number_of_batches(caplog: pytest.LogCaptureFixture) -> None:
    groups = np.where(np.arange(300) < 100, 0, np.arange(300))
    one = sampler(groups)
    # 200 others and as many of the group as there are batches of the two together.
    assert len(one) == 14
    members: set[int] = set()
    for epoch in range(12):
        one.set_epoch(epoch)
        with caplog.at_level(logging.WARNING):
            batches = list(one)
        rows = [row for batch in batches for row in batch]
        assert len(rows) == len(set(rows)) == 214
        assert set(rows) >= set(range(100, 300))
        assert [sum(row < 100 for row in batch) for batch in batches] == [1] * 14
        members |= {row for row in rows if row < 100}
    assert "leaves out 86 of 300 documents" in caplog.text
    assert len(members) > 70  # others in each epoch


def test_a_document_without_a_place_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    # Batches of five and of one; of each group there is one document for each.
    groups = np.array([0, 0, 1, 1, 2, 2])
    with caplog.at_level(logging.WARNING):
        batches = list(sampler(groups, 5))
    assert sorted(groups[batches[0]]) == [0, 1, 2]
    assert len(batches[1]) == 1
    assert "leaves out 2 of 6 documents" in caplog.text


def test_bad_settings() -> None:
    with pytest.raises(ConfigurationError, match="batch_size=1"):
        sampler(PAIRS, 1)
    with pytest.raises(ConfigurationError, match=r"groups has 7 rows, the data set 300.*eval_dataset"):
        SeparatedBatchSampler(range(300), 16, False, groups=range(7))
    with pytest.raises(EmptyCorpusError, match="Of 300 documents 1 can be kept apart"):
        sampler(np.zeros(300))
    with pytest.raises(EmptyCorpusError, match="drop_last=True"):
        sampler(PAIRS, 301, drop_last=True)
