from __future__ import annotations

import numpy as np
import pytest

from simlte_st.training.batching.bisection import similar_order
from simlte_st.training.batching.embeddings import DocumentEmbeddings


def codes_of(vectors: np.ndarray) -> tuple[np.ndarray, int]:
    embeddings = DocumentEmbeddings(len(vectors))
    embeddings.update(vectors)
    assert embeddings.codes is not None
    return embeddings.codes, embeddings.scale


def order_of(vectors: np.ndarray, leaf: int, seed: int = 0, rows: np.ndarray | None = None) -> np.ndarray:
    rng = np.random.default_rng(seed)
    codes, scale = codes_of(vectors)
    return similar_order(codes, scale, rng.permutation(len(vectors)) if rows is None else rows, leaf, rng)


def same_cloud(order: np.ndarray, leaf: int) -> float:
    """Share of the pairs in a run that are of one cloud."""
    runs = [order[start : start + leaf] % 12 for start in range(0, len(order) - leaf + 1, leaf)]
    pairs = [(run[:, None] == run[None]).sum() - leaf for run in runs]
    return float(np.sum(pairs) / (len(runs) * leaf * (leaf - 1)))


@pytest.mark.parametrize("leaf", [1, 2, 7, 25, 299, 300, 301])
def test_each_row_once(clouds: np.ndarray, leaf: int) -> None:
    assert sorted(order_of(clouds, leaf)) == list(range(300))


def test_only_the_rows_asked_for(clouds: np.ndarray) -> None:
    rows = np.arange(10, 50)
    order = order_of(clouds, 6, rows=rows)
    assert sorted(order) == rows.tolist()
    assert order.tolist() != rows.tolist()


def test_runs_are_alike(clouds: np.ndarray) -> None:
    # By chance a pair is of one cloud in 24 of 299 cases.
    assert same_cloud(np.random.default_rng(0).permutation(300), 5) < 0.15
    assert same_cloud(order_of(clouds, 5), 5) > 0.75
    assert same_cloud(order_of(clouds, 25), 25) > 0.6


def test_two_well_separated_halves_are_never_mixed() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(64, 16)) + np.where(np.arange(64) < 32, 30, -30)[:, None]
    for seed in range(20):
        runs = order_of(vectors, 8, seed).reshape(8, 8) < 32
        assert (runs.all(axis=1) | ~runs.any(axis=1)).all()


def test_the_remainder_is_at_the_end_and_not_always_the_same(clouds: np.ndarray) -> None:
    ends = [order_of(clouds, 13, seed)[-1] for seed in range(30)]  # 300 = 23 * 13 + 1
    assert len(set(ends)) > 15


def test_runs_come_in_random_order(clouds: np.ndarray) -> None:
    # In the order of the tree, neighbouring runs would be alike too.
    order = order_of(clouds, 5)
    assert same_cloud(order, 50) < 0.3


def test_generators_make_different_runs(clouds: np.ndarray) -> None:
    def pairs(seed: int) -> set[tuple[int, int]]:
        runs = order_of(clouds, 5, seed).reshape(60, 5)
        return {(int(a), int(b)) for run in runs for a in run for b in run if a < b}

    assert pairs(0) == pairs(0)
    again = len(pairs(0) & pairs(1)) / len(pairs(0))
    assert 0.02 < again < 0.5


def test_the_order_of_summation_makes_no_difference(clouds: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    codes, scale = codes_of(clouds)

    def order(some: np.ndarray) -> list[int]:
        rng = np.random.default_rng(5)
        return similar_order(some, scale, rng.permutation(300), 4, rng).tolist()

    whole = order(codes)
    for seed in range(5):
        assert order(np.ascontiguousarray(codes[:, np.random.default_rng(seed).permutation(24)])) == whole
    monkeypatch.setattr("simlte_st.training.batching.bisection._CHUNK", 11)
    assert order(codes) == whole


def test_embeddings_that_are_all_the_same() -> None:
    orders = {str(order_of(np.ones((20, 4)), 3, seed)) for seed in range(5)}
    assert len(orders) == 5
