"""The two kinds of benchmark: documents with classes, and papers with citation links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from datasets import Dataset

from simlte_st.data.document import Document
from simlte_st.data.documents import ReadReport
from simlte_st.datasets.card import Card
from simlte_st.datasets.shapes import SPLITS
from simlte_st.errors import ConfigurationError

_BATCH = 256


def _where(dataset: Dataset, column: str, value: str | int) -> Dataset:
    """Give the rows in which a column has a value; the text is not touched."""
    rows = pc.indices_nonzero(pc.equal(dataset.data.column(column), value))
    return dataset.select(rows.to_numpy().astype("int64"))  # datasets stumbles over unsigned ones


def _part(dataset: Dataset, split: str) -> Dataset:
    if split not in SPLITS:
        raise ConfigurationError(f"There is no split {split!r}; the splits are {', '.join(SPLITS)}.")
    return _where(dataset, "split", split)


def count_values(dataset: Dataset, column: str) -> dict[str, int]:
    """Count the values of a column, in their order; missing ones are left out."""
    counts = pc.value_counts(dataset.data.column(column)).to_pylist()
    return dict(sorted((str(item["values"]), item["counts"]) for item in counts if item["values"] is not None))


@dataclass(frozen=True)
class Benchmark:
    """Labelled documents, memory-mapped from disk.

    Attributes:
        card: Where they come from, under which licence, and the papers' numbers for them.
        rows: The documents: columns ``id``, ``text``, ``label`` (its name; None where it has none) and ``split``
            (``"train"``, ``"validation"``, ``"test"``; None for neither), all strings.
        label_names: The classes that occur, sorted.
        split_origin: Who made the split: the data set, or this package, and how.
        source: Where they were read from.
        report: What came of the reading: rows that were skipped, and why.
        notes: What to know before comparing with the papers.
    """

    card: Card
    rows: Dataset
    label_names: tuple[str, ...]
    split_origin: str
    source: str
    report: ReadReport
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the documents, those without a class or split included."""
        return len(self.rows)

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self.card.name

    @property
    def train(self) -> Dataset:
        """The training rows."""
        return self.part("train")

    @property
    def validation(self) -> Dataset:
        """The validation rows; none in most data sets."""
        return self.part("validation")

    @property
    def test(self) -> Dataset:
        """The test rows."""
        return self.part("test")

    def part(self, split: str) -> Dataset:
        """Give the rows of a split.

        Raises:
            ConfigurationError: There is no split of that name.
        """
        return _part(self.rows, split)

    def documents(self, split: str | None = None) -> Iterator[Document]:
        """Give the documents of a split, or all of them, one by one.

        Raises:
            ConfigurationError: There is no split of that name.
        """
        return _documents(self.rows if split is None else self.part(split))


def _documents(rows: Dataset) -> Iterator[Document]:
    for batch in rows.iter(_BATCH):
        columns: list[list[Any]] = [batch[name] for name in ("id", "text", "label", "split")]
        for id_, text, label, split in zip(*columns, strict=True):
            yield Document(id_, text, label, split)


@dataclass(frozen=True)
class CitationBenchmark:
    """Papers and pairs of them, linked by a citation or not; memory-mapped from disk.

    Attributes:
        card: Where they come from, under which licence.
        papers: The papers: columns ``id`` and ``text``.
        pairs: The pairs: columns ``citing`` and ``cited`` (ids of papers), ``label`` (1 for a citation, 0 for none)
            and ``split`` (``"train"``, ``"validation"``, ``"test"``).
        split_origin: Who made pairs and split: the data set, or this package, and how.
        source: Where they were read from.
        report: What came of the reading.
        notes: What to know before comparing with the papers.
    """

    card: Card
    papers: Dataset
    pairs: Dataset
    split_origin: str
    source: str
    report: ReadReport
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        """Count the papers."""
        return len(self.papers)

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return self.card.name

    @property
    def links(self) -> Dataset:
        """The pairs that are citations, for retrieval: a citing paper should find the papers it cites."""
        return _where(self.pairs, "label", 1)

    def part(self, split: str) -> Dataset:
        """Give the pairs of a split.

        Raises:
            ConfigurationError: There is no split of that name.
        """
        return _part(self.pairs, split)

    def documents(self) -> Iterator[Document]:
        """Give the papers one by one."""
        for batch in self.papers.iter(_BATCH):
            for id_, text in zip(batch["id"], batch["text"], strict=True):
                yield Document(id_, text)
