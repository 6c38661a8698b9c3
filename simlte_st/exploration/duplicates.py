"""Groups of near-duplicates, and the words in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import word_spans
from simlte_st.data.duplicates import DuplicateReport, find_duplicates

GROUPS = 100
"""Groups whose differences are shown, the largest first."""

MEMBERS = 5
"""Documents of a group that are compared with its first."""

_WORDS = 2_000  # of a text that are compared
_CONTEXT = 6  # words shown on each side of a difference
_CHANGES = 8

Change = tuple[Literal["same", "gone", "new", "gap"], str]
"""A run of words: in both texts, only in the first, only in the other; or a stretch of both that is not shown."""


@dataclass(frozen=True, slots=True)
class Group:
    """Near-duplicates: row numbers, and what up to :data:`MEMBERS` others have different from the first.

    Differences are empty where only case, punctuation or white space differ.
    """

    members: Sequence[int]
    differences: Sequence[Sequence[Change]]


@dataclass(frozen=True, slots=True)
class DuplicateGroups:
    """The near-duplicates of a corpus: the number of the first document of each one's group, and the largest groups."""

    groups: NDArray[np.int64]
    shown: Sequence[Group]
    similarity: float
    report: DuplicateReport


def duplicate_groups(texts: Sequence[str], similarity: float, *, progress: bool = False) -> DuplicateGroups:
    """Return groups of near-duplicates with their differences."""
    found = find_duplicates(texts, similarity=similarity, progress=progress)
    numbers, sizes = np.unique(found.groups, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = []
    for number in numbers[order[sizes[order] > 1]][:GROUPS]:
        first, *others = members = np.flatnonzero(found.groups == number).tolist()
        shown.append(Group(members, [differences(texts[first], texts[other]) for other in others[:MEMBERS]]))
    return DuplicateGroups(found.groups, shown, similarity, found.report)


def differences(first: str, other: str) -> list[Change]:
    """Return the differences of two texts by word: in their first 2,000 words, and up to eight of them."""
    one, two = _words(first), _words(other)
    changes: list[Change] = []
    places = 0
    for operation, a, b, c, d in SequenceMatcher(None, one, two).get_opcodes():
        if operation == "equal":
            changes += _context(one[a:b], not changes, b == len(one))
            continue
        places += 1
        if places > _CHANGES:
            changes.append(("gap", ""))
            break
        if b > a:
            changes.append(("gone", " ".join(one[a:b])))
        if d > c:
            changes.append(("new", " ".join(two[c:d])))
    return changes if places else []


def _words(text: str) -> list[str]:
    return [text[start:stop] for start, stop in word_spans(text)[:_WORDS]]


def _context(words: Sequence[str], is_start: bool, is_end: bool) -> list[Change]:
    """Return the words of a common run that stand next to a difference."""
    before, after = ([] if is_start else words[:_CONTEXT]), ([] if is_end else words[-_CONTEXT:])
    if len(before) + len(after) >= len(words):
        return [("same", " ".join(words))]
    pieces: list[Change] = [("same", " ".join(before)), ("gap", ""), ("same", " ".join(after))]
    return [piece for piece in pieces if piece[0] == "gap" or piece[1]]
