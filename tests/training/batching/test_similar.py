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
from simlte_st.training.batching import DocumentEmbeddings, SimilarBatchSampler


def sampler(vectors: np.ndarray, batch_size: int = 16, drop_last: bool = False, **settings: Any) -> SimilarBatchSampler:
    embeddings = DocumentEmbeddings(len(vectors))
    embeddings.update(vectors)
    settings = {"embeddings": embeddings, "max_similarity": None, "seed": 1, **settings}
    return SimilarBatchSampler(range(len(vectors)), batch_size, drop_last, **settings)


def at_epoch(one: SimilarBatchSampler, epoch: int) -> list[list[int]]:
    one.set_epoch(epoch)
    return list(one)


def same_cloud(batches: list[list[int]]) -> float:
    """Share of the pairs in a batch that are of one cloud; by chance 24 of 299."""
    clouds = [np.array(batch) % 12 for batch in batches]
    same = sum(int((batch[:, None] == batch[None]).sum()) - len(batch) for batch in clouds)
    return same / sum(len(batch) * (len(batch) - 1) for batch in clouds)


@pytest.mark.parametrize("hardness", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("batch_size", [2, 16, 50, 299, 300, 500])
def test_each_document_once(clouds: np.ndarray, hardness: float, batch_size: int) -> None:
    one = sampler(clouds, batch_size, hardness=hardness)
    for epoch in (0, 3):
        batches = at_epoch(one, epoch)
        assert sorted(row for batch in batches for row in batch) == list(range(300))
        full, rest = divmod(300, batch_size)
        assert [len(batch) for batch in batches] == [batch_size] * full + [rest] * (rest > 0)
        assert len(batches) == len(one)
        assert one.left_out == 0
        assert all(type(row) is int for batch in batches for row in batch)


def test_drop_last(clouds: np.ndarray) -> None:
    one = sampler(clouds, 16, drop_last=True)
    batches = at_epoch(one, 0)
    assert [len(batch) for batch in batches] == [16] * 18
    assert len(one) == 18
    assert one.left_out == 12
    left = [set(range(300)) - {row for batch in at_epoch(one, epoch) for row in batch} for epoch in range(3)]
    assert left[0] != left[1]
    assert len({*left[0], *left[1], *left[2]}) > 24  # others in each epoch


def test_hardness_fills_batches_with_neighbours(clouds: np.ndarray) -> None:
    shares = [same_cloud(at_epoch(sampler(clouds, 16, hardness=hardness), 0)) for hardness in (0.0, 0.25, 0.5, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.12
    assert shares[1] > shares[0] + 0.1
    assert shares[3] > 0.5


def test_each_epoch_has_other_batches(clouds: np.ndarray) -> None:
    def pairs(epoch: int) -> set[tuple[int, int]]:
        batches = at_epoch(sampler(clouds, 10, hardness=1.0), epoch)
        return {(a, b) for batch in batches for a in batch for b in batch if a < b}

    assert pairs(0) == pairs(0)
    assert len(pairs(0) & pairs(1)) < 0.5 * len(pairs(0))


def test_seed_epoch_and_embeddings_decide_and_nothing_else(clouds: np.ndarray) -> None:
    state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    one = sampler(clouds, 16, seed=7, max_similarity=0.8, groups=np.arange(300) // 3)
    orders = []
    for epoch in range(3):
        orders.append(at_epoch(one, epoch))
        next(iter(one))  # a pass that was broken off
    fresh = sampler(clouds, 16, seed=7, max_similarity=0.8, groups=np.arange(300) // 3)
    assert at_epoch(fresh, 2) == orders[2]
    assert at_epoch(sampler(clouds, 16, seed=8, max_similarity=0.8), 2) != orders[2]
    assert at_epoch(sampler(clouds[::-1].copy(), 16, seed=7, max_similarity=0.8), 2) != orders[2]
    assert torch.equal(torch.get_rng_state(), state)
    assert np.random.get_state()[1].tolist() == numpy_state
    assert len(at_epoch(sampler(clouds, seed=2**63 - 1), 10**9)) == 19


def test_a_resumed_loader_sees_the_same_batches(clouds: np.ndarray) -> None:
    # accelerate wraps the batch sampler to skip batches, and tells the epoch only to the sampler inside.
    whole = at_epoch(sampler(clouds), 2)
    loader = prepare_data_loader(DataLoader(range(300), batch_sampler=sampler(clouds), collate_fn=list))
    rest = skip_first_batches(loader, 5)
    rest.set_epoch(2)
    assert list(rest) == whole[5:]


def assert_never_together(one: SimilarBatchSampler, limit: float | None, vectors: np.ndarray) -> None:
    centred = vectors - vectors.mean(axis=0)
    centred = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    for epoch in range(5):
        for batch in at_epoch(one, epoch):
            if one.groups is not None:
                assert len(set(one.groups[batch].tolist())) == len(batch)
            cosines = centred[batch] @ centred[batch].T
            np.fill_diagonal(cosines, 0)
            assert limit is None or cosines.max(initial=0) < limit + 1e-3


@pytest.mark.parametrize("hardness", [0.0, 0.5, 1.0])
def test_what_is_too_similar_or_of_one_group_is_never_together(clouds: np.ndarray, hardness: float) -> None:
    # Of the 25 documents of a cloud five are copies of others and ten are of one group, over all clouds.
    clouds[:60] = clouds[60:120] + 0.01
    groups = np.array(["all" if index % 12 == 0 and index > 200 else f"{index}" for index in range(300)])
    free = at_epoch(sampler(clouds, 16, hardness=hardness), 0)
    together = {row: number for number, batch in enumerate(free) for row in batch}
    if hardness:
        assert sum(together[row] == together[row + 60] for row in range(60)) > 10
    for settings in ({"max_similarity": 0.95}, {"groups": groups}, {"max_similarity": 0.95, "groups": groups}):
        one = sampler(clouds, 16, hardness=hardness, **settings)
        assert_never_together(one, settings.get("max_similarity"), clouds)
        assert one.left_out == 0


def test_random_batches_can_keep_groups_apart_without_embeddings() -> None:
    groups = np.arange(100) // 4
    one = SimilarBatchSampler(range(100), 10, False, hardness=0, max_similarity=None, groups=groups, seed=0)
    for epoch in range(5):
        batches = at_epoch(one, epoch)
        assert sorted(row for batch in batches for row in batch) == list(range(100))
        assert all(len(set(groups[batch].tolist())) == 10 for batch in batches)
    assert at_epoch(one, 0) != at_epoch(one, 1)


def test_a_group_larger_than_the_number_of_batches(clouds: np.ndarray, caplog: pytest.LogCaptureFixture) -> None:
    groups = np.where(np.arange(300) < 100, 0, np.arange(300))
    one = sampler(clouds, 16, groups=groups)
    # 200 others and as many of the group as there are batches of the two together.
    assert len(one) == 14
    members: set[int] = set()
    for epoch in range(12):
        with caplog.at_level(logging.WARNING):
            batches = at_epoch(one, epoch)
        assert len(batches) == 14
        rows = [row for batch in batches for row in batch]
        assert len(rows) == len(set(rows)) == 214
        assert set(rows) >= set(range(100, 300))
        assert [sum(row < 100 for row in batch) for batch in batches] == [1] * 14
        members |= {row for row in rows if row < 100}
    assert one.left_out == 86
    assert "leaves out 86 of 300 documents" in caplog.text
    assert len(members) > 70  # others in each epoch


def test_a_document_too_similar_to_all(clouds: np.ndarray, caplog: pytest.LogCaptureFixture) -> None:
    clouds[:40] = clouds[0] + np.random.default_rng(0).normal(size=(40, 24)).astype(np.float32) / 50
    one = sampler(clouds, 16, max_similarity=0.9)
    with caplog.at_level(logging.WARNING):
        batches = at_epoch(one, 0)
    rows = [row for batch in batches for row in batch]
    assert len(rows) == len(set(rows)) == 300 - one.left_out
    assert len(batches) == len(one) == 19
    assert [sum(row < 40 for row in batch) for batch in batches] == [1] * 19
    assert one.left_out == 21
    assert "leaves out 21 of 300" in caplog.text


def test_new_embeddings_make_new_batches(clouds: np.ndarray) -> None:
    one = sampler(clouds, 16)
    before = at_epoch(one, 0)
    one.embeddings.update(clouds[::-1].copy())  # type: ignore[union-attr]
    assert at_epoch(one, 0) != before


def test_without_embeddings(clouds: np.ndarray) -> None:
    with pytest.raises(ConfigurationError, match="needs the documents' embeddings="):
        SimilarBatchSampler(range(10), 4, False)
    with pytest.raises(ConfigurationError, match="needs the documents' embeddings="):
        SimilarBatchSampler(range(10), 4, False, hardness=0)
    one = SimilarBatchSampler(range(10), 4, False, embeddings=DocumentEmbeddings(10))
    assert len(one) == 3  # the Trainer asks before training begins
    with pytest.raises(ConfigurationError, match="EmbeddingRefreshCallback"):
        next(iter(one))


def test_bad_settings(clouds: np.ndarray) -> None:
    for settings, named in [
        ({"batch_size": 1}, "batch_size=1"),
        ({"hardness": 1.2}, r"hardness=1\.2"),
        ({"max_similarity": 1.0}, r"max_similarity=1\.0"),
        ({"groups": np.zeros(7)}, "groups has 7 rows, the data set 300"),
        ({"embeddings": DocumentEmbeddings(7)}, r"embeddings has 7 rows.*eval_dataset"),
    ]:
        with pytest.raises(ConfigurationError, match=named):
            sampler(clouds, **settings)  # type: ignore[arg-type]
    with pytest.raises(EmptyCorpusError, match="Of 300 documents 1 can be kept apart"):
        sampler(clouds, groups=np.zeros(300))
    with pytest.raises(EmptyCorpusError, match="drop_last=True"):
        sampler(clouds, 301, drop_last=True)
