from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.papers.citation_links import citation_link_probe, citation_link_threshold, link_features
from benchmarks.papers.link_pairs import LinkPairs
from benchmarks.papers.mlp import fit_mlp
from simlte_st.evaluation import CosineScores, fit_probe

SHORT = partial(fit_mlp, hidden=(16,), epochs=3)
"""A head that takes no time."""


def made(pairs: list[tuple[int, int]], labels: list[int]) -> LinkPairs:
    return LinkPairs(np.array(pairs), np.array(labels))


def topic_papers(papers: int, topics: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings around their topic's centre, and the topics."""
    generator = np.random.default_rng(0)
    topic = np.arange(papers) % topics
    centres = np.random.default_rng(99).normal(size=(topics, dim))
    return (centres[topic] + 0.5 * generator.normal(size=(papers, dim))).astype(np.float32), topic


def topic_pairs(topic: np.ndarray, rows: range, count: int, seed: int) -> LinkPairs:
    """Half of the pairs are of one topic and linked; the others are not."""
    generator = np.random.default_rng(seed)
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count:
        a, b = (int(row) for row in generator.choice(rows, 2, replace=False))
        if int(topic[a] == topic[b]) == len(pairs) % 2:
            pairs.append((a, b))
    return made(pairs, [number % 2 for number in range(count)])


def test_features_by_hand() -> None:
    x = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 5.0]], dtype=np.float32)
    assert link_features(x, np.array([(0, 1), (2, 0)])).tolist() == [
        [1.0, 2.0, 3.0, -1.0, 3.0, -2.0, -2.0, 3.0],
        [0.0, 5.0, 1.0, 2.0, 0.0, 10.0, -1.0, 3.0],
    ]


def test_accuracy_by_hand() -> None:
    # A linear head on the products recognises a shared axis, so it classifies every pair correctly.
    x = np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 6]
    pairs = [(a, b) for a in range(24) for b in range(24) if a != b and (a % 4 == b % 4 or (a + b) % 8 == 3)]
    labels = [int(a % 4 == b % 4) for a, b in pairs]
    train, test = made(pairs[::2], labels[::2]), made(pairs[1::2], labels[1::2])
    assert citation_link_probe(x, train, test, fit=None) == 1.0
    turned = test.labels.copy()
    turned[::5] = 1 - turned[::5]
    found = citation_link_probe(x, train, LinkPairs(test.pairs, turned), fit=None)
    assert found == pytest.approx(1 - len(turned[::5]) / len(turned))


def test_link_probe_matches_the_probe_on_scaled_embeddings() -> None:
    x, topic = topic_papers(40, 4, 8)
    train, test = topic_pairs(topic, range(30), 100, 1), topic_pairs(topic, range(40), 60, 2)
    scaled = x / np.float32(np.sqrt(np.square(x[np.unique(train.pairs)], dtype=np.float64).mean()))
    parts = [(link_features(scaled, part.pairs), part.labels.tolist()) for part in (train, test)]
    expected = fit_probe(*parts[0], *parts[1], fit=SHORT)
    found = citation_link_probe(x, train, test, fit=SHORT)
    assert found == expected.accuracy
    # Powers of two scale floats exactly, so the numbers are equal, not just close.
    assert citation_link_probe(x * 1024, train, test, fit=SHORT) == found


def test_threshold_by_hand() -> None:
    angles = np.deg2rad([0, 10, 20, 45, 90, 180])
    scores = CosineScores(np.column_stack([np.cos(angles), np.sin(angles)]))
    # Training: links at 10 and 20 degrees, none at 45 and 90: the threshold lies between 20 and 45.
    train = made([(0, 1), (0, 2), (0, 3), (0, 4)], [1, 1, 0, 0])
    test = made([(1, 2), (2, 3), (3, 4), (0, 5), (1, 3)], [1, 1, 1, 0, 0])
    # 3 and 4 are linked although they are 45 degrees apart.
    assert citation_link_threshold(scores, train, test) == pytest.approx(4 / 5)
