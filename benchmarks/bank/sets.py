"""The data sets of the bank: documents to train on, and held-out ones with labels or links that judge an encoder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.datasets import SETS, load_benchmark
from simlte_st.data.document import Document, text_key
from simlte_st.data.documents import list_documents, read_documents
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation import number_links
from simlte_st.evaluation.splits import TEST, TRAIN, sample_rows, stratified_split

FILES = {
    "20news": "20newsgroups.parquet",
    "arxiv": "arxiv_abstracts.parquet",
    "bbc": "",
    "brown": "brown_genres.parquet",
    "sotu": "sotu.parquet",
    "fakenews": "fakenewscorpus_sample.parquet",
    "aan": "aan_papers.parquet",
}
"""The file of each set in a folder of all of them; BBC News comes from its package."""

FEWEST = 6
"""Documents of a class; smaller ones are left out."""


@dataclass(frozen=True)
class BankSet:
    """Documents of one data set.

    Attributes:
        name: Its name.
        train: Documents that encoders are trained on, without labels.
        held: Documents that they are judged on.
        labels: The class of each of ``held``; empty where it has links.
        links: Which of ``held`` cites which, as pairs of their numbers, shape ``[links, 2]``.
    """

    name: str
    train: list[Document]
    held: list[Document]
    labels: list[str] = field(default_factory=list)
    links: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))


def load_sets(shared: Path, names: list[str], train: int, held: int) -> Iterator[BankSet]:
    """Load those that are there.

    Args:
        shared: The folder.
        names: Of :data:`FILES`.
        train: Most documents to train on.
        held: Most documents to judge on; of both, no more than half of what there is.
    """
    for name in names:
        try:
            yield load_set(name, shared / FILES[name] if FILES[name] else None, train, held)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}")


def load_set(name: str, path: Path | None, train: int, held: int) -> BankSet:
    """Load one: halves, by class where it has classes, copies of a document on one side; then a sample of each half."""
    if path is not None and not path.exists():
        raise DataError(f"there is no {path}.")
    if name == "aan":
        return _papers(path, train, held)
    documents = [document for document in _labelled(name, path) if len(document.text.split()) >= 20]
    _, classes, counts = np.unique([document.label for document in documents], return_inverse=True, return_counts=True)
    usable = np.where(counts[classes] >= FEWEST, classes, -1).astype(np.int32)
    sides = stratified_split(usable, np.array([text_key(document.text) for document in documents]), 0.5, seed=0)
    parts = [[documents[row] for row in np.flatnonzero(sides == side)] for side in (TRAIN, TEST)]
    chosen = [
        [part[row] for row in sample_rows(len(part), most, seed=0)]
        for part, most in zip(parts, (train, held), strict=True)
    ]
    return BankSet(name, chosen[0], chosen[1], [str(document.label) for document in chosen[1]])


def _labelled(name: str, path: Path | None) -> list[Document]:
    if name in SETS:
        rows = load_benchmark(name, path).rows
        columns = zip(rows["text"], rows["label"], strict=True)
        return [Document(f"{name} {row}", text, label=label) for row, (text, label) in enumerate(columns) if label]
    return [document for document in list_documents(read_documents(path, label_column="label")) if document.label]


def _papers(path: Path | None, train: int, held: int) -> BankSet:
    """Papers: those held out are the ones that cite or are cited most among themselves."""
    found = load_benchmark("aan", path)
    ids = list(found.papers["id"])
    links = number_links(ids, list(zip(found.links["citing"], found.links["cited"], strict=True)))
    count = np.bincount(links.ravel(), minlength=len(ids))
    kept = sorted(np.argsort(-count, kind="stable")[: min(held, len(ids) // 2)].tolist())
    place = {row: number for number, row in enumerate(kept)}
    inside = [(place[a], place[b]) for a, b in links.tolist() if a in place and b in place]
    others = [row for row in range(len(ids)) if row not in place]
    texts = found.papers["text"]
    return BankSet(
        "aan",
        [Document(ids[others[row]], texts[others[row]]) for row in sample_rows(len(others), train, seed=0)],
        [Document(ids[row], texts[row]) for row in kept],
        links=np.asarray(inside, dtype=np.int64),
    )
