"""Write the sections below the map as HTML: topics, near-duplicates with their differences, and the corpus.

All document texts are escaped here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from html import escape
from itertools import islice

import numpy as np

from simlte_st.exploration.html import about, plain_list, section, table
from simlte_st.exploration.topics import Topics
from simlte_st.models.limits import Truncation
from simlte_st.reading.document import word_spans
from simlte_st.reading.reader import ReadReport
from simlte_st.views.duplicates import Duplicates

TYPICAL = 3
"""Typical documents shown for each topic."""

MAX_GROUPS = 100
"""Maximum number of groups of near-duplicates shown, the largest first."""

MAX_COMPARED = 5
"""Maximum number of documents in a group that are compared with its first document."""

_MAX_WORDS = 2_000  # compared words of a text
_CONTEXT = 6  # words shown on each side of a difference
_MAX_EXCERPTS = 8  # excerpts with differences
_MAX_RUN = 40  # words shown of a run of equal, deleted or inserted words

Link = Callable[[int], str]
"""Return a link to a document, by its row."""


def difference(first: str, second: str) -> str:
    """Return a word-level diff of two texts as HTML: up to eight excerpts from their first 2,000 words."""
    old, new = ([text[start:stop] for start, stop in word_spans(text)[:_MAX_WORDS]] for text in (first, second))
    excerpts = []
    for operations in islice(SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT), _MAX_EXCERPTS):
        runs = []
        for operation, old_start, old_stop, new_start, new_stop in operations:
            old_run, new_run = _to_html(old[old_start:old_stop]), _to_html(new[new_start:new_stop])
            if operation == "equal":
                runs.append(old_run)
            else:
                runs += [f"<del>{old_run}</del>" * bool(old_run), f"<ins>{new_run}</ins>" * bool(new_run)]
        excerpts.append(" ".join(filter(None, runs)))
    return " … ".join(excerpts) or "the same words"


def _to_html(words: Sequence[str]) -> str:
    return escape(" ".join(words[:_MAX_RUN])) + " …" * (len(words) > _MAX_RUN)


def topics_section(names: Sequence[str], topics: Topics, duplicates: Duplicates, link: Link) -> str:
    """Return the table of topics, and the agreement of document halves."""
    rows = []
    for topic, (name, size) in enumerate(zip(names, topics.sizes.tolist(), strict=True)):
        topic_link = f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>'
        rows.append([topic_link, f"{size:,}", plain_list(map(link, typical_documents(topics, topic, duplicates)))])
    agreement = (
        f"{len(topics.centres)} topics. Random halves of the documents, clustered separately, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 is chance, 1 is full agreement)."
    )
    outliers = f"{topics.outliers:,} documents have no topic: their halves would more likely land in different ones."
    notes = about(agreement) + about(outliers if topics.outliers else "")
    return section("topics", "Topics", notes, table(["Topic", "Documents", "Typical documents"], rows, (1,)))


def typical_documents(topics: Topics, topic: int, duplicates: Duplicates) -> list[int]:
    """Return the documents nearest to a topic's centre, without near-duplicates."""
    members = np.flatnonzero(topics.by_document == topic)
    nearest = members[np.argsort(-topics.cosines[members], kind="stable")]
    _, first = np.unique(duplicates.groups[nearest], return_index=True)
    typical: list[int] = nearest[np.sort(first)][:TYPICAL].tolist()
    return typical


def duplicates_section(duplicates: Duplicates, similarity: float, texts: Sequence[str], link: Link) -> str:
    """Return the groups of near-duplicates, with their differences."""
    title, report = "Near-duplicates", duplicates.report
    overlap = f"at least {similarity:.0%} of their five-word runs"
    if not report.groups:
        return section("duplicates", title, about(f"No two of the {report.documents:,} documents share {overlap}."))
    numbers, sizes = np.unique(duplicates.groups, return_counts=True)
    groups = []
    for number in numbers[np.argsort(-sizes, kind="stable")[: min(MAX_GROUPS, report.groups)]]:
        first, *rows = np.flatnonzero(duplicates.groups == number).tolist()
        differences = plain_list(
            f'{link(row)}<div class="difference">{difference(texts[first], texts[row])}</div>'
            for row in rows[:MAX_COMPARED]
        )
        remaining = about(f"and {len(rows) - MAX_COMPARED:,} more" if len(rows) > MAX_COMPARED else "")
        groups.append(f"<div><h3>{link(first)}</h3>{differences}{remaining}</div>")
    smaller = report.groups - len(groups)
    return section(
        "duplicates",
        title,
        about(f"{report.summary()}; near-duplicates share {overlap}."),
        f'<div class="columns">{"".join(groups)}</div>',
        about(f"and {smaller:,} smaller groups" if smaller else ""),
    )


def corpus_section(truncation: Truncation, reading: ReadReport | None) -> str:
    """Return the share of the text that the model reads, and the skipped documents."""
    parts = [f"<p>{escape(truncation.summary())}</p>"]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if reading is not None:
        parts.append(plain_list(map(escape, reading.summary().split("\n"))))
    return section("corpus", "The corpus", *parts)
