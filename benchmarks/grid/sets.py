"""Data sets of the papers' experiments: located in a folder, sampled once, identified by content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from benchmarks.datasets import load_benchmark
from benchmarks.grid.printed import DATA
from benchmarks.grid.systems import SHOTS, Scale
from benchmarks.papers.link_pairs import number_links
from simlte_st.data import read_documents
from simlte_st.evaluation.splits import sample_rows

CITATIONS = "aan"
LONG = ("brown", "sotu")
ALL = (*DATA, CITATIONS, *LONG)
"""Names of the data sets, in the order of the papers' tables."""

SHARED = {
    "fakenews": "fakenewscorpus_sample.parquet",
    "20news": "20newsgroups.parquet",
    "arxiv": "arxiv_abstracts.parquet",
    "nyt": "nyt.parquet",
    "bbc": "bbc.parquet",
    "aan": "aan_papers.parquet",
    "brown": "brown_genres.parquet",
    "sotu": "sotu.parquet",
}
"""The file of each set in the shared folder."""

CORPUS = "enwiki2014.parquet"

MIN_PER_CLASS = {"20news": 50}
"""Minimum documents drawn of a class, if it is not the few-shot number; see :func:`draw_stratified`."""


@dataclass(frozen=True)
class TextSet:
    """Texts to embed.

    Attributes:
        name: Name of the data set.
        rows: Texts in the column ``text``, and classes in ``label`` if there are any.
        learn: Number of training rows, which come first; the others are for testing. 0 for a set without classes.
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
        found: list[str] = self.rows[start:stop]["text"]
        return found

    @cached_property
    def labels(self) -> list[str]:
        """The class of each text."""
        return list(self.rows["label"]) if self.learn else []

    def sample_texts(self, most: int) -> list[str]:
        """Draw at most ``most`` texts, in their original order."""
        return [self.texts(row, row + 1)[0] for row in sample_rows(len(self), most, seed=0)]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Sizes and a digest that identify the texts with their labels and links."""
        texts = (text for start in range(0, len(self), 1000) for text in self.texts(start, start + 1000))
        links = [] if self.links is None else self.links.tolist()
        counts = {"train": self.learn, "test": len(self) - self.learn} if self.learn else {"texts": len(self)}
        return {"name": self.name, **counts, "sha256": hash_columns(texts, self.labels, links)}


def hash_columns(*columns: Any) -> str:
    """Hash columns of strings, sensitive to the boundaries between strings."""
    total = hashlib.sha256()
    for column in columns:
        for text in column:
            encoded = str(text).encode("utf-8", "surrogatepass")
            total.update(len(encoded).to_bytes(8, "big") + encoded)
    return total.hexdigest()[:16]


def load_text_set(name: str, path: Path | None, scale: Scale, cache: Path) -> TextSet:
    """Load a data set at a scale."""
    if name == CITATIONS:
        papers = load_benchmark("aan", path, cache_dir=cache)
        links = zip(papers.links["citing"], papers.links["cited"], strict=True)
        return TextSet(name, papers.papers, links=number_links(list(papers.papers["id"]), links))
    if name in LONG:
        return TextSet(name, Dataset.from_list([{"text": document.text} for document in read_documents(path)]))
    found = load_benchmark(name, path, test_share=scale.test_share, cache_dir=cache)
    parts = []
    for rows, most, least in (
        (found.train, scale.train_documents, MIN_PER_CLASS.get(name, SHOTS.get(name, 5))),
        (found.test, scale.test_documents, 1),
    ):
        usable = [index for index, label in enumerate(rows["label"]) if label is not None]
        labels = rows["label"]
        drawn = draw_stratified([labels[index] for index in usable], most, least)
        parts.append(rows.select([usable[index] for index in drawn]))
    return TextSet(name, concatenate_datasets(parts), learn=len(parts[0]))


def load_text_sets(names: Sequence[str], shared: Path | None, scale: Scale, cache: Path) -> Iterator[TextSet]:
    """Load the data sets found in the shared folder; BBC may also come from an installed package."""
    for name in names:
        path = shared / SHARED[name] if shared else Path(SHARED[name])
        if path.exists() or name == "bbc":
            yield load_text_set(name, path if path.exists() else None, scale, cache)
        else:
            print(f"Skipped {name}: there is no file {path}. See benchmarks/datasets/sets.py.", flush=True)


def draw_stratified(labels: Sequence[str], most: int | None, least: int, seed: int = 0) -> list[int]:
    """Draw up to ``most`` documents, stratified by class.

    Small classes get at least ``least`` documents, or all they have, limited to an equal share of ``most``.
    """
    if most is None or len(labels) <= most:
        return list(range(len(labels)))
    members: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    floor = min(least, most // len(members))
    counts = {label: min(len(members[label]), max(floor, 1)) for label in sorted(members)}
    # The remaining draws go to the class that is furthest below its proportion.
    while sum(counts.values()) < most:
        behind = {
            label: most * len(members[label]) / len(labels) - counts[label]
            for label in counts
            if counts[label] < len(members[label])
        }
        label = max(behind, key=lambda name: behind[name])
        counts[label] += 1
    generator = np.random.default_rng(seed)
    drawn: list[int] = []
    for label, count in counts.items():
        drawn.extend(generator.choice(members[label], count, replace=False).tolist())
    return sorted(drawn)
