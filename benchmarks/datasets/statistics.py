"""What a data set looks like in numbers: the papers' tables, made from the documents that are there."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from benchmarks.datasets.benchmark import Benchmark, CitationBenchmark, PrintedStatistics
from simlte_st.evaluation.table import markdown_table

_ROWS = (
    ("documents", "documents", ",.0f"),
    ("classes", "classes", ",.0f"),
    ("words_mean", "words, mean", ",.1f"),
    ("words_median", "words, median", ",.1f"),
    ("words_max", "words, longest", ",.0f"),
)


@dataclass(frozen=True)
class Statistics(PrintedStatistics):
    """The numbers that the papers print, counted here, and more. A word is what white space separates.

    Attributes:
        unlabelled: Documents without a class.
        labels: Documents of each class, the largest first.
        splits: Documents of each split that the source has.
    """

    unlabelled: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    splits: dict[str, int] = field(default_factory=dict)


def statistics(data: Benchmark | CitationBenchmark) -> Statistics:
    """Count documents, classes and words in one pass; 4 bytes a document are held."""
    words = array("I")
    labels: Counter[str | None] = Counter()
    splits: Counter[str] = Counter()
    for document in data.documents():
        words.append(len(document.text.split()))
        labels[document.label] += 1
        if document.split is not None:
            splits[document.split] += 1
    counts = np.frombuffer(words, dtype=np.uint32)
    unlabelled = labels.pop(None, 0)
    named = sorted(((str(label), number) for label, number in labels.items()), key=lambda item: (-item[1], item[0]))
    return Statistics(
        documents=len(counts),
        classes=len(named),
        words_mean=float(counts.mean()),
        words_median=float(np.median(counts)),
        words_max=int(counts.max()),
        unlabelled=unlabelled,
        labels=dict(named),
        splits=dict(splits),
    )


def statistics_table(measured: Statistics, printed: PrintedStatistics | None = None) -> str:
    """Put the numbers beside those that the papers print, as text."""
    rows = []
    for name, title, form in _ROWS:
        if name != "classes" or measured.classes or printed is not None:
            values = [getattr(numbers, name) for numbers in (measured, printed) if numbers is not None]
            rows.append([title, *(format(value, form).removesuffix(".0") for value in values)])
    return markdown_table(["", "here", *(["papers"] if printed else [])], rows)
