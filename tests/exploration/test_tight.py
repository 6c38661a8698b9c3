"""Tight clusters: on the map they are plain to see, and k-means has no centre for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from simlte_st.exploration.corpus import Halves
from simlte_st.exploration.layout import nearest_documents
from simlte_st.exploration.sections import topic_notes
from simlte_st.exploration.tight import SMALLEST, with_tight_clusters
from simlte_st.exploration.topics import NONE, Topics, find_topics

WIDE = 4
"""Large groups of documents that are not alike."""


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def found_in(*tight: NDArray[np.float64]) -> tuple[Topics, Topics]:
    """Return the topics of a corpus with tight clusters, without and with these."""
    draw = np.random.default_rng(0)
    wide = unit(np.repeat(np.eye(32)[:WIDE], 100, axis=0) + 0.15 * draw.normal(size=(100 * WIDE, 32)))
    vectors = np.concatenate([wide, *(unit(each) for each in tight)])
    halves = Halves(np.arange(400), *(unit(wide + 0.15 * draw.normal(size=wide.shape)) for _ in range(2)))
    topics = find_topics(vectors, halves, WIDE)
    return topics, with_tight_clusters(topics, vectors, halves, *nearest_documents(vectors))


def around(place: NDArray[np.float64], size: int, spread: float = 0.01, seed: int = 1) -> NDArray[np.float64]:
    return place + spread * np.random.default_rng(seed).normal(size=(size, 32))


BETWEEN = np.eye(32)[:WIDE].sum(axis=0)


@pytest.mark.parametrize(
    "tight",
    [
        [around(BETWEEN, 12)],  # equally far from all centres
        [around(BETWEEN, 30, spread=0.0)],  # the same text many times
        [around(np.eye(32)[9], 15, seed=3)],  # far from all
        [around(np.eye(32)[0] + np.eye(32)[1], 12), around(np.eye(32)[2] + np.eye(32)[3], 20, seed=2)],
    ],
)
def test_a_tight_cluster_has_a_topic(tight: list[NDArray[np.float64]]) -> None:
    before, topics = found_in(*tight)
    assert (before.assigned[400:] == NONE).any(), "k-means has no centre for it"
    start = 400
    for cluster in tight:
        own = topics.assigned[start : (start := start + len(cluster))]
        assert len(set(own.tolist())) == 1
        assert own[0] != NONE
        assert topics.sizes[own[0]] == len(cluster)
    assert topics.tight == len(tight)
    assert topics.sizes.tolist() == sorted(topics.sizes.tolist(), reverse=True)
    assert any("tight cluster" in note for note in topic_notes(topics))
    np.testing.assert_allclose(np.linalg.norm(topics.centres, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("loose", [around(BETWEEN, SMALLEST - 1), around(BETWEEN, 40, spread=0.4)])
def test_few_documents_or_loose_ones_are_none(loose: NDArray[np.float64]) -> None:
    before, topics = found_in(loose)
    assert topics.tight == 0
    assert topics.assigned.tolist() == before.assigned.tolist()


def test_without_halves_or_clusters_topics_stay_as_they_are() -> None:
    topics, _ = found_in()
    vectors = unit(np.random.default_rng(5).normal(size=(400, 32)))
    near = nearest_documents(vectors)
    none = Halves(np.zeros(0, dtype=np.int64), vectors[:0], vectors[:0])
    nowhere = replace(topics, assigned=np.full(400, NONE), centres=topics.centres[:0])
    assert with_tight_clusters(topics, vectors, none, *near) is topics
    assert with_tight_clusters(nowhere, vectors, Halves(np.arange(400), vectors, vectors), *near) is nowhere
