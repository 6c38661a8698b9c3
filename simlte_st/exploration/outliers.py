"""Documents that stand apart: far from all, very long or short, in another script, or with hardly any text."""

from __future__ import annotations

import functools
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.words import count_words

SHOWN = 10
"""Documents of a kind that are listed."""

_LOOKED_AT = 2_000  # characters
_FEWEST_LETTERS = 20
_LEAST_SHARE = 0.4  # of letters among the characters that are no white space
_LEAST_DISTINCT = 0.1  # of distinct words among the words of a text of a hundred words or more

# Scripts that are written together.
_FAMILIES = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "BOPOMOFO": "CJK", "FULLWIDTH": "LATIN", "HALFWIDTH": "CJK"}


@dataclass(frozen=True, slots=True)
class Outliers:
    """Documents of one kind.

    Attributes:
        title: What the kind is called.
        about: What it means.
        rows: The documents that are listed, from the strangest on.
        notes: What is said of each.
        total: How many there are.
    """

    title: str
    about: str
    rows: Sequence[int]
    notes: Sequence[str]
    total: int


def find_outliers(texts: Sequence[str], cosines: NDArray[np.float32]) -> list[Outliers]:
    """Find documents that stand apart.

    Args:
        texts: The documents.
        cosines: To the nearest documents of each, shape ``[documents, neighbours]``.

    Returns:
        The kinds; those of other scripts and of hardly any text may be empty.
    """
    words = np.array([count_words(text) for text in texts])
    means = cosines.mean(axis=1)
    far, order = np.argsort(means, kind="stable")[:SHOWN].tolist(), np.argsort(words, kind="stable").tolist()
    longest, shortest = order[::-1][:SHOWN], order[:SHOWN]
    scripts = [main_script(text) for text in texts]
    usual = Counter(script for script in scripts if script).most_common(1)
    own = usual[0][0] if usual else ""
    other = [row for row, script in enumerate(scripts) if script not in ("", own)]
    rare = Counter(scripts)
    other.sort(key=lambda row: (rare[scripts[row]], row))
    empty = [(row, problem) for row, text in enumerate(texts) if (problem := emptiness(text))]
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
            "In another script",
            f"Most documents are written in {_readable(own)} letters, these in others." if own else "",
            other[:SHOWN],
            [_readable(scripts[row]) for row in other[:SHOWN]],
            len(other),
        ),
        Outliers(
            "Hardly any text",
            "A few letters only, mostly digits and signs, or a few words over and over.",
            [row for row, _ in empty[:SHOWN]],
            [problem for _, problem in empty[:SHOWN]],
            len(empty),
        ),
    ]


def main_script(text: str) -> str:
    """Name the script of most letters at a text's beginning by Unicode's names of them; empty without letters."""
    counts = Counter(filter(None, map(_script, text[:_LOOKED_AT])))
    return counts.most_common(1)[0][0] if counts else ""


@functools.lru_cache(1 << 16)
def _script(character: str) -> str:
    if not unicodedata.category(character).startswith("L"):
        return ""
    name = unicodedata.name(character, "").partition(" ")[0].partition("-")[0]
    return _FAMILIES.get(name, name)


def _readable(script: str) -> str:
    return "CJK" if script == "CJK" else script.capitalize()


def emptiness(text: str) -> str:
    """Say why a text looks empty, or give an empty string."""
    start = text[:_LOOKED_AT]
    solid = sum(not character.isspace() for character in start)
    letters = sum(map(str.isalpha, start))
    if letters < _FEWEST_LETTERS and len(text) <= _LOOKED_AT:
        return f"{letters} letters"
    if letters < _LEAST_SHARE * solid:
        return f"{letters / solid:.0%} letters"
    words = text.casefold().split()
    if len(words) >= 100 and len(set(words)) < _LEAST_DISTINCT * min(len(words), 1000):
        return f"{len(set(words)):,} different of {len(words):,} words"
    return ""
