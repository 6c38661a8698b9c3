"""What there is to know of a data set before it is loaded (its card), and what loading gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.compute as pc
from datasets import Dataset

from simlte_st.data.document import Document
from simlte_st.data.report import ReadReport
from simlte_st.errors import ConfigurationError

SPLITS = ("train", "validation", "test")
"""The parts of a data set, by the names they have here."""


@dataclass(frozen=True)
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
    words_mean: float
    words_median: float
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

    def where_to_get(self) -> str:
        """Return where the data set is available and how to pass it."""
        return (
            f"{self.title}: get it from {self.home} (licence: {self.licence}) and pass path=: "
            f"{'; or '.join(self.forms)}; or a table (.parquet, .jsonl, .csv) with the columns text and "
            "label, and split and id where it has them."
        )


@dataclass(frozen=True, kw_only=True)
class LoadedSet:
    """What both kinds of loaded data set have.

    Attributes:
        card: Where it comes from, under which licence, and the papers' numbers for it.
        split_origin: Who made the split (and the pairs): the data set, or this package, and how.
        source: Where it was read from.
        report: What came of the reading: rows that were skipped, and why.
        notes: What to know before comparing with the papers.
    """

    card: Card
    split_origin: str
    source: str
    report: ReadReport
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self.card.name


@dataclass(frozen=True, kw_only=True)
class Benchmark(LoadedSet):
    """Labelled documents, memory-mapped from disk.

    Attributes:
        rows: The documents: columns ``id``, ``text``, ``label`` (its name; None where it has none) and ``split``
            (``"train"``, ``"validation"``, ``"test"``; None for neither), all strings.
    """

    rows: Dataset

    def __len__(self) -> int:
        """Count the documents, those without a class or split included."""
        return len(self.rows)

    @property
    def train(self) -> Dataset:
        """The training rows."""
        return self.part("train")

    @property
    def test(self) -> Dataset:
        """The test rows."""
        return self.part("test")

    def part(self, split: str) -> Dataset:
        """Return the rows of a split."""
        return _part(self.rows, split)

    def documents(self) -> Iterator[Document]:
        """Return the documents one by one."""
        return _documents(self.rows)


@dataclass(frozen=True, kw_only=True)
class CitationBenchmark(LoadedSet):
    """Papers and pairs of them, linked by a citation or not; memory-mapped from disk.

    Attributes:
        papers: The papers: columns ``id`` and ``text``.
        pairs: The pairs: columns ``citing`` and ``cited`` (ids of papers), ``label`` (1 for a citation, 0 for none)
            and ``split`` (``"train"``, ``"validation"``, ``"test"``).
    """

    papers: Dataset
    pairs: Dataset

    def __len__(self) -> int:
        """Count the papers."""
        return len(self.papers)

    @property
    def links(self) -> Dataset:
        """The pairs that are citations, for retrieval: a citing paper should find the papers it cites."""
        return _where(self.pairs, "label", 1)

    def part(self, split: str) -> Dataset:
        """Return the pairs of a split."""
        return _part(self.pairs, split)

    def documents(self) -> Iterator[Document]:
        """Return the papers one by one."""
        return _documents(self.papers)


def _where(dataset: Dataset, column: str, value: str | int) -> Dataset:
    """Return the rows in which a column has a value; ``Dataset.filter`` would write them, texts and all, once more."""
    rows = pc.indices_nonzero(pc.equal(dataset.data.column(column), value))
    return dataset.select(rows.to_numpy().astype("int64"))  # datasets stumbles over unsigned ones


def _part(dataset: Dataset, split: str) -> Dataset:
    if split not in SPLITS:
        raise ConfigurationError(f"There is no split {split!r}; the splits are {', '.join(SPLITS)}.")
    return _where(dataset, "split", split)


def _documents(rows: Dataset) -> Iterator[Document]:
    for batch in rows.iter(256):  # row by row takes much longer
        for values in zip(*batch.values(), strict=True):
            yield Document(**dict(zip(batch, values, strict=True)))
