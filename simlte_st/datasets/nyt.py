"""New York Times Annotated Corpus (Sandhaus, 2008): articles under five sections. Licensed, so nothing can fetch it."""

from __future__ import annotations

from collections.abc import Sequence

from simlte_st.datasets.card import Card, PrintedStatistics
from simlte_st.datasets.shapes import Shape
from simlte_st.datasets.textset import TextSet


def shapes() -> Sequence[Shape]:
    """Give the shape of the 13,081 articles as weakly supervised classification hands them on: sentence and label."""
    return (Shape(("sentence",), "label"),)


SET = TextSet(
    Card(
        name="nyt",
        title="New York Times Annotated Corpus",
        home="https://catalog.ldc.upenn.edu/LDC2008T19",
        licence="LDC User Agreement; not free, may not be passed on",
        citation="Evan Sandhaus. The New York Times Annotated Corpus. LDC2008T19, 2008.",
        forms=(
            "a .jsonl, .parquet or .csv file of the articles with the columns text and label (or sentence and label, "
            "or others named with text_column= and label_column=)",
        ),
        printed=PrintedStatistics(13_081, 5, 650, 683, 5_503),
        notes=(
            "The papers do not say how they chose 13,081 articles in 5 classes. They may be the coarse NYT data of "
            "Mekala and Shang (ACL 2020, https://github.com/dheeraj7596/ConWea), whose df.pkl has the columns sentence "
            "and label: write it as parquet first.",
        ),
    ),
    shapes,
)
