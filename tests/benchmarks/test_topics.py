from __future__ import annotations

import pytest

from benchmarks import topics
from simlte_st.data import Document

WORDS = ("harbour ferry storm", "senate budget vote", "striker goal referee")
"""Words of three topics."""


def test_coherence_is_high_for_words_that_occur_together() -> None:
    texts = [words for words in WORDS for _ in range(4)]
    assert topics.coherence([words.split() for words in WORDS], texts) == pytest.approx(1)
    assert topics.coherence([["harbour", "budget", "goal"]], texts) == -1, "they never occur together"


@pytest.mark.parametrize("system", topics.SYSTEMS)
def test_systems_find_the_topics(system: str) -> None:
    if system == "BERTopic":
        pytest.importorskip("bertopic")
    fillers = ("today", "again", "first", "later", "there", "around")
    documents = [
        Document(f"{kind}{number}", f"The {words} {words} {words} {fillers[number % 6]} {number}.", label=str(kind))
        for kind, words in enumerate(WORDS)
        for number in range(40)
    ]
    measured = topics.measure(system, documents)
    assert measured["numbers"]["NMI"] > 0.5
    assert {*measured["numbers"]} >= {*topics.FORMATS}
    words = {word for name in measured["names"] for term in name for word in term.split()}
    assert words & {"harbour", "senate", "goal"}
