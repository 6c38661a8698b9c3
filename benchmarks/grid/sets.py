"""Data sets of the papers' experiments, sampled once and identified by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from benchmarks.datasets import load_benchmark, load_citations
from benchmarks.datasets.sets import SHARED
from benchmarks.grid.printed import DATA
from benchmarks.grid.systems import SHOTS, Scale
from simlte_st.data import read_documents
from simlte_st.evaluation.splits import sample_rows

CITATIONS = "aan"
LONG = ("brown", "sotu")
ALL = (*DATA, CITATIONS, *LONG)
"""Names of the data sets, in the order of the papers' tables."""

CORPUS = "enwiki2014.parquet"

MIN_PER_CLASS = {"20news": 50}
"""Minimum number of documents per class in a sample, if not the few-shot number; see :func:`draw_stratified`."""


@dataclass(frozen=True)
class TextSet:
    """Texts to embed.

    Attributes:
        name: Name of the data set.
        rows: Texts in the column ``text``, and classes in ``label`` if there are any.
        learn: Number of training rows, which come first and are followed by test rows; 0 for a set without classes.
        links: Citations between papers as pairs of row numbers, ``[n, 2]``.
    """

    name: str
    rows: Dataset
    learn: int = 0
    links: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the texts of a range of rows."""
        texts: list[str] = self.rows[start:stop]["text"]
        return texts

    @cached_property
    def labels(self) -> list[str]:
        """The class of each text."""
        return list(self.rows["label"]) if self.learn else []

    def sample_texts(self, limit: int) -> list[str]:
        """Sample at most ``limit`` texts, in their original order."""
        return [self.texts(row, row + 1)[0] for row in sample_rows(len(self), limit, seed=0)]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Sizes and digest that identify texts, labels and links."""
        texts = (text for start in range(0, len(self), 1000) for text in self.texts(start, start + 1000))
        links = [] if self.links is None else self.links.tolist()
        counts = {"train": self.learn, "test": len(self) - self.learn} if self.learn else {"texts": len(self)}
        return {"name": self.name, **counts, "sha256": hash_columns(texts, self.labels, links)}


def hash_columns(*columns: Any) -> str:
    """Hash columns of strings and the boundaries between strings."""
    total = hashlib.sha256()
    for column in columns:
        for text in column:
            encoded = str(text).encode("utf-8", "surrogatepass")
            total.update(len(encoded).to_bytes(8, "big") + encoded)
    return total.hexdigest()[:16]


def load_text_set(name: str, path: Path | None, scale: Scale, cache: Path) -> TextSet:
    """Load a data set at a scale."""
    if name == CITATIONS:
        citations = load_citations(path, cache_dir=cache)
        return TextSet(name, citations.papers, links=citations.links)
    if name in LONG:
        return TextSet(name, Dataset.from_list([{"text": document.text} for document in read_documents(path)]))
    benchmark = load_benchmark(name, path, test_share=scale.test_share, cache_dir=cache)
    min_per_class = MIN_PER_CLASS.get(name, SHOTS.get(name, 5))
    train = _sample_rows(benchmark.train, scale.train_documents, min_per_class)
    test = _sample_rows(benchmark.test, scale.test_documents, 1)
    return TextSet(name, concatenate_datasets([train, test]), learn=len(train))


def _sample_rows(rows: Dataset, limit: int | None, min_per_class: int) -> Dataset:
    labelled = [(row, label) for row, label in enumerate(rows["label"]) if label is not None]
    sample = draw_stratified([label for _, label in labelled], limit, min_per_class)
    return rows.select([labelled[index][0] for index in sample])


def load_text_sets(names: Sequence[str], shared: Path | None, scale: Scale, cache: Path) -> Iterator[TextSet]:
    """Load the data sets in the shared folder; BBC may also come from an installed package."""
    for name in names:
        path = shared / SHARED[name] if shared else Path(SHARED[name])
        if path.exists() or name == "bbc":
            yield load_text_set(name, path if path.exists() else None, scale, cache)
        else:
            print(f"Skipped {name}: there is no file {path}. See benchmarks/datasets/sets.py.", flush=True)


def draw_stratified(labels: Sequence[str], limit: int | None, min_per_class: int, seed: int = 0) -> list[int]:
    """Draw row numbers of at most ``limit`` documents, stratified by class.

    Small classes get at least ``min_per_class`` documents, or all of theirs, up to an equal share of ``limit``.
    """
    if limit is None or len(labels) <= limit:
        return list(range(len(labels)))
    members: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    floor = max(1, min(min_per_class, limit // len(members)))
    counts = {label: min(len(members[label]), floor) for label in sorted(members)}
    # Each remaining draw goes to the class furthest below its proportion.
    while sum(counts.values()) < limit:
        unused = [label for label in counts if counts[label] < len(members[label])]
        counts[max(unused, key=lambda label: limit * len(members[label]) / len(labels) - counts[label])] += 1
    generator = np.random.default_rng(seed)
    samples = [generator.choice(members[label], count, replace=False) for label, count in counts.items()]
    return sorted(np.concatenate(samples).tolist())
