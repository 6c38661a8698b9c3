from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from benchmarks.papers.citation_links import citation_link_probe, citation_link_threshold, link_features
from benchmarks.papers.link_pairs import LinkPairs
from benchmarks.papers.mlp import fit_mlp
from simlte_st.errors import DataError
from simlte_st.evaluation import CosineScores, TfidfScores, bootstrap_interval, fit_probe

Build = Callable[..., SentenceTransformer]


def topic_papers(papers: int, topics: int, dim: int, seed: int, noise: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings around their topic's centre, and the topics."""
    generator = np.random.default_rng(seed)
    topic = np.arange(papers) % topics
    centres = np.random.default_rng(99).normal(size=(topics, dim))
    return (centres[topic] + noise * generator.normal(size=(papers, dim))).astype(np.float32), topic


def topic_pairs(topic: np.ndarray, rows: range, count: int, seed: int) -> LinkPairs:
    """Papers of one topic are linked, others are not; half and half."""
    generator = np.random.default_rng(seed)
    pairs: list[tuple[int, int]] = []
    labels = []
    while len(pairs) < count:
        a, b = (int(row) for row in generator.choice(rows, 2, replace=False))
        wanted = len(pairs) % 2
        if int(topic[a] == topic[b]) == wanted:
            pairs.append((a, b))
            labels.append(wanted)
    return LinkPairs(np.array(pairs), np.array(labels))


SHORT = partial(fit_mlp, hidden=(16,), epochs=3)
"""A head that takes no time."""


def test_features_by_hand() -> None:
    x = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 5.0]], dtype=np.float32)
    assert link_features(x, np.array([(0, 1), (2, 0)])).tolist() == [
        [1.0, 2.0, 3.0, -1.0, 3.0, -2.0, -2.0, 3.0],
        [0.0, 5.0, 1.0, 2.0, 0.0, 10.0, -1.0, 3.0],
    ]


def test_hand_made_accuracy() -> None:
    # A linear head on the products tells the same axis from another one: all is told rightly, whatever the pair.
    x = np.eye(4, dtype=np.float32)[[0, 1, 2, 3] * 6]
    pairs = [(a, b) for a in range(24) for b in range(24) if a != b and (a % 4 == b % 4 or (a + b) % 8 == 3)]
    labels = [int(a % 4 == b % 4) for a, b in pairs]
    train, test = LinkPairs(pairs[::2], labels[::2]), LinkPairs(pairs[1::2], labels[1::2])  # type: ignore[arg-type]
    result = citation_link_probe(x, train, test, fit=None)
    assert (result.accuracy, result.low, result.high, result.pairs) == (1.0, 1.0, 1.0, len(test.labels))
    # With the labels of a fifth of the test pairs turned round, exactly these are counted as missed.
    turned = test.labels.copy()
    turned[::5] = 1 - turned[::5]
    missed = len(turned[::5])
    result = citation_link_probe(x, train, LinkPairs(test.pairs, turned), fit=None)
    assert result.accuracy == pytest.approx(1 - missed / len(turned))
    assert result.low < result.accuracy < result.high
    assert (result.low, result.high) == bootstrap_interval([1] * (len(turned) - missed) + [0] * missed)


def test_the_head_compares_the_two_papers() -> None:
    x, topic = topic_papers(120, 6, 16, 0)
    train, test = topic_pairs(topic, range(60), 600, 1), topic_pairs(topic, range(60, 120), 400, 2)
    result = citation_link_probe(x, train, test, fit=partial(fit_mlp, hidden=(64, 32)))
    assert result.accuracy > 0.9
    # Neither paper alone says anything.
    for side in (0, 1):
        alone = fit_probe(x[train.pairs[:, side]], train.labels.tolist(), x[test.pairs[:, side]], test.labels.tolist())
        assert alone.accuracy == pytest.approx(0.5, abs=0.1)


def test_it_is_the_probe_on_features_of_one_scale() -> None:
    x, topic = topic_papers(40, 4, 8, 0)
    train, test = topic_pairs(topic, range(30), 100, 1), topic_pairs(topic, range(40), 60, 2)
    used = np.unique(train.pairs)
    scaled = x / np.float32(np.sqrt(np.square(x[used], dtype=np.float64).mean()))
    expected = fit_probe(
        link_features(scaled, train.pairs),
        train.labels.tolist(),
        link_features(scaled, test.pairs),
        test.labels.tolist(),
        fit=SHORT,
    )
    assert citation_link_probe(x, train, test, fit=SHORT).accuracy == expected.accuracy
    # Powers of two scale floats exactly: the same numbers, not only about the same.
    assert citation_link_probe(x * 1024, train, test, fit=SHORT) == citation_link_probe(x, train, test, fit=SHORT)


def test_a_collapsed_model_scores_at_chance() -> None:
    pairs = [(a, (a + step) % 20) for a in range(20) for step in (1, 2)]
    train, test = LinkPairs(pairs[:20], [1, 0] * 10), LinkPairs(pairs[20:], [1, 0] * 10)  # type: ignore[arg-type]
    for x in (np.zeros((20, 4)), np.ones((20, 4))):
        assert citation_link_probe(x, train, test, fit=SHORT).accuracy == 0.5
        assert citation_link_threshold(CosineScores(x), train, test).accuracy == 0.5


def test_seed_decides_and_the_global_state_is_left_alone() -> None:
    x, topic = topic_papers(60, 6, 8, 0, noise=2.0)
    train, test = topic_pairs(topic, range(60), 120, 1), topic_pairs(topic, range(60), 300, 2)
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first = citation_link_probe(x, train, test, fit=SHORT)
    assert torch.equal(state, torch.random.get_rng_state())
    torch.manual_seed(2)
    assert citation_link_probe(x, train, test, fit=SHORT) == first
    assert len({citation_link_probe(x, train, test, fit=SHORT, seed=seed).accuracy for seed in range(4)}) > 1


def test_threshold_by_hand() -> None:
    angles = np.deg2rad([0, 10, 20, 45, 90, 180])
    scores = CosineScores(np.column_stack([np.cos(angles), np.sin(angles)]))
    # Training: links at 10 and 20 degrees, none at 45 and 90: the threshold lies between 20 and 45.
    train = LinkPairs([(0, 1), (0, 2), (0, 3), (0, 4)], [1, 1, 0, 0])  # type: ignore[arg-type]
    test = LinkPairs([(1, 2), (2, 3), (3, 4), (0, 5), (1, 3)], [1, 1, 1, 0, 0])  # type: ignore[arg-type]
    result = citation_link_threshold(scores, train, test)
    assert result.accuracy == pytest.approx(4 / 5)  # 3 and 4, 45 degrees apart, are linked all the same
    assert (result.low, result.high) == bootstrap_interval([1, 1, 0, 1, 1])


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6))
def test_accuracy_lies_between_0_and_1(seed: int) -> None:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(12, 3))
    parts = [LinkPairs(generator.integers(0, 12, (10, 2)), np.array([0, 1] * 5)) for _ in range(2)]
    for result in (
        citation_link_probe(x, *parts, fit=None),
        citation_link_threshold(CosineScores(x), *parts),
    ):
        assert 0.0 <= result.low <= result.accuracy <= result.high <= 1.0


def test_lexical_threshold_finds_shared_words() -> None:
    texts = [f"{word} {word}s other{number}" for number, word in enumerate(["cat", "dog", "bird"] * 8)]
    pairs = [(a, b) for a in range(24) for b in range(a) if (a - b) % 3 == 0 or a - b in (1, 2, 4, 5)]
    labels = [int((a - b) % 3 == 0) for a, b in pairs]
    train, test = LinkPairs(pairs[::2], labels[::2]), LinkPairs(pairs[1::2], labels[1::2])  # type: ignore[arg-type]
    assert citation_link_threshold(TfidfScores(texts), train, test).accuracy == 1.0


def test_refusals() -> None:
    x = np.ones((4, 2))
    good = LinkPairs([(0, 1), (2, 3)], [1, 0])  # type: ignore[arg-type]
    outside = LinkPairs([(0, 1), (2, 4)], [1, 0])  # type: ignore[arg-type]
    for train, test in ((good, outside), (outside, good)):
        with pytest.raises(DataError, match="row 4 of 4"):
            citation_link_probe(x, train, test)
        with pytest.raises(DataError, match="row 4 of 4"):
            citation_link_threshold(CosineScores(x), train, test)
    with pytest.raises(DataError, match="two classes"):
        citation_link_probe(x, LinkPairs(good.pairs, [1, 1]), good)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="not finite"):
        citation_link_probe(x * np.nan, good, good)
    with pytest.raises(DataError, match="shape"):
        citation_link_probe(x[0], good, good)


def test_the_threshold_is_that_of_the_training_pairs() -> None:
    class Given:
        """Scores of pairs of papers: the second one's number."""

        size = 40

        def pairs(self, pairs: np.ndarray) -> np.ndarray:
            return np.asarray(pairs)[:, 1] / 40

    def part(least: int) -> LinkPairs:
        pairs = np.array([[0, other] for other in range(1, 40)])
        return LinkPairs(pairs, (pairs[:, 1] >= least).astype(np.int64))

    assert citation_link_threshold(Given(), part(20), part(20)).accuracy == 1.0  # type: ignore[arg-type]
    found = citation_link_threshold(Given(), part(20), part(30))  # type: ignore[arg-type]
    assert found.accuracy == pytest.approx(29 / 39), "ten pairs of the test lie between the thresholds"
