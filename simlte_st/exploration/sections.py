"""The sections of the page below the map, as HTML. Everything from outside goes through :func:`escape`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.report import ReadReport
from simlte_st.exploration.corpus import CorpusStatistics
from simlte_st.exploration.duplicates import Change, DuplicateGroups
from simlte_st.exploration.html import about, section, table
from simlte_st.exploration.outliers import Outliers
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
    """Return the table of topics, and how their number was chosen."""
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
    parts = [*map(about, notes), table(header, rows, (1,))]
    if len(topics.tried) > 1:
        tried = [(f"{each.number}", f"{each.shared:.2f}", f"{each.agreement:.2f}") for each in topics.tried]
        explained = about(
            "Bits that the topic of one half of a document tells about that of its other half, beyond chance; and the "
            "adjusted mutual information: 0 by chance, 1 where the halves of every document share a topic. The number "
            "with the highest product of both is taken."
        )
        tried_table = table(("topics", "bits", "agreement"), tried, (0, 1, 2))
        parts.append(f"<details><summary>Numbers of topics that were tried</summary>{explained}{tried_table}</details>")
    return section("topics", "Topics", *parts)


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
        "document share a topic)"
        + ("; at this number the halves tell most about each other." if len(topics.tried) > 1 else "."),
    ]
    if topics.tight:
        those = "1 of them is a tight cluster" if topics.tight == 1 else f"{topics.tight} of them are tight clusters"
        notes.append(f"{those}, whose documents are more alike than the halves of nearly all documents are.")
    if topics.none:
        noun, their = ("document belongs", "its") if topics.none == 1 else ("documents belong", "their")
        notes.append(f"{topics.none:,} {noun} to none: {their} halves would more likely be in different topics.")
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


def outliers_section(kinds: Sequence[Outliers], link: Link) -> str:
    """Return the outliers, each kind beside the others."""
    parts = []
    for kind in kinds:
        items = [
            f'<li>{link(row)} <span class="number">{escape(note)}</span></li>'
            for row, note in zip(kind.rows, kind.notes, strict=True)
        ]
        more = about(f"and {kind.total - len(items):,} more") if kind.total > len(items) else ""
        listed = f'<ul class="plain-list">{"".join(items)}</ul>' if items else about("None.")
        parts.append(f"<div><h3>{kind.title}</h3>{about(kind.about)}{listed}{more}</div>")
    return section("outliers", "Outliers", f'<div class="columns">{"".join(parts)}</div>')


def corpus_section(statistics: CorpusStatistics, truncation: Truncation, reading: ReadReport | None) -> str:
    """Return lengths, how much the model reads, redundancy, and what was skipped."""
    least, median, mean, most = statistics.words
    parts = [
        about(f"Words of a document: {least:,} to {most:,}, median {median:,.0f}, mean {mean:,.0f}."),
        _histogram(statistics.edges, statistics.counts, truncation.budget),
        about("Documents by number of tokens, on a logarithmic axis; the line is what the model reads."),
        f"<h3>What is read</h3><p>{escape(truncation.summary())}</p>",
    ]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if statistics.redundancy:
        rows = [list(map(escape, row)) for row in statistics.redundancy]
        parts.append("<h3>Redundancy</h3>")
        parts.append(table(("words", "documents", "nouns and verbs to distinct ones [95%]"), rows, (1, 2)))
        parts.append(about(statistics.redundancy_note))
    if reading is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in reading.summary().split("\n"))
        parts.append(f'<h3>What was read</h3><ul class="plain-list">{lines}</ul>')
    return section("corpus", "The corpus", *parts)


def _histogram(edges: NDArray[np.float64], counts: NDArray[np.int64], limit: int | None) -> str:
    """Return bars as SVG, with a line at the number of tokens that the model reads."""
    width, height, bar = 700, 160, 700 / len(counts)
    most = max(1, int(counts.max()))
    drawn = [
        f'<rect x="{place * bar:.1f}" y="{height - height * count / most:.1f}" width="{bar - 1:.1f}" '
        f'height="{height * count / most:.1f}"><title>{edges[place]:,.0f} to {edges[place + 1]:,.0f} tokens: '
        f"{count:,}</title></rect>"
        for place, count in enumerate(counts.tolist())
    ]
    for place in range(0, len(edges), 6):
        anchor = "start" if place == 0 else "end" if place == len(counts) else "middle"
        drawn.append(f'<text x="{place * bar:.1f}" y="{height + 15}" text-anchor="{anchor}">{edges[place]:,.0f}</text>')
    if limit is not None and edges[0] < limit < edges[-1]:
        x = width * np.log(limit / edges[0]) / np.log(edges[-1] / edges[0])
        drawn.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{height}"/>')
    box = f'viewBox="0 0 {width} {height + 20}" role="img" aria-label="Documents by number of tokens"'
    return f'<svg class="bars" {box}>{"".join(drawn)}</svg>'
