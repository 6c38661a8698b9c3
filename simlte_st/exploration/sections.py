"""Write the sections below the map as HTML: topics, near-duplicates with their differences, the corpus.

Every text of a document is escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import islice

import numpy as np

from simlte_st.exploration.html import about, section, table
from simlte_st.exploration.topics import Topics
from simlte_st.models.truncation import Truncation
from simlte_st.reading.document import word_spans
from simlte_st.reading.reader import ReadReport
from simlte_st.views.duplicates import Duplicates

TYPICAL = 3
"""Typical documents shown for each topic."""

GROUPS = 100
"""Maximum number of groups of near-duplicates shown, the largest first."""

MEMBERS = 5
"""Maximum number of documents in a group that are compared with its first."""

_WORDS = 2_000  # compared of each text
_CONTEXT = 6  # words shown on each side of a difference
_STRETCHES = 8  # differing stretches shown
_LONGEST = 40  # words shown of a stretch

Link = Callable[[int], str]
"""Return a link to a document, by its row."""


def difference(first: str, other: str) -> str:
    """Return the differences by word of two texts as HTML: up to eight stretches of their first 2,000 words."""
    one, two = ([text[start:stop] for start, stop in word_spans(text)[:_WORDS]] for text in (first, other))
    shown = []
    for stretch in islice(SequenceMatcher(None, one, two).get_grouped_opcodes(_CONTEXT), _STRETCHES):
        words = []
        for operation, a, b, c, d in stretch:
            gone, new = _joined(one[a:b]), _joined(two[c:d])
            if operation == "equal":
                words.append(gone)
            else:
                words += [f"<del>{gone}</del>" * bool(gone), f"<ins>{new}</ins>" * bool(new)]
        shown.append(" ".join(filter(None, words)))
    return " … ".join(shown) or "the same words"


def _joined(words: Sequence[str]) -> str:
    return escape(" ".join(words[:_LONGEST])) + " …" * (len(words) > _LONGEST)


def topics_section(names: Sequence[str], topics: Topics, duplicates: Duplicates, link: Link) -> str:
    """Return the table of topics, and the agreement of halves of documents."""
    rows, numbers = [], topics.sizes.tolist()
    for topic, (name, typical) in enumerate(zip(names, typical_documents(topics, duplicates), strict=True)):
        documents = "".join(f"<li>{link(row)}</li>" for row in typical)
        cells = [f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>', f"{numbers[topic]:,}"]
        rows.append([*cells, f'<ul class="plain-list">{documents}</ul>'])
    agreement = (
        f"{len(topics.centres)} topics. Random halves of the documents, clustered separately, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 is chance, 1 is full agreement)."
    )
    none = f"{topics.none:,} documents have no topic: their halves would more likely land in different ones."
    notes = about(agreement) + about(none if topics.none else "")
    return section("topics", "Topics", notes, table(["Topic", "Documents", "Typical documents"], rows, (1,)))


def typical_documents(topics: Topics, duplicates: Duplicates) -> list[list[int]]:
    """Return the documents nearest to each topic's centre, without near-duplicates."""
    typical = []
    for topic in range(len(topics.centres)):
        members = np.flatnonzero(topics.assigned == topic)
        ordered = members[np.argsort(-topics.cosines[members], kind="stable")]
        _, first = np.unique(duplicates.groups[ordered], return_index=True)
        typical.append(ordered[np.sort(first)][:TYPICAL].tolist())
    return typical


def duplicates_section(duplicates: Duplicates, similarity: float, texts: Sequence[str], link: Link) -> str:
    """Return the groups of near-duplicates, with their differences."""
    title, report = "Near-duplicates", duplicates.report
    shared = f"at least {similarity:.0%} of their five-word runs"
    if not report.groups:
        return section("duplicates", title, about(f"No two of the {report.documents:,} documents share {shared}."))
    numbers, sizes = np.unique(duplicates.groups, return_counts=True)
    largest = numbers[np.argsort(-sizes, kind="stable")[: min(GROUPS, report.groups)]]
    groups = []
    for number in largest:
        first, *others = np.flatnonzero(duplicates.groups == number).tolist()
        compared = "".join(
            f'<li>{link(row)}<div class="difference">{difference(texts[first], texts[row])}</div></li>'
            for row in others[:MEMBERS]
        )
        rest = about(f"and {len(others) - MEMBERS:,} more") if len(others) > MEMBERS else ""
        groups.append(f'<div><h3>{link(first)}</h3><ul class="plain-list">{compared}</ul>{rest}</div>')
    smaller = report.groups - len(groups)
    return section(
        "duplicates",
        title,
        about(f"{report.summary()}; near-duplicates share {shared}."),
        f'<div class="columns">{"".join(groups)}</div>',
        about(f"and {smaller:,} smaller groups") if smaller else "",
    )


def corpus_section(truncation: Truncation, reading: ReadReport | None) -> str:
    """Return the share of the documents that the model reads, and the skipped documents."""
    parts = [f"<p>{escape(truncation.summary())}</p>"]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if reading is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in reading.summary().split("\n"))
        parts.append(f'<ul class="plain-list">{lines}</ul>')
    return section("corpus", "The corpus", *parts)
