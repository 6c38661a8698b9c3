from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.link_pairs import check_pairs, link_pairs, number_links
from simlte_st.errors import DataError


def random_links(papers: int, count: int, seed: int) -> np.ndarray:
    """Distinct links; papers with low numbers are cited more often, as a few real papers are."""
    generator = np.random.default_rng(seed)
    links: set[tuple[int, int]] = set()
    while len(links) < count:
        citing, cited = int(generator.integers(papers)), int(papers * generator.random() ** 1.3)
        if citing != cited:
            links.add((citing, cited))
    return np.array(sorted(links))


def unordered(pairs: np.ndarray) -> list[tuple[int, int]]:
    return [(min(pair), max(pair)) for pair in pairs.tolist()]


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), split=st.sampled_from(["links", "papers"]), share=st.sampled_from([0.3, 0.5]))
def test_no_negative_is_a_link_and_no_pair_occurs_twice(seed: int, split: str, share: float) -> None:
    links = random_links(80, 300, seed)
    parts = link_pairs(links, split=split, test_share=share, seed=seed)  # type: ignore[arg-type]
    positives = [part.pairs[part.labels == 1] for part in parts]
    drawn = [part.pairs[part.labels == 0] for part in parts]
    assert all(len(p) == len(n) > 0 for p, n in zip(positives, drawn, strict=True))
    assert not set(unordered(links)) & {pair for pairs in drawn for pair in unordered(pairs)}
    assert all(first != second for pairs in drawn for first, second in pairs.tolist())
    assert len({pair for pairs in drawn for pair in unordered(pairs)}) == sum(map(len, drawn))
    assert not set(unordered(parts[0].pairs)) & set(unordered(parts[1].pairs))
    kept = [tuple(link) for link in np.concatenate(positives).tolist()]
    assert len(kept) == len(set(kept) & {tuple(link) for link in links.tolist()})
    if split == "links":
        assert len(kept) == len(links)
    else:
        assert not set(parts[0].pairs.ravel().tolist()) & set(parts[1].pairs.ravel().tolist())
    for p, n in zip(positives, drawn, strict=True):  # each paper is on each side of as many negatives as links
        assert [Counter(p[:, side].tolist()) for side in (0, 1)] == [Counter(n[:, side].tolist()) for side in (0, 1)]


def test_share_and_seed() -> None:
    links = random_links(80, 200, 1)
    train, test = link_pairs(links, test_share=0.3, seed=5)
    assert len(train.pairs) + len(test.pairs) == 400
    assert len(test.pairs) == pytest.approx(120, abs=4)  # pairs that cite each other stay together
    again = link_pairs(links[::-1], test_share=0.3, seed=5)  # the order of the links does not matter
    for one, other in zip((train, test), again, strict=True):
        assert np.array_equal(one.pairs, other.pairs)
        assert np.array_equal(one.labels, other.labels)
    assert not np.array_equal(link_pairs(links, seed=6)[1].pairs, link_pairs(links, seed=7)[1].pairs)


def test_links_are_numbered_and_unknown_rows_refused() -> None:
    assert number_links(["x", "y", "z"], [("z", "x"), ("x", "y")]).tolist() == [[2, 0], [0, 1]]
    for pairs in ([(0, 7)], [(0, -1)], [0, 1]):
        with pytest.raises(DataError, match="5 papers"):
            check_pairs(pairs, 5)
