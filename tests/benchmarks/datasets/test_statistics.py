from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from benchmarks.datasets import PrintedStatistics, statistics, statistics_table
from simlte_st.data import Document

DOCUMENTS = [
    Document("1", "one two three", "b", "train"),
    Document("2", " one\n\ntwo ", "a", "train"),
    Document("3", "one-word", "a", "test"),
    Document("4", "a b c d e f", None),
]


def of(documents: list[Document]) -> Any:
    return SimpleNamespace(documents=lambda: iter(documents))


def test_by_hand() -> None:
    found = statistics(of(DOCUMENTS))
    assert found.documents == 4
    assert found.classes == 2
    assert found.words_mean == 3.0  # (3 + 2 + 1 + 6) / 4
    assert found.words_median == 2.5
    assert found.words_max == 6
    assert found.unlabelled == 1
    assert found.labels == {"a": 2, "b": 1}
    assert found.splits == {"train": 2, "test": 1}


def test_the_table() -> None:
    both = statistics_table(statistics(of(DOCUMENTS)), PrintedStatistics(8_558_957, 15, 467, 299, 33_936))
    assert both.split("\n") == [
        "|                | here |    papers |",
        "|----------------|-----:|----------:|",
        "| documents      |    4 | 8,558,957 |",
        "| classes        |    2 |        15 |",
        "| words, mean    |    3 |       467 |",
        "| words, median  |  2.5 |       299 |",
        "| words, longest |    6 |    33,936 |",
    ]
    alone = statistics_table(statistics(of(DOCUMENTS[:1]))).split("\n")
    assert alone[2].split() == ["|", "documents", "|", "1", "|"]
