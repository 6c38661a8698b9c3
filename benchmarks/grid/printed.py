"""The papers' printed numbers, to show beside ours.

The papers are two versions of SimLTE and DocSplit, its final form under another name (SimLTE_bert is DocSplit_bert).
Both versions of SimLTE print the same tables. DocSplit repeats their rows to the last digit and adds Contriever and
INSTRUCTOR, so one table of each kind suffices, under DocSplit's names. No paper prints a deviation: few-shot scores
are means of 10 draws, full scores are from an unknown number of training runs. Data sets have the names of
:func:`benchmarks.datasets.load_benchmark`.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.pages import read_printed

DATA = ("fakenews", "20news", "arxiv", "nyt", "bbc")
"""The data sets of the tables, in order."""

TABLES = {
    "few-shot": read_printed("docsplit_few_labels", levels=2),
    "classification": read_printed("docsplit_all_labels", levels=2),
}
"""Scores in percent by experiment: by system, and by metric and data set. Missing scores are not printed.

All labels: DocSplit, Table 1; SimLTE, Table 2, upper half, without Contriever and INSTRUCTOR. Few labels are 5 examples
per class (FakeNews and arXiv: 10), means of 10 draws: DocSplit, Table 2; SimLTE, Table 2, lower half.
"""

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


REDUNDANCY = read_printed("simlte_redundancy")
"""Redundancy by words of a document and data set: SimLTE, Table 3, the same in both versions.

The 29 for FakeNews is impossible: the mean over all its articles could be 1.37 only if at most 1.2% of them had 101 to
200 words. The authors probably meant 1.29, which lies between the neighbours 1.21 and 1.35.
"""
