"""Groups of near copies, and what differs in them."""

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
_CONTEXT = 6  # words shown on each side of what differs
_CHANGES = 8

Change = tuple[Literal["same", "gone", "new", "gap"], str]
"""A run of words: in both texts, only in the first, only in the other; or a stretch of both that is left out."""


@dataclass(frozen=True, slots=True)
class Group:
    """Documents that are near copies of each other.

    Attributes:
        members: Which they are, the first of them first.
        differences: For each other member, up to :data:`MEMBERS`: what differs from the first; empty where only case,
            punctuation or white space do.
    """

    members: Sequence[int]
    differences: Sequence[Sequence[Change]]


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of a pile.

    Attributes:
        groups: The group of each document: the number of its first document. Shape ``[documents]``.
        shown: The largest groups.
        similarity: From which on documents are copies.
        report: The counts.
    """

    groups: NDArray[np.int64]
    shown: Sequence[Group]
    similarity: float
    report: DuplicateReport


def find_copies(texts: Sequence[str], similarity: float, *, seed: int = 0, progress: bool = False) -> Copies:
    """Find near copies and what differs in them."""
    found = find_duplicates(list(texts), threshold=similarity, seed=seed, progress=progress)
    numbers, sizes = np.unique(found.groups, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = []
    for number in numbers[order[sizes[order] > 1]][:GROUPS]:
        members = np.flatnonzero(found.groups == number).tolist()
        first = texts[members[0]]
        shown.append(Group(members, [differences(first, texts[each]) for each in members[1 : MEMBERS + 1]]))
    return Copies(found.groups, shown, similarity, found.report)


def differences(first: str, other: str) -> list[Change]:
    """Compare two texts word by word; the first 2,000 words, and no more than eight places."""
    one, two = (_cut(text) for text in (first, other))
    changes: list[Change] = []
    places = 0
    for what, a, b, c, d in SequenceMatcher(None, one, two).get_opcodes():
        if what == "equal":
            changes += _around(one[a:b], not changes, b == len(one))
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


def _cut(text: str) -> list[str]:
    words = text.split()[:_WORDS]
    return [word[start:stop] for word in words for start, stop in word_spans(word)][:_WORDS]


def _around(words: Sequence[str], is_start: bool, is_end: bool) -> list[Change]:
    """Keep the words next to what differs of a run that both texts have."""
    before, after = ([] if is_start else words[:_CONTEXT]), ([] if is_end else words[-_CONTEXT:])
    if len(before) + len(after) >= len(words):
        return [("same", " ".join(words))]
    pieces: list[Change] = [("same", " ".join(before)), ("gap", ""), ("same", " ".join(after))]
    return [piece for piece in pieces if piece[0] == "gap" or piece[1]]
