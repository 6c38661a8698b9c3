"""Fake News Corpus (Szpakowski, 2018): web articles, each with the class of the site it was found on."""

from __future__ import annotations

from collections.abc import Sequence

from simlte_st.datasets.card import Card, PrintedStatistics
from simlte_st.datasets.shapes import Shape
from simlte_st.datasets.textset import TextSet

TYPES = frozenset(
    (
        "fake", "satire", "bias", "conspiracy", "state", "junksci", "hate", "clickbait", "unreliable", "political",
        "reliable", "rumor", "unknown",
    )
)  # fmt: skip
"""The classes: those of the corpus's description, and ``rumor`` and ``unknown``, which its file has too."""


def shapes() -> Sequence[Shape]:
    """Give the shape of ``news.csv``: the text is ``content``, the class ``type``."""
    return (Shape(("content",), "type", known=TYPES),)


SET = TextSet(
    Card(
        name="fakenews",
        title="Fake News Corpus",
        home="https://github.com/several27/FakeNewsCorpus",
        licence="Apache-2.0 for the collection; the articles belong to their publishers",
        citation="Maciej Szpakowski. Fake News Corpus. 2018. https://github.com/several27/FakeNewsCorpus",
        forms=("the corpus's .csv, unpacked (news_cleaned_2018_02_13.csv; columns content and type)",),
        printed=PrintedStatistics(8_558_957, 15, 467, 299, 33_936),
        notes=(
            "The papers print 15 classes and do not name them; the published file has 12 and rows without a class.",
            "Its rows stand by site, so the first of them (limit) are not a sample of all.",
        ),
    ),
    shapes,
    files=("news_cleaned*.csv", "news.csv"),
    # Bounds what a quote that is never closed can swallow; the papers' longest article has some 200,000 characters.
    max_characters=2_000_000,
)
