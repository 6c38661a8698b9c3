"""The sections of the page below the map, as HTML: topics, near-duplicates with their differences, the corpus.

Everything from outside goes through :func:`escape`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import word_spans
from simlte_st.data.duplicates import DuplicateReport, find_duplicates
from simlte_st.data.report import ReadReport
from simlte_st.exploration.html import about, section, table
from simlte_st.exploration.topics import LabelComparison, Topics
from simlte_st.models.truncation import Truncation

TYPICAL = 3
"""Documents that are shown of a topic."""

GROUPS = 100
"""Groups whose differences are shown, the largest first."""

MEMBERS = 5
"""Documents of a group that are compared with its first."""

_WORDS = 2_000  # of a text that are compared
_CONTEXT = 6  # words shown on each side of a difference
_CHANGES = 8

Change = tuple[Literal["same", "gone", "new", "gap"], str]
"""A run of words: in both texts, only in the first, only in the other; or a stretch of both that is not shown."""

Link = Callable[[int], str]
"""Returns a link to a document."""


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
    found = find_duplicates(list(texts), similarity=similarity, progress=progress)
    numbers, sizes = np.unique(found.groups, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = []
    for number in numbers[order[sizes[order] > 1]][:GROUPS]:
        first, *others = members = np.flatnonzero(found.groups == number).tolist()
        shown.append(Group(members, [differences(texts[first], texts[other]) for other in others[:MEMBERS]]))
    return DuplicateGroups(found.groups, shown, similarity, found.report)


def differences(first: str, other: str) -> list[Change]:
    """Return the differences of two texts by word: in their first 2,000 words, and up to eight of them."""
    one, two = ([text[start:stop] for start, stop in word_spans(text)[:_WORDS]] for text in (first, other))
    changes: list[Change] = []
    places, end = 0, len(one)
    for group in SequenceMatcher(None, one, two).get_grouped_opcodes(_CONTEXT):
        if changes or group[0][1] > 0:
            changes.append(("gap", ""))
        for operation, a, end, c, d in group:
            places += operation != "equal"
            if places > _CHANGES:
                return [*changes, ("gap", "")]
            kinds: tuple[Change, ...] = (("gone", " ".join(one[a:end])), ("new", " ".join(two[c:d])))
            changes += [("same", kinds[0][1])] if operation == "equal" else [each for each in kinds if each[1]]
    return [*changes, ("gap", "")] if end < len(one) else changes


def topics_section(
    names: Sequence[str],
    topics: Topics,
    duplicates: DuplicateGroups,
    comparison: LabelComparison | None,
    link: Link,
) -> str:
    """Return the table of topics, and how far halves of documents agree on them."""
    header, numbers = ["topic", "documents", "typical documents"], topics.sizes.tolist()
    rows = []
    for topic, (name, typical) in enumerate(zip(names, typical_documents(topics, duplicates), strict=True)):
        documents = "".join(f"<li>{link(row)}</li>" for row in typical)
        cells = [f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>', f"{numbers[topic]:,}"]
        rows.append([*cells, f'<ul class="plain-list">{documents}</ul>'])
    if comparison is not None and names:
        header.append(escape(comparison.name))
        rows = [[*row, _bars(shares)] for row, shares in zip(rows, comparison.shares, strict=True)]
    notes = [*topic_notes(topics), *([comparison.summary()] if comparison else [])]
    return section("topics", "Topics", *map(about, notes), table(header, rows, (1,)))


def typical_documents(topics: Topics, duplicates: DuplicateGroups) -> list[list[int]]:
    """Return the documents nearest to the centre of each topic, no two of them near-duplicates."""
    typical = []
    for topic in range(len(topics.centres)):
        members = np.flatnonzero(topics.assigned == topic)
        ordered = members[np.argsort(-topics.cosines[members], kind="stable")]
        _, first = np.unique(duplicates.groups[ordered], return_index=True)
        typical.append(ordered[np.sort(first)][:TYPICAL].tolist())
    return typical


def topic_notes(topics: Topics) -> list[str]:
    """Return sentences on the number of topics and on documents without a topic."""
    notes = [
        f"{len(topics.centres)} topics. Two random halves of each document, clustered separately, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 by chance, 1 where the halves of every "
        "document share a topic)."
    ]
    if topics.none:
        notes.append(f"{topics.none:,} belong to none: their halves would more likely be in different topics.")
    return notes


def _bars(shares: Sequence[tuple[str, float]]) -> str:
    bars = (
        f'<span class="share" style="width: {5 * share:.2f}rem"></span>'
        f'<span><bdi>{escape(name)}</bdi> <span class="number">{share:.0%}</span></span>'
        for name, share in shares
    )
    return f'<div class="follow">{"".join(bars)}</div>'


def duplicates_section(duplicates: DuplicateGroups, link: Link) -> str:
    """Return the groups of near-duplicates, with their differences."""
    title, report = "Near-duplicates", duplicates.report
    shared = f"{duplicates.similarity:.0%} of their runs of five words or more"
    if not report.groups:
        return section("duplicates", title, about(f"No two of the {report.documents:,} documents share {shared}."))
    groups = []
    for group in duplicates.shown:
        first, *others = group.members
        compared = "".join(
            f'<li>{link(row)}<div class="difference">{_difference(changes)}</div></li>'
            for row, changes in zip(others, group.differences, strict=False)
        )
        more = len(others) - len(group.differences)
        rest = about(f"and {more:,} more") if more else ""
        groups.append(f'<div><h3>{link(first)}</h3><ul class="plain-list">{compared}</ul>{rest}</div>')
    smaller = report.groups - len(duplicates.shown)
    return section(
        "duplicates",
        title,
        about(f"{report.summary()}; they share {shared}."),
        f'<div class="columns">{"".join(groups)}</div>',
        about(f"and {smaller:,} smaller groups") if smaller else "",
    )


def _difference(changes: Sequence[Change]) -> str:
    tags = {"gone": "del", "new": "ins"}
    written = [
        f"<{tags[kind]}>{escape(text)}</{tags[kind]}>" if kind in tags else escape(text) if kind == "same" else "…"
        for kind, text in changes
    ]
    return " ".join(written) or "the same words"


def corpus_section(truncation: Truncation, reading: ReadReport | None) -> str:
    """Return how much the model reads of the documents, and which were skipped."""
    parts = [f"<p>{escape(truncation.summary())}</p>"]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if reading is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in reading.summary().split("\n"))
        parts.append(f'<ul class="plain-list">{lines}</ul>')
    return section("corpus", "The corpus", *parts)
