"""Compare near-duplicates, and pairs of documents just below their similarity, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice, takewhile

import numpy as np

from simlte_st.reading.document import word_spans
from simlte_st.views.duplicates import Duplicates, find_duplicates, run_similarity

MAX_GROUPS = 100
"""Maximum number of groups of near-duplicates shown, largest first."""

MAX_COMPARED = 5
"""Maximum number of documents in a group that are compared with its first document."""

_BELOW = 2 / 3  # of the similarity of near-duplicates: pairs above this are shown as just below
_MAX_SCANNED = 20_000  # maximum number of documents compared to find such pairs
_MAX_WORDS = 2_000  # maximum number of words compared per text
_CONTEXT = 6  # number of words shown on each side of a difference
_MAX_EXCERPTS = 8  # maximum number of excerpts shown per pair of texts
_MAX_RUN = 40  # maximum number of words shown in a run of equal, deleted or inserted words


def compare_duplicates(duplicates: Duplicates, similarity: float, texts: Sequence[str]) -> dict[str, object]:
    """Return the groups of near-duplicates and the pairs just below their similarity, as JSON values.

    A pair has the rows of two documents, their similarity, and their difference. The pairs of a group compare its first
    document with the next ones.
    """

    def compare(first: int, row: int) -> tuple[int, int, float, list[tuple[str, str]]]:
        return first, row, run_similarity(texts[first], texts[row]), difference(texts[first], texts[row])

    numbers, sizes = np.unique(duplicates.groups, return_counts=True)
    largest = numbers[np.argsort(-sizes, kind="stable")[: min(MAX_GROUPS, duplicates.report.groups)]]
    members = [np.flatnonzero(duplicates.groups == number).tolist() for number in largest]
    groups = [[compare(first, row) for row in rows[:MAX_COMPARED]] for first, *rows in members]
    firsts = numbers[:_MAX_SCANNED]
    similar = firsts[find_duplicates([texts[row] for row in firsts], similarity=_BELOW * similarity).groups]
    pairs = [(first, row) for first, row in zip(similar.tolist(), firsts.tolist(), strict=True) if first != row]
    below = sorted((compare(*pair) for pair in pairs[:MAX_GROUPS]), key=lambda pair: -pair[2])
    summary = f"{duplicates.report.summary()}; near-duplicates share at least {similarity:.0%} of their five-word runs."
    more = {"more_groups": duplicates.report.groups - len(groups), "more_below": len(pairs) - len(below)}
    return {"summary": summary, "groups": groups, "below": below, **more}


def difference(first: str, second: str) -> list[tuple[str, str]]:
    """Return a word-level diff of two texts: up to eight excerpts from 2,000 words around the first difference.

    Returns:
        Pairs of ``"equal"``, ``"delete"``, ``"insert"`` or, between excerpts, ``"skip"``, and words.
    """
    old, new = ([text[start:stop] for start, stop in word_spans(text)] for text in (first, second))
    start, runs = max(0, count_shared(old, new) - _CONTEXT), list[tuple[str, str]]()
    old, new = (words[start : start + _MAX_WORDS] for words in (old, new))
    for operations in islice(SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT), _MAX_EXCERPTS):
        runs += [("skip", "…")] if runs else []
        for operation, old_start, old_stop, new_start, new_stop in operations:
            runs.append(("equal" if operation == "equal" else "delete", _crop_run(old[old_start:old_stop])))
            runs.append(("insert", "" if operation == "equal" else _crop_run(new[new_start:new_stop])))
    runs = [run for run in runs if run[1]]
    return runs or [("equal", "the same text" if first == second else "the same words")]


def count_shared(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the number of words, or of characters in two strings, with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _crop_run(words: Sequence[str]) -> str:
    return " ".join(words[:_MAX_RUN]) + " …" * (len(words) > _MAX_RUN)
