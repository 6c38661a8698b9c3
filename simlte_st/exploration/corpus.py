"""The corpus in numbers: lengths, what the model reads of them, and how much documents repeat themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.words import count_words
from simlte_st.errors import MissingExtraError
from simlte_st.evaluation.splits import sample_rows
from simlte_st.exploration.pile import Pile
from simlte_st.exploration.redundancy import measure_redundancy
from simlte_st.exploration.tagging import SpacyTagger

TAGGED = 300
"""Documents that are tagged to count how much they repeat."""

_CHARACTERS = 20_000  # of a document that are tagged
_BINS = 24


@dataclass(frozen=True, slots=True)
class Corpus:
    """What a pile is made of.

    Attributes:
        edges: Ends of the bars of the histogram of tokens, each the same factor above the one before, shape
            ``[bars + 1]``.
        counts: Documents in each bar, shape ``[bars]``.
        words: Fewest, median, mean and most words of a document.
        redundancy: Nouns and verbs to distinct ones, by length: words, documents, and the mean with its 95% interval.
        redundancy_note: What was tagged by what; or why nothing was.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    words: tuple[int, float, float, int]
    redundancy: list[tuple[str, int, str]]
    redundancy_note: str


def describe_corpus(pile: Pile, *, seed: int = 0, progress: bool = False) -> Corpus:
    """Describe a pile."""
    tokens = np.maximum(pile.tokens, 1)
    low, high = np.log(tokens.min()), np.log(tokens.max() + 1)
    edges = np.exp(np.linspace(low, max(high, low + 0.1), _BINS + 1))
    counts = np.histogram(tokens, bins=edges)[0]
    words = np.array([count_words(text) for text in pile.texts])
    spread = int(words.min()), float(np.median(words)), float(words.mean()), int(words.max())
    return Corpus(edges, counts, spread, *_redundancy(pile, seed, progress))


def _redundancy(pile: Pile, seed: int, progress: bool) -> tuple[list[tuple[str, int, str]], str]:
    try:
        tagger = SpacyTagger()
    except MissingExtraError as error:
        return [], str(error)
    rows = sample_rows(len(pile), TAGGED, seed)
    drawn = [Document(str(row), pile.documents[row].text[:_CHARACTERS]) for row in rows]
    result = measure_redundancy(drawn, tagger, seed=seed, progress=progress)
    table = []
    for bucket in (*result.buckets, result.all):
        mean = "" if bucket.mean is None else f"{bucket.mean:.2f}"
        interval = "" if bucket.low is None else f" [{bucket.low:.2f}, {bucket.high:.2f}]"
        table.append((bucket.name(), bucket.documents, mean + interval))
    return table, result.summary()
