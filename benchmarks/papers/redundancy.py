"""Measure the repetition of nouns and verbs by document length (SimLTE, equation 2 and table 3).

    python -m benchmarks.papers.redundancy my_documents
    python -m benchmarks.papers.redundancy posts.csv --limit 1000 --output nouns.json

Requires spaCy and one of its pipelines: pip install "simlte-st[pos]".
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import inf
from typing import Any

from benchmarks.papers.command import make_parser, open_documents, report
from benchmarks.papers.tagging import SpacyTagger, TaggedWord
from simlte_st.data import read_documents
from simlte_st.evaluation import bootstrap_interval
from simlte_st.evaluation.table import markdown_table
from simlte_st.reading.document import count_words

COUNTED = frozenset({"NOUN", "PROPN", "VERB"})
"""Universal parts of speech that count as nouns and verbs: common nouns, names, and verbs except auxiliaries."""

BUCKETS = {
    "0-50": (0, 50), "51-100": (51, 100), "101-200": (101, 200), "201-300": (201, 300), "more than 300": (301, inf),
}  # fmt: skip
"""Document lengths in words for the columns of the paper's table, ends included."""


def repetition(words: Collection[Hashable]) -> float | None:
    """Divide the number of nouns and verbs by that of distinct ones (SimLTE, equation 2); None if there are none."""
    return len(words) / len(set(words)) if words else None


def nouns_and_verbs(words: Iterable[TaggedWord]) -> list[tuple[str, str]]:
    """Return the nouns and verbs of a document as pairs of part of speech and lower-case lemma."""
    return [(word.pos, word.lemma.casefold()) for word in words if word.pos in COUNTED]


def measure_redundancy(documents: Any, tagger: SpacyTagger, *, seed: int = 0) -> dict[str, Any]:
    """Measure the redundancy of a corpus, by document length and overall.

    :func:`~simlte_st.reading.document.count_words` gives the lengths. Documents without nouns and verbs are skipped.

    Returns:
        JSON values: ``buckets`` has a row for each of :data:`BUCKETS`, and ``all`` is the row of all documents. Each
        row holds the number of documents, and the mean with its 95% bootstrap interval (None for too few documents).

    References:
        SimLTE, appendix A. The paper does not say whether names and auxiliaries count, nor whether a noun and a verb
        with the same lemma are distinct. Among the variants we tried, :data:`COUNTED` and :func:`nouns_and_verbs` come
        closest to its numbers for 20News.
    """
    texts = (document.text for document in read_documents(documents))
    ratios = [(count_words(text), repetition(nouns_and_verbs(tagger.tag(text)))) for text in texts]

    def row(shortest: float, longest: float) -> dict[str, Any]:
        values = [ratio for words, ratio in ratios if ratio is not None and shortest <= words <= longest]
        low, high = bootstrap_interval(values, seed=seed) if len(values) > 1 else (None, None)
        mean = sum(values) / len(values) if values else None
        return {"documents": len(values), "mean": mean, "low": low, "high": high}

    buckets = [row(*ends) for ends in BUCKETS.values()]
    return {"buckets": buckets, "all": row(0, inf), "tagger": tagger.description}


def redundancy_table(results: Mapping[str, Any]) -> str:
    """Tabulate :func:`measure_redundancy`, one row per range of lengths and one for all."""
    rows = []
    for name, row in zip((*BUCKETS, "all"), (*results["buckets"], results["all"]), strict=True):
        mean = "" if row["mean"] is None else f"{row['mean']:.2f}"
        interval = "" if row["low"] is None else f" [{row['low']:.2f}, {row['high']:.2f}]"
        rows.append([name, f"{row['documents']:,}", mean + interval])
    return markdown_table(["words", "documents", "redundancy [95%]"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    options = make_parser(__doc__, models=False).parse_args(arguments)
    tagger, reader = SpacyTagger(), open_documents(options)
    results = measure_redundancy(reader, tagger)
    report(options, redundancy_table(results), results, reader)


if __name__ == "__main__":
    main()
