"""The parts of the page below the map, as HTML. Everything from outside goes through :func:`escape`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.report import ReadReport
from simlte_st.exploration.copies import Change, Copies
from simlte_st.exploration.corpus import Corpus
from simlte_st.exploration.outliers import Outliers
from simlte_st.exploration.topics import Stability
from simlte_st.models.truncation import Truncation

Link = Callable[[int], str]
"""Writes a link to a document."""


def document_links(titles: Sequence[str]) -> Link:
    """Make what writes links to documents, each under its title."""
    return lambda row: f'<a href="#document={row}"><bdi>{escape(titles[row])}</bdi></a>'


def section(name: str, title: str, *parts: str) -> str:
    """Write a section."""
    return f'<section id="{name}" aria-label="{title}"><h2>{title}</h2>{"".join(parts)}</section>'


def about(text: str) -> str:
    """Write a sentence or two of explanation."""
    return f'<p class="about">{escape(text)}</p>' if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Write a table of cells that are HTML already; ``right`` are the columns of numbers."""

    def line(cells: Sequence[str], tag: str) -> str:
        kinds = [' class="right"' if place in right else "" for place in range(len(cells))]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{line(header, "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def copies_section(copies: Copies, link: Link) -> str:
    """Write the groups of near copies, with what differs."""
    shared = f"{copies.similarity:.0%} of their runs of five words or more"
    if not copies.report.groups:
        return section(
            "copies", "Near copies", about(f"No two of the {copies.report.documents:,} documents share {shared}.")
        )
    parts = [about(f"{copies.report.summary()}; they share {shared}.")]
    groups = []
    for group in copies.shown:
        first, *others = group.members
        compared = "".join(
            f'<li>{link(row)}<div class="difference">{_difference(changes)}</div></li>'
            for row, changes in zip(others, group.differences, strict=False)
        )
        more = len(others) - len(group.differences)
        rest = about(f"and {more:,} more") if more else ""
        groups.append(f'<div><h3>{link(first)}</h3><ul class="plain-list">{compared}</ul>{rest}</div>')
    parts.append(f'<div class="columns">{"".join(groups)}</div>')
    if copies.report.groups > len(copies.shown):
        parts.append(about(f"and {copies.report.groups - len(copies.shown):,} smaller groups"))
    return section("copies", "Near copies", *parts)


def _difference(changes: Sequence[Change]) -> str:
    tags = {"gone": "del", "new": "ins"}
    written = [
        f"<{tags[kind]}>{escape(text)}</{tags[kind]}>" if kind in tags else escape(text) if kind == "same" else "…"
        for kind, text in changes
    ]
    return " ".join(written) or "the same words"


def outliers_section(kinds: Sequence[Outliers], link: Link) -> str:
    """Write the documents that stand apart, each kind beside the others."""
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


def corpus_section(corpus: Corpus, truncation: Truncation, reading: ReadReport | None) -> str:
    """Write lengths, what is read, what repeats, and what was skipped."""
    least, median, mean, most = corpus.words
    lengths = f"Words of a document: {least:,} to {most:,}, median {median:,.0f}, mean {mean:,.0f}."
    parts = [
        about(lengths),
        _histogram(corpus.edges, corpus.counts, truncation.budget),
        about("Documents by their tokens; the axis is logarithmic, the line is what the model reads."),
        f"<h3>What is read</h3><p>{escape(truncation.summary())}</p>",
    ]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    parts.append("<h3>Redundancy</h3>")
    if corpus.redundancy:
        rows = [(escape(words), f"{documents:,}", escape(mean)) for words, documents, mean in corpus.redundancy]
        parts.append(table(("words", "documents", "nouns and verbs to distinct ones [95%]"), rows, (1, 2)))
    parts.append(about(corpus.redundancy_note))
    if reading is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in reading.summary().split("\n"))
        parts.append(f'<h3>What was read</h3><ul class="plain-list">{lines}</ul>')
    return section("corpus", "The corpus", *parts)


def _histogram(edges: NDArray[np.float64], counts: NDArray[np.int64], limit: int | None) -> str:
    """Draw bars by SVG, with a line at what the model reads."""
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
    box = f'viewBox="0 0 {width} {height + 20}" role="img" aria-label="Documents by their tokens"'
    return f'<svg class="bars" {box}>{"".join(drawn)}</svg>'


def topics_section(
    names: Sequence[str],
    sizes: Sequence[int],
    typical: Sequence[Sequence[int]],
    follows: Sequence[str],
    followed: str,
    notes: Sequence[str],
    tried: Sequence[Stability],
    link: Link,
) -> str:
    """Write the table of topics."""
    header = ["topic", "documents", "typical documents", *([escape(followed)] if follows else [])]
    rows = []
    for topic, (name, size, rows_of) in enumerate(zip(names, sizes, typical, strict=True)):
        documents = "".join(f"<li>{link(row)}</li>" for row in rows_of)
        cells = [f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>', f"{size:,}"]
        cells += [f'<ul class="plain-list">{documents}</ul>', *([follows[topic]] if follows else [])]
        rows.append(cells)
    parts = [*map(about, notes), table(header, rows, (1,))]
    if len(tried) > 1:
        shown = [(f"{each.number}", f"{each.shared:.2f}", f"{each.agreement:.2f}") for each in tried]
        heading = "<summary>Numbers of topics that were tried</summary>"
        explained = about(
            "Bits that the topic of one half of a document tells of that of its other half, beyond chance; and the "
            "adjusted mutual information: 0 by chance, 1 where all halves fall alike. The number with the highest "
            "product of both is taken."
        )
        parts.append(
            f"<details>{heading}{explained}{table(('topics', 'bits', 'agreement'), shown, (0, 1, 2))}</details>"
        )
    return section("topics", "Topics", *parts)
