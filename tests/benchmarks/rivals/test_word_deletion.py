from __future__ import annotations

from collections import Counter

import pytest
from views_support import draws, make

from benchmarks.rivals.word_deletion import WordDeletion
from simlte_st.errors import ConfigurationError


def test_word_deletion_deletes_at_its_rate_independently() -> None:
    document = make([10] * 10)
    words = " ".join(document.sentences).split()
    for p in (0.1, 0.6):
        pairs = draws(document, WordDeletion(p=p), 200)
        lost: Counter[tuple[bool, bool]] = Counter()
        for pair in pairs:
            first, second = pair.anchor.split(), pair.positive.split()
            assert [word for word in words if word in set(first)] == first
            assert [word for word in words if word in set(second)] == second
            lost.update((word not in first, word not in second) for word in words)
        total = 200 * len(words)
        assert abs(lost[True, True] / total - p * p) < 0.015
        assert abs(lost[True, False] / total - p * (1 - p)) < 0.015
        assert abs(lost[False, True] / total - p * (1 - p)) < 0.015
        assert all(pair.seen == len(set(pair.anchor.split()) | set(pair.positive.split())) for pair in pairs)


def test_word_deletion_never_leaves_nothing() -> None:
    for pair in draws(make([1, 1]), WordDeletion(p=0.99), 200):
        assert pair.anchor
        assert pair.positive
    assert {pair.anchor for pair in draws(make([1, 1]), WordDeletion(p=0.0), 20)} == {"s0w0 s1w0"}


def test_word_deletion_windows_long_documents() -> None:
    pairs = draws(make([5] * 20), WordDeletion(p=0.0), 100, budget=12)
    assert all(pair.anchor == pair.positive and len(pair.anchor.split()) == 10 for pair in pairs)
    assert len({pair.anchor for pair in pairs}) > 10


def test_settings_out_of_their_range() -> None:
    for settings in ({"p": 1.0}, {"p": -0.1}):
        with pytest.raises(ConfigurationError):
            WordDeletion(**settings)  # type: ignore[arg-type]
    assert not WordDeletion().accepts(make([1]))
