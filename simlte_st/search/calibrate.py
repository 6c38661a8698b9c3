"""A threshold from labelled pairs: the lowest cosine at which enough of the links are right."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from simlte_st.config import check_number
from simlte_st.data.config import SourceConfig
from simlte_st.data.formats import json
from simlte_st.data.tables import RawRow, Skip
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.search.query import Query, cosines_of
from simlte_st.search.store import Store

LABEL_COLUMNS = ("seed", "id", "label")


@dataclass(frozen=True, slots=True)
class Calibration:
    """A threshold for links, and its quality on the labelled pairs that it was chosen by.

    Attributes:
        threshold: Lowest cosine of a link.
        wanted: The precision that was aimed at.
        precision: Share of the pairs with at least this cosine that belong together.
        low: Lower end of its 95% interval (Clopper and Pearson, 1934).
        high: Upper end.
        recall: Share of the pairs that belong together that have at least this cosine.
        pairs: Number of labelled pairs.
        taken: Number of pairs with at least this cosine.
    """

    threshold: float
    wanted: float
    precision: float
    low: float
    high: float
    recall: float
    pairs: int
    taken: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """Return it in a sentence."""
        return (
            f"threshold {self.threshold:.4f}: {self.taken:,} of {self.pairs:,} labelled pairs reach it, and "
            f"{self.precision:.1%} of them belong together (95% interval {self.low:.1%} to {self.high:.1%}); "
            f"{self.recall:.1%} of the pairs that belong together reach it"
        )


def fit_threshold(scores: ArrayLike, labels: ArrayLike, wanted: float) -> Calibration:
    """Return the lowest threshold that reaches a precision."""
    from scipy.stats import binomtest  # half a second, which a search need not wait
    from sklearn.metrics import precision_recall_curve

    check_number("precision", wanted, above=0, most=1)
    predicted, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if len(np.unique(truth)) < 2:
        raise DataError(f"All {len(truth)} pairs have the same label: both 0 and 1 are needed.")
    precisions, _, thresholds = precision_recall_curve(truth, predicted)
    precisions = precisions[:-1]  # the last one is of no pair at all
    enough = np.flatnonzero(precisions >= wanted)
    if not len(enough):
        best = int(precisions.argmax())
        raise ConfigurationError(
            f"precision={wanted:g}: no threshold reaches it on these {len(truth)} pairs; the highest precision is "
            f"{precisions[best]:.3f}, at a cosine of {thresholds[best]:.4f}."
        )
    threshold = float(thresholds[enough[0]])
    taken = predicted >= threshold
    right, number = int(truth[taken].sum()), int(taken.sum())
    interval = binomtest(right, number).proportion_ci(0.95, method="exact")
    return Calibration(
        threshold=threshold,
        wanted=wanted,
        precision=right / number,
        low=float(interval.low),
        high=float(interval.high),
        recall=right / int(truth.sum()),
        pairs=len(truth),
        taken=number,
    )


def score_pairs(store: Store, queries: Mapping[str, Query], pairs: Sequence[tuple[str, str, int]]) -> list[float]:
    """Return the cosine of each pair; ``queries`` are by the id or text that a label names first."""
    names: dict[str, list[str]] = {given: [] for given in queries}
    for given, document, _ in pairs:
        names[given].append(document)
    cosines = dict(zip(queries, cosines_of(store, [*queries.values()], [*names.values()]), strict=True))
    return [cosines[given][document][0] for given, document, _ in pairs]


def read_labels(labels: str | os.PathLike[str] | Iterable[Mapping[str, Any]]) -> list[tuple[str, str, int]]:
    """Return labelled pairs: an id or a text, an id, and 0 or 1."""
    rows: Iterable[Any]
    if isinstance(labels, (str, os.PathLike)):
        path, name = Path(labels), os.fspath(labels)
        if not path.is_file() or not {".jsonl", ".ndjson", ".json"} & {suffix.lower() for suffix in path.suffixes}:
            raise DataError(f"Labels are read from a file of JSON lines (.jsonl), not from {name!r}.")
        rows = json.open_lines(path, SourceConfig()).rows(LABEL_COLUMNS, ())
    else:
        name, rows = "the labels", (RawRow(f"row {number:,}", None, row) for number, row in enumerate(labels))
    pairs = []
    for row in rows:
        if isinstance(row, Skip) and row.ignored:
            continue
        values = row.values if isinstance(row, RawRow) else {}
        seed, document, label = (values.get(column) for column in LABEL_COLUMNS)
        if not isinstance(seed, str) or not isinstance(document, str) or label not in (0, 1):
            raise DataError(
                f'{row.where} of {name} is not of the form {{"seed": ID OR TEXT, "id": ID, "label": 0 OR 1}}.'
            )
        pairs.append((seed, document, int(label)))
    if not pairs:
        raise DataError(f"There are no labelled pairs in {name}.")
    return pairs
