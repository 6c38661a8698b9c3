"""Data sets of the bank: training documents, and held-out ones with labels or links."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from benchmarks.datasets import SETS, load_benchmark
from benchmarks.papers.link_pairs import number_links
from simlte_st.data.document import Document, text_key
from simlte_st.data.documents import list_documents, read_documents
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.evaluation.splits import TEST, TRAIN, sample_rows, stratified_split
from simlte_st.models.names import PACKAGED_BASE

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

SKEWED = 900
"""Documents of a skewed sample at most, before it is divided: two thirds are of the largest class."""


@dataclass(frozen=True)
class Sample:
    """Which documents of a data set make a set of the bank.

    Attributes:
        data: Name of the data set.
        file: Its file; empty for one that comes from a package.
        words: First words of a document that are taken; None for all.
        skewed: Whether two thirds of the documents are of the largest class.
        train: Documents to train on at most; None for as many as the command says.
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
"""Every set of the bank by name."""


def shown_name(name: str, base: str) -> str:
    """Name a set on the pages: with the base, where it is another one than the package's."""
    return name if base == PACKAGED_BASE else f"{name}, {Path(base).name}"


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
    """Load those that are there."""
    for name in names:
        sample = SAMPLES[name]
        path = shared / sample.file if sample.file else None
        try:
            yield replace(load_set(sample.data, path, sample.train or train, held, sample), name=name)
        except (DataError, MissingExtraError, OSError) as error:
            print(f"Skipped {name}: {error}")


def load_set(name: str, path: Path | None, train: int, held: int, sample: Sample | None = None) -> BankSet:
    """Load one: halves, by class where it has classes, copies of a document on one side; then a sample of each half."""
    if path is not None and not path.exists():
        raise DataError(f"there is no {path}.")
    if name == "aan":
        return _papers(path, train, held)
    documents = _labelled(name, path)
    if sample is not None and sample.words is not None:
        documents = [replace(document, text=_first_words(document.text, sample.words)) for document in documents]
    documents = [document for document in documents if len(document.text.split()) >= 20]
    if sample is not None and sample.skewed:
        documents = _skewed(documents)
    return divide(name, documents, train, held)


def divide(name: str, documents: list[Document], train: int, held: int) -> BankSet:
    """Divide labelled documents into halves, copies on one side, and draw a sample of each."""
    _, classes, counts = np.unique([document.label for document in documents], return_inverse=True, return_counts=True)
    usable = np.where(counts[classes] >= FEWEST, classes, -1).astype(np.int32)
    sides = stratified_split(usable, np.array([text_key(document.text) for document in documents]), 0.5, seed=0)
    parts = [[documents[row] for row in np.flatnonzero(sides == side)] for side in (TRAIN, TEST)]
    chosen = [
        [part[row] for row in sample_rows(len(part), most, seed=0)]
        for part, most in zip(parts, (train, held), strict=True)
    ]
    return BankSet(name, chosen[0], chosen[1], [str(document.label) for document in chosen[1]])


def _first_words(text: str, count: int) -> str:
    """Cut a text after some words, white space between them kept."""
    words = list(itertools.islice(re.finditer(r"\S+", text), count))
    return text[: words[-1].end()] if words else ""


def _skewed(documents: list[Document]) -> list[Document]:
    """Draw documents of which two thirds are of the largest class, in the order of a hash of their texts."""
    largest = Counter(document.label for document in documents).most_common(1)[0][0]
    drawn = sorted(documents, key=lambda document: text_key(document.text))
    inside, outside = ([one for one in drawn if (one.label == largest) is wanted] for wanted in (True, False))
    third = min(SKEWED // 3, len(inside) // 2, len(outside))
    return inside[: 2 * third] + outside[:third]


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
