from __future__ import annotations

import itertools

import numpy as np
import pytest

from simlte_st.training.batching.buckets import Bucket, cut_buckets, split_to


def costs_of(seed: int, documents: int, longest: int = 1_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return -np.sort(-np.minimum(rng.lognormal(5, 1, size=documents).astype(np.int64) + 2, longest))


def assert_sound(buckets: list[Bucket], costs: np.ndarray, budget: int, least: int) -> None:
    assert buckets[0].start == 0
    assert buckets[-1].stop == len(costs)
    assert all(one.stop == other.start for one, other in itertools.pairwise(buckets))
    for bucket in buckets:
        assert bucket.cost == costs[bucket.start]
        small, large = bucket.documents // bucket.batches, -(-bucket.documents // bucket.batches)
        assert least <= small
        assert bucket.largest == large * bucket.cost <= budget


@pytest.mark.parametrize("least", [2, 5])
@pytest.mark.parametrize("documents", [5, 9, 10, 11, 50, 333, 2_000])
def test_every_batch_fits(documents: int, least: int) -> None:
    for seed in range(5):
        costs = costs_of(seed, documents)
        for budget in (9_000, 9_999, 40_000):
            buckets = cut_buckets(costs, budget, least)
            assert buckets is not None
            assert_sound(buckets, costs, budget, least)


def test_a_bucket_holds_documents_of_like_lengths() -> None:
    costs = costs_of(0, 5_000)
    buckets = cut_buckets(costs, 20_000, 2)
    assert buckets is not None
    for bucket in buckets[:-1]:
        within = bucket.cost / costs[bucket.stop - 1] <= 1.25
        assert within or bucket.batches == 4, "wider only where there are few documents"
        assert bucket.batches >= 4
    assert buckets[-1].batches >= 2
    assert len(buckets) >= 3


def test_what_would_be_one_batch_is_none_of_its_own() -> None:
    costs = np.array([100] * 12 + [10] * 30)
    assert cut_buckets(costs, 300, 2) == [Bucket(0, 42, 100, 3, 14)]
    assert cut_buckets(np.append(costs, 10), 300, 2) == [Bucket(0, 12, 100, 3, 4), Bucket(12, 43, 10, 30, 2)]


def test_a_few_documents_are_one_bucket() -> None:
    assert cut_buckets(np.array([90, 50, 10]), 300, 2) == [Bucket(0, 3, 90, 3, 1)]
    # Seven documents of three a batch at most: three batches, not two and a rest of one.
    assert cut_buckets(np.full(7, 100), 300, 2) == [Bucket(0, 7, 100, 3, 3)]


def test_a_budget_that_is_too_small() -> None:
    assert cut_buckets(np.array([100, 90, 80]), 299, 2) is None
    assert cut_buckets(np.array([100, 90, 80]), 300, 2) is not None
    assert cut_buckets(np.array([100] * 9), 899, 5) is None


@pytest.mark.parametrize("documents", [5, 12, 50, 333])
@pytest.mark.parametrize("least", [2, 5])
def test_any_number_of_batches_can_be_made(documents: int, least: int) -> None:
    for seed in range(5):
        costs = costs_of(seed, documents)
        buckets = cut_buckets(costs, 9_000, least)
        assert buckets is not None
        needed = sum(bucket.batches for bucket in buckets)
        for wanted in range(needed, documents // least + 1):
            split = split_to(buckets, wanted, least)
            assert sum(bucket.batches for bucket in split) == wanted
            assert_sound(split, costs, 9_000, least)


def test_the_largest_batches_are_split_first() -> None:
    buckets = [Bucket(0, 8, 100, 8, 1), Bucket(8, 20, 50, 16, 1)]
    assert [bucket.batches for bucket in split_to(buckets, 3, 2)] == [2, 1]
    assert [bucket.batches for bucket in split_to(buckets, 4, 2)] == [2, 2]
    assert split_to(buckets, 2, 2) == buckets


def test_buckets_are_joined_where_they_could_not_be_split() -> None:
    # Three and three documents in twos: only together they make three batches.
    buckets = [Bucket(0, 3, 100, 3, 1), Bucket(3, 6, 50, 6, 1)]
    assert split_to(buckets, 3, 2) == [Bucket(0, 6, 100, 3, 3)]
