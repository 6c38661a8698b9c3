from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from simlte_st.errors import DataError
from simlte_st.exploration.corpus import HalfVectors
from simlte_st.exploration.topics import NONE, find_topics


def blobs(groups: int, size: int, spread: float, seed: int = 0) -> NDArray[np.float32]:
    draw = np.random.default_rng(seed)
    vectors = np.repeat(np.eye(16)[:groups], size, axis=0) + spread * draw.normal(size=(groups * size, 16))
    return unit(vectors)


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make_halves(vectors: NDArray[np.float32], spread: float) -> HalfVectors:
    draw = np.random.default_rng(1)
    first, second = (unit(vectors + spread * draw.normal(size=vectors.shape)) for _ in range(2))
    return HalfVectors(np.arange(len(vectors)), first, second)


def test_number_of_topics_maximises_agreement_of_halves() -> None:
    for groups in (3, 6):
        vectors = blobs(groups, 60, 0.05)
        topics = find_topics(vectors, make_halves(vectors, 0.05))
        assert len(topics.centres) == groups
        assert topics.stability.agreement == 1.0
        truth = np.repeat(np.arange(groups), 60)
        assert len(set(zip(truth.tolist(), topics.by_document.tolist(), strict=True))) == groups
        assert topics.sizes.tolist() == [60] * groups
        assert topics.by_document.tolist() == find_topics(vectors, make_halves(vectors, 0.05)).by_document.tolist()
        np.testing.assert_allclose(np.linalg.norm(topics.centres, axis=1), 1, rtol=1e-5)


def test_documents_between_topics_get_none() -> None:
    clear, draw = blobs(4, 60, 0.02), np.random.default_rng(2)
    between = unit(np.tile(np.eye(16)[:4].sum(axis=0), (20, 1)) + 0.02 * draw.normal(size=(20, 16)))
    vectors = np.concatenate([clear, between])
    topics = find_topics(vectors, make_halves(vectors, 0.2), 4)
    assert (topics.by_document[:240] != NONE).all()
    assert (topics.by_document[240:] == NONE).mean() > 0.4
    assert topics.sizes.sum() == (topics.by_document != NONE).sum()


def test_number_of_topics_can_be_set() -> None:
    vectors = blobs(3, 30, 0.05)
    halves = make_halves(vectors, 0.05)
    topics = find_topics(vectors, halves, 5)
    assert len(topics.centres) == 5
    assert topics.stability.number == 5
    few = HalfVectors(np.arange(3), halves.first[:3], halves.second[:3])
    with pytest.raises(DataError, match="Only 3 documents"):
        find_topics(vectors, few)


@pytest.mark.filterwarnings("error")
def test_near_identical_documents_share_a_topic() -> None:
    draw = np.random.default_rng(3)
    two = unit(blobs(2, 20, 0.0) + 1e-7 * draw.normal(size=(40, 16)))  # like rounding differences between batches
    topics = find_topics(two, HalfVectors(np.arange(40), two, two))
    assert topics.sizes.tolist() == [20, 20]
    assert (topics.by_document != NONE).all()
    with pytest.raises(DataError, match="the same vector"):
        find_topics(two[:20], HalfVectors(np.arange(20), two[:20], two[:20]))
