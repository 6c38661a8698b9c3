"""The sections of the page below the map, as HTML. Everything from outside goes through :func:`escape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from simlte_st.data.report import ReadReport
from simlte_st.exploration.duplicates import Change, DuplicateGroups
from simlte_st.exploration.html import about, section, table
from simlte_st.exploration.topics import LabelComparison, Topics
from simlte_st.models.truncation import Truncation

TYPICAL = 3
"""Documents that are shown of a topic."""

Link = Callable[[int], str]
"""Returns a link to a document."""


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
