"""Outliers: documents far from all others, very long or short, in another language, or with hardly any text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex
from numpy.typing import NDArray

from simlte_st.data.analyzer import features_of
from simlte_st.data.document import count_words
from simlte_st.data.languages import identify_language

SHOWN = 10
"""Documents of a kind that are listed."""

_LETTER = regex.compile(r"[\p{L}\p{M}]")
_READ = 2_000  # characters of a text
_FEWEST_LETTERS = 20
_LEAST_SHARE = 0.4  # of letters among the characters that are not white space
_LEAST_DISTINCT = 0.1  # of distinct words among the words of a text of a hundred words or more
_LIKELY = 0.5  # least probability of a text's language


@dataclass(frozen=True, slots=True)
class Outliers:
    """Documents of one kind, the most extreme first: the rows that are listed with a note each, and how many there are.

    ``title`` and ``about`` are the heading and the explanation of the kind.
    """

    title: str
    about: str
    rows: Sequence[int]
    notes: Sequence[str]
    total: int


def find_outliers(texts: Sequence[str], cosines: NDArray[np.float32]) -> list[Outliers]:
    """Return the outliers of each kind; ``cosines`` are those of each document to its nearest ones."""
    means = cosines.mean(axis=1)
    words = np.array([count_words(text) for text in texts])
    order = np.argsort(words, kind="stable").tolist()
    languages = list(map(identify_language, texts))
    usual = Counter(language for language, _ in languages).most_common(1)[0][0]
    other = [row for row, (language, likely) in enumerate(languages) if language != usual and likely >= _LIKELY]
    other.sort(key=lambda row: -languages[row][1])
    empty = {row: problem for row, text in enumerate(texts) if (problem := emptiness(text))}
    far, longest, shortest = np.argsort(means, kind="stable")[:SHOWN].tolist(), order[::-1][:SHOWN], order[:SHOWN]
    size = f"{cosines.shape[1]} nearest documents"
    return [
        Outliers(
            "Far from all",
            f"Documents with the lowest mean cosine to their {size}.",
            far,
            [f"mean cosine {means[row]:.2f}" for row in far],
            len(far),
        ),
        Outliers("The longest", "", longest, [f"{words[row]:,} words" for row in longest], len(longest)),
        Outliers("The shortest", "", shortest, [f"{words[row]:,} words" for row in shortest], len(shortest)),
        Outliers(
            "In another language",
            f"Most documents are in the language {usual}, these probably in others.",
            other[:SHOWN],
            [f"{languages[row][0]}, probability {languages[row][1]:.2f}" for row in other[:SHOWN]],
            len(other),
        ),
        Outliers(
            "Hardly any text",
            "Only a few letters, mostly digits and signs, or a few words over and over.",
            list(empty)[:SHOWN],
            list(empty.values())[:SHOWN],
            len(empty),
        ),
    ]


def emptiness(text: str) -> str:
    """Return why a text looks empty, or an empty string."""
    start = text[:_READ]
    solid = sum(not character.isspace() for character in start)
    letters = len(_LETTER.findall(start))
    if letters < _FEWEST_LETTERS and len(text) <= _READ:
        return f"{letters} letters"
    if letters < _LEAST_SHARE * solid:
        return f"{letters / solid:.0%} letters"
    words = features_of(text)
    if len(words) >= 100 and len(set(words)) < _LEAST_DISTINCT * min(len(words), 1000):
        return f"{len(set(words)):,} different of {len(words):,} words"
    return ""
