"""The sections of the page below the map, as HTML: topics, near-duplicates with their differences, the corpus.

Everything from outside goes through :func:`escape`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import islice

import numpy as np

from simlte_st.data.document import word_spans
from simlte_st.data.duplicates import Duplicates
from simlte_st.data.reader import ReadReport
from simlte_st.exploration.html import about, section, table
from simlte_st.exploration.topics import Topics
from simlte_st.models.truncation import Truncation

TYPICAL = 3
"""Documents that are shown of a topic."""

GROUPS = 100
"""Groups whose differences are shown, the largest first."""

MEMBERS = 5
"""Documents of a group that are compared with its first."""

_WORDS = 2_000  # of a text that are compared
_CONTEXT = 6  # words shown on each side of a difference
_STRETCHES = 8  # that differ, and are shown

Link = Callable[[int], str]
"""Returns a link to a document."""


def difference(first: str, other: str) -> str:
    """Return the differences of two texts by word as HTML: in their first 2,000 words, and of up to eight stretches."""
    one, two = ([text[start:stop] for start, stop in word_spans(text)[:_WORDS]] for text in (first, other))
    shown = []
    for stretch in islice(SequenceMatcher(None, one, two).get_grouped_opcodes(_CONTEXT), _STRETCHES):
        words = []
        for operation, a, b, c, d in stretch:
            gone, new = escape(" ".join(one[a:b])), escape(" ".join(two[c:d]))
            if operation == "equal":
                words.append(gone)
            else:
                words += [f"<del>{gone}</del>" * bool(gone), f"<ins>{new}</ins>" * bool(new)]
        shown.append(" ".join(filter(None, words)))
    return " … ".join(shown) or "the same words"


def topics_section(
    names: Sequence[str],
    topics: Topics,
    duplicates: Duplicates,
    link: Link,
) -> str:
    """Return the table of topics, and how far halves of documents agree on them."""
    rows, numbers = [], topics.sizes.tolist()
    for topic, (name, typical) in enumerate(zip(names, typical_documents(topics, duplicates), strict=True)):
        documents = "".join(f"<li>{link(row)}</li>" for row in typical)
        cells = [f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>', f"{numbers[topic]:,}"]
        rows.append([*cells, f'<ul class="plain-list">{documents}</ul>'])
    agreement = (
        f"{len(topics.centres)} topics. Two random halves of each document, clustered separately, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 by chance, 1 where the halves of every "
        "document share a topic)."
    )
    none = f"{topics.none:,} belong to none: their halves would more likely be in different topics."
    notes = about(agreement) + about(none if topics.none else "")
    return section("topics", "Topics", notes, table(["topic", "documents", "typical documents"], rows, (1,)))


def typical_documents(topics: Topics, duplicates: Duplicates) -> list[list[int]]:
    """Return the documents nearest to the centre of each topic, no two of them near-duplicates."""
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
    shared = f"{similarity:.0%} of their runs of five words or more"
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
        about(f"{report.summary()}; they share {shared}."),
        f'<div class="columns">{"".join(groups)}</div>',
        about(f"and {smaller:,} smaller groups") if smaller else "",
    )


def corpus_section(truncation: Truncation, reading: ReadReport | None) -> str:
    """Return how much the model reads of the documents, and which were skipped."""
    parts = [f"<p>{escape(truncation.summary())}</p>"]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if reading is not None:
        lines = "".join(f"<li>{escape(line)}</li>" for line in reading.summary().split("\n"))
        parts.append(f'<ul class="plain-list">{lines}</ul>')
    return section("corpus", "The corpus", *parts)
