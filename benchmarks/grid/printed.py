"""The papers' printed numbers, to show beside ours.

The papers are two versions of SimLTE and DocSplit, its final form under another name (SimLTE_bert is DocSplit_bert).
Both versions of SimLTE print the same tables. DocSplit repeats their rows to the last digit and adds Contriever and
INSTRUCTOR, so one table of each kind suffices, under DocSplit's names. No paper prints a deviation: few-shot scores
are means of 10 draws, full scores are from an unknown number of training runs. Data sets have the names of
:func:`benchmarks.datasets.load_benchmark`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

DATA = ("fakenews", "20news", "arxiv", "nyt", "bbc")
"""The data sets of the tables, in order."""

Rows = Mapping[str, Sequence[tuple[float, float]]]
"""Accuracy and macro-F1 in percent by system, for each data set."""

_MISSING = (np.nan, np.nan)


def _table(rows: Rows) -> pd.DataFrame:
    """Return scores in percent by system, and by metric and data set; scores that are not printed are NaN."""
    columns = pd.MultiIndex.from_product([("accuracy", "macro_f1"), DATA])
    scores = np.array([*rows.values()]).swapaxes(1, 2).reshape(len(rows), -1)
    return pd.DataFrame(scores, index=[*rows], columns=columns)


CLASSIFICATION: Rows = {
    "BERT": ((54.98, 42.17), (62.34, 54.19), (68.52, 20.46), (95.11, 92.65), (91.06, 90.34)),
    "CT-BERT": ((55.19, 42.53), (65.76, 63.37), (71.61, 26.09), (95.69, 91.59), (90.32, 88.87)),
    "SimCSE": ((58.48, 47.46), (74.02, 72.57), (74.46, 30.01), (97.17, 94.69), (94.12, 93.86)),
    "SimCSE_long": ((58.37, 47.56), (73.51, 72.05), (73.16, 29.41), (97.25, 93.83), (94.22, 94.30)),
    "Contriever": ((58.21, 47.25), (75.86, 74.28), (75.35, 28.24), (96.94, 92.71), (94.66, 94.57)),
    "INSTRUCTOR": ((59.26, 47.92), _MISSING, (75.52, 30.46), (97.06, 93.66), (95.19, 95.16)),
    "DocSplit_bert": ((60.04, 50.14), (76.89, 74.85), (76.66, 32.24), (98.20, 96.05), (95.56, 95.58)),
    "LongFormer": ((65.72, 57.66), (73.69, 72.47), (71.66, 25.92), (94.36, 88.39), (96.33, 94.75)),
    "BigBird": ((57.44, 47.87), (70.35, 68.91), (71.58, 25.05), (97.13, 94.33), (94.11, 94.62)),
    "DocSplit_long": ((71.60, 61.66), (75.44, 74.38), (77.68, 33.26), (97.90, 95.43), (96.67, 95.91)),
}
"""All labelled documents: DocSplit, Table 1; SimLTE, Table 2, upper half, without Contriever and INSTRUCTOR."""

FEW_SHOT: Rows = {
    "BERT": ((23.96, 23.73), (19.94, 18.71), (24.08, 10.14), (51.85, 43.90), (54.22, 52.73)),
    "CT-BERT": ((23.71, 23.06), (24.11, 23.53), (27.02, 13.53), (47.23, 36.83), (59.56, 58.95)),
    "SimCSE": ((25.04, 22.68), (42.63, 41.42), (32.61, 17.19), (86.51, 78.41), (83.56, 83.75)),
    "SimCSE_long": ((26.39, 23.26), (48.65, 47.81), (23.42, 12.66), (85.36, 75.90), (84.44, 83.96)),
    "Contriever": ((24.17, 22.35), (54.27, 54.87), (33.19, 17.23), (84.73, 77.62), (77.71, 79.19)),
    "INSTRUCTOR": ((26.11, 23.97), _MISSING, (33.51, 17.12), (32.38, 27.60), (52.67, 48.78)),
    "DocSplit_bert": ((27.79, 24.65), (55.79, 55.43), (35.79, 18.52), (90.52, 83.71), (86.86, 86.31)),
    "LongFormer": ((26.56, 25.12), (44.42, 42.41), (25.04, 13.36), (73.06, 54.87), (84.89, 85.47)),
    "BigBird": ((25.36, 23.28), (39.14, 39.06), (23.62, 10.18), (86.66, 78.96), (79.11, 76.63)),
    "DocSplit_long": ((29.17, 27.13), (51.18, 50.96), (34.33, 18.80), (89.78, 82.88), (86.78, 86.66)),
}
"""5 examples per class (FakeNews and arXiv: 10), means of 10 draws: DocSplit, Table 2; SimLTE, Table 2, lower half."""

TABLES = {"few-shot": _table(FEW_SHOT), "classification": _table(CLASSIFICATION)}
"""The tables by experiment."""

COMPARED: dict[str, tuple[str, str]] = {
    "BERT": ("DocSplit_bert", "SimCSE"),
    "Longformer": ("DocSplit_long", "LongFormer"),
}
"""By architecture, the two systems compared by the printed gains.

SimLTE (abstract, 3.4, 3.5): the mean relative gain in macro-F1 is 12.0% with few labels and 3.9% with all for BERT,
24.3% and 9.4% for Longformer.
"""


def papers_gains(experiment: str, architecture: str = "BERT") -> pd.Series:
    """Compute the relative gain in macro-F1 on each data set from the papers' tables; its mean is their headline."""
    ours, theirs = COMPARED[architecture]
    scores = TABLES[experiment]["macro_f1"]
    return scores.loc[ours] / scores.loc[theirs] - 1


REDUNDANCY = pd.DataFrame(
    {
        "0-50": (1.06, 1.12, 1.12, 1.00, 1.05),
        "51-100": (1.21, 1.18, 1.25, 1.14, 1.14),
        "101-200": (29.0, 1.24, 1.36, 1.21, 1.20),
        "201-300": (1.35, 1.31, 1.49, 1.31, 1.29),
        "more than 300": (1.52, 1.50, 1.62, 1.48, 1.46),
        "all": (1.37, 1.28, 1.34, 1.45, 1.19),
    },
    index=DATA,
).T
"""Redundancy by words of a document and data set: SimLTE, Table 3, the same in both versions.

The 29 for FakeNews is impossible: the mean over all its articles could be 1.37 only if at most 1.2% of them had 101 to
200 words. The authors probably meant 1.29, which lies between the neighbours 1.21 and 1.35.
"""
