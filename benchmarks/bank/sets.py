"""Data sets of the bank: training documents, and held-out documents with labels or links."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.datasets import SETS, load_benchmark, load_citations
from benchmarks.datasets.sets import SHARED
from simlte_st.data import Document, read_documents
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation.splits import TEST, TRAIN, sample_rows, stratified_split
from simlte_st.models.names import PACKAGED_BASE
from simlte_st.reading.document import text_key
from simlte_st.reading.documents import list_documents

FILES = {name: SHARED[name] for name in ("20news", "arxiv", "bbc", "brown", "sotu", "fakenews", "aan")} | {"bbc": ""}
"""The file of each set in the shared folder; BBC News comes from a package."""

MIN_PER_CLASS = 6
"""Minimum number of documents per class; smaller classes are dropped."""

SKEWED = 900
"""Maximum number of documents in a skewed sample, before it is split."""


@dataclass(frozen=True)
class Sample:
    """A sample of a data set.

    Attributes:
        data: Name of the data set.
        file: Its file; empty if it comes from a package.
        words: Number of first words to keep of each document; None for all.
        skewed: Draw two thirds of the documents from the largest class.
        train: Maximum number of training documents; None for the command's default.
    """

    data: str
    file: str
    words: int | None = None
    skewed: bool = False
    train: int | None = None


SAMPLES: dict[str, Sample] = {name: Sample(name, file) for name, file in FILES.items()}
SAMPLES |= {name: Sample(name, f"{name}.parquet") for name in ("ag_news", "movie_reviews")}
SAMPLES |= {f"{name}, skewed": replace(SAMPLES[name], skewed=True) for name in ("20news", "arxiv", "bbc", "ag_news")}
SAMPLES |= {f"20news, {words} words": replace(SAMPLES["20news"], words=words) for words in (30, 100, 200)}
SAMPLES |= {f"20news, {train} documents": replace(SAMPLES["20news"], train=train) for train in (150, 2000)}
"""All sets of the bank by name."""


def display_name(name: str, base: str) -> str:
    """Return a set's name for tables, with the base unless it is the packaged one."""
    return name if base == PACKAGED_BASE else f"{name}, {Path(base).name}"


@dataclass(frozen=True)
class BankSet:
    """A sampled data set, split in two.

    Attributes:
        name: Name of the set.
        train: Training documents, without labels.
        held: Held-out documents.
        labels: The classes of ``held``; empty if the set has links.
        links: Citations within ``held`` as pairs of row numbers, shape ``[links, 2]``.
    """

    name: str
    train: list[Document]
    held: list[Document]
    labels: list[str] = field(default_factory=list)
    links: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def load_sets(shared: Path, names: list[str], train: int, held: int) -> Iterator[BankSet]:
    """Load the sets whose files exist."""
    for name in names:
        sample = SAMPLES[name]
        path = shared / sample.file if sample.file else None
        try:
            yield replace(load_set(sample.data, path, sample.train or train, held, sample), name=name)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}")


def load_set(name: str, path: Path | None, train: int, held: int, sample: Sample | None = None) -> BankSet:
    """Load a set and :func:`divide` it, or load AAN."""
    if path is not None and not path.exists():
        raise DataError(f"there is no file {path}.")
    if name == "aan":
        return _load_papers(path, train, held)
    documents = _load_labelled(name, path)
    if sample is not None and sample.words is not None:
        documents = [replace(document, text=_first_words(document.text, sample.words)) for document in documents]
    documents = [document for document in documents if len(document.text.split()) >= 20]
    if sample is not None and sample.skewed:
        documents = _skew_classes(documents)
    return divide(name, documents, train, held)


def divide(name: str, documents: list[Document], train: int, held: int) -> BankSet:
    """Split labelled documents in two, stratified by class, with duplicates on one side; sample each half."""
    _, classes, counts = np.unique([document.label for document in documents], return_inverse=True, return_counts=True)
    usable = np.where(counts[classes] >= MIN_PER_CLASS, classes, -1).astype(np.int32)
    sides = stratified_split(usable, np.array([text_key(document.text) for document in documents]), 0.5, seed=0)
    parts = [[documents[row] for row in np.flatnonzero(sides == side)] for side in (TRAIN, TEST)]
    train_sample, held_sample = (
        [part[row] for row in sample_rows(len(part), limit, seed=0)]
        for part, limit in zip(parts, (train, held), strict=True)
    )
    return BankSet(name, train_sample, held_sample, [str(document.label) for document in held_sample])


def _first_words(text: str, count: int) -> str:
    """Truncate a text after ``count`` words, preserving white space."""
    words = list(itertools.islice(re.finditer(r"\S+", text), count))
    return text[: words[-1].end()] if words else ""


def _skew_classes(documents: list[Document]) -> list[Document]:
    """Draw two thirds from the largest class and one third from the others, in the order of the texts' hashes."""
    largest = Counter(document.label for document in documents).most_common(1)[0][0]
    shuffled = sorted(documents, key=lambda document: text_key(document.text))
    frequent = [document for document in shuffled if document.label == largest]
    rare = [document for document in shuffled if document.label != largest]
    third = min(SKEWED // 3, len(frequent) // 2, len(rare))
    return frequent[: 2 * third] + rare[:third]


def _load_labelled(name: str, path: Path | None) -> list[Document]:
    if name in SETS:
        rows = load_benchmark(name, path).rows
        columns = zip(rows["text"], rows["label"], strict=True)
        return [Document(f"{name} {row}", text, label=label) for row, (text, label) in enumerate(columns) if label]
    return [document for document in list_documents(read_documents(path, label_column="label")) if document.label]


def _load_papers(path: Path | None, train: int, held: int) -> BankSet:
    """Load AAN and hold out the papers with the most citations."""
    benchmark = load_citations(path)
    ids, texts, links = list(benchmark.papers["id"]), benchmark.papers["text"], benchmark.links
    count = np.bincount(links.ravel(), minlength=len(ids))
    held_rows = sorted(np.argsort(-count, kind="stable")[: min(held, len(ids) // 2)].tolist())
    positions = {row: number for number, row in enumerate(held_rows)}
    links_inside = [(positions[a], positions[b]) for a, b in links.tolist() if a in positions and b in positions]
    unheld = [row for row in range(len(ids)) if row not in positions]
    train_rows = [unheld[row] for row in sample_rows(len(unheld), train, seed=0)]
    train_part, held_part = ([Document(ids[row], texts[row]) for row in rows] for rows in (train_rows, held_rows))
    return BankSet("aan", train_part, held_part, links=np.asarray(links_inside, dtype=np.int64))
