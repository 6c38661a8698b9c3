"""How topics follow a column: classes, numbers or dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from simlte_st.data.columns import Column

_CLASSES = 40  # different numbers that are classes; more are cut into parts
_LARGEST = 4  # classes of a topic that are named
_PERIODS = 8


@dataclass(frozen=True, slots=True)
class Follow:
    """How topics follow a column.

    Attributes:
        name: Of the column.
        rows: For each topic its largest classes, or its parts of the range, as HTML.
        nmi: Normalised mutual information with the column's classes: 0 to 1; None for numbers and dates.
        ari: Adjusted Rand index with them: 0 by chance, 1 where both are the same; None likewise.
        left_out: What is said of values that are left out.
    """

    name: str
    rows: Sequence[str]
    nmi: float | None = None
    ari: float | None = None
    left_out: str = ""

    def summary(self) -> str:
        """Say how much topics and classes agree, and what was left out."""
        if self.nmi is None:
            return self.left_out
        return f"Topics and {self.name}: NMI {self.nmi:.2f}, ARI {self.ari:.2f} over the documents that have both."


def follow(column: Column, assigned: NDArray[np.int64], number: int) -> Follow:
    """Lay out a column by topic."""
    different = len({str(value) for value in column.values if value is not None})
    if column.kind in ("number", "date") and different > (_PERIODS if column.kind == "date" else _CLASSES):
        kind = "numbers" if column.kind == "number" else "dates"
        left_out = f"{column.mistakes:,} values of {column.name} are no {kind} and left out." if column.mistakes else ""
        return Follow(column.name, _periods(column, assigned, number), left_out=left_out)
    classes = column.shown()
    both = [row for row in range(len(classes)) if classes[row] and assigned[row] >= 0]
    labels, topics = [classes[row] for row in both], assigned[both]
    rows = []
    for topic in range(number):
        counts = Counter(label for label, own in zip(labels, topics, strict=True) if own == topic)
        rows.append(_bars([(name, count / counts.total()) for name, count in counts.most_common(_LARGEST)]))
    if not both:
        return Follow(column.name, rows, left_out=f"No document of a topic has a value of {column.name}.")
    if len(set(labels)) == len(labels):
        return Follow(column.name, rows, left_out=f"No two documents share a value of {column.name}.")
    scores = normalized_mutual_info_score(labels, topics), adjusted_rand_score(labels, topics)
    return Follow(column.name, rows, float(scores[0]), float(scores[1]))


def _bars(shares: Sequence[tuple[str, float]]) -> str:
    bars = (
        f'<span class="share" style="width: {5 * share:.2f}rem"></span>'
        f'<span><bdi>{escape(name)}</bdi> <span class="number">{share:.0%}</span></span>'
        for name, share in shares
    )
    return f'<div class="follow">{"".join(bars)}</div>'


def _periods(column: Column, assigned: NDArray[np.int64], number: int) -> list[str]:
    numbers = np.array([np.nan if value is None else value for value in column.numbers])
    there = np.isfinite(numbers)
    edges = np.linspace(numbers[there].min(), numbers[there].max(), _PERIODS + 1)
    names = [_end(edge, column.kind) for edge in edges]
    rows = []
    for topic in range(number):
        counts = np.histogram(numbers[there & (assigned == topic)], bins=edges)[0]
        total = max(1, int(counts.sum()))
        rows.append(_bars([(f"{names[part]} …", float(count) / total) for part, count in enumerate(counts)]))
    return rows


def _end(value: float, kind: Any) -> str:
    if kind == "date":
        return datetime.fromtimestamp(value, tz=timezone.utc).date().isoformat()
    return f"{value:.6g}"
