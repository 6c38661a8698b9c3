"""What is to be known of a data set before it is there: where it is, its licence, and what the papers say of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrintedStatistics:
    """A data set's line in the tables of the SimLTE paper (Table 1) and the DocSplit paper (Section 4.2).

    Attributes:
        documents: Number of documents.
        classes: Number of classes.
        words_mean: Mean number of words of a document (both papers).
        words_median: Median number of words (SimLTE).
        words_max: Words of the longest document (DocSplit).
    """

    documents: int
    classes: int
    words_mean: int
    words_median: int
    words_max: int


@dataclass(frozen=True, slots=True)
class Card:
    """A data set in words.

    Attributes:
        name: What it is called in this package.
        title: What it is called elsewhere.
        home: Where it comes from.
        licence: Under which terms.
        citation: The paper to cite.
        forms: What can be given as the path, each as it reads after "pass".
        printed: The papers' own numbers; None where they print none.
        notes: What a user should know before comparing with the papers.
    """

    name: str
    title: str
    home: str
    licence: str
    citation: str
    forms: tuple[str, ...]
    printed: PrintedStatistics | None = None
    notes: tuple[str, ...] = ()
