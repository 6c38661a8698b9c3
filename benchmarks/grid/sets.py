"""The data sets of the grid: found in a folder or by path, drawn once, and known by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, concatenate_datasets

from benchmarks.datasets import Benchmark, load_benchmark, statistics
from benchmarks.grid.printed import DATA
from benchmarks.grid.scales import Scale
from benchmarks.grid.work import Work
from benchmarks.papers.document_similarity import JudgedPairs, load_lee
from benchmarks.papers.link_pairs import number_links
from benchmarks.rivals.hub_models import Task
from simlte_st.data import read_documents
from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.evaluation.splits import sample_rows
from simlte_st.files import read_json, write_json

CLASSIFICATION = DATA
CITATIONS = "aan"
SIMILARITY = "lee"
LONG = ("brown", "sotu")
ALL = (*CLASSIFICATION, CITATIONS, SIMILARITY, *LONG)
"""Names of the data sets, in the order of the papers' tables."""

SHARED = {
    "fakenews": "fakenewscorpus_sample.parquet",
    "20news": "20newsgroups.parquet",
    "arxiv": "arxiv_abstracts.parquet",
    "nyt": "nyt.parquet",
    "bbc": "bbc.parquet",
    "aan": "aan_papers.parquet",
    "lee": "lee_documents.parquet",
    "brown": "brown_genres.parquet",
    "sotu": "sotu.parquet",
}
"""What they are called in a folder of all of them."""

CORPUS = "enwiki2014.parquet"


@dataclass(frozen=True)
class Texts:
    """Texts to embed.

    Attributes:
        name: Name of the data set.
        rows: They stand in its column ``text``.
        task: What encoders with prompts are told that they are for.
        notes: What to know of them.
    """

    name: str
    rows: Dataset
    task: Task = "classification"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return some of the texts."""
        found: list[str] = self.rows[start:stop]["text"]
        return found

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what identifies the texts: their number and a digest."""
        return {"name": self.name, "texts": len(self), "sha256": digest(self._parts())}

    def _parts(self) -> Iterator[str]:
        for start in range(0, len(self), 1000):
            yield from self.texts(start, start + 1000)


@dataclass(frozen=True)
class Labelled(Texts):
    """Documents with classes: the first ``learn`` are to learn from, the others to score on; drawn from ``whole``."""

    learn: int = 0
    shots: int = 5
    whole: Benchmark | None = None

    @cached_property
    def labels(self) -> list[str]:
        """The class of each."""
        found: list[str] = list(self.rows["label"])
        return found

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what identifies the documents, their classes and their parts."""
        return {
            "name": self.name,
            "train": self.learn,
            "test": len(self) - self.learn,
            "sha256": digest(self._parts(), self.labels),
        }


@dataclass(frozen=True)
class Papers(Texts):
    """Papers, and which cites which, as numbers of rows."""

    links: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))

    @cached_property
    def links_sha256(self) -> str:
        """Return what identifies the links."""
        return hashlib.sha256(np.ascontiguousarray(self.links, dtype="<i8").tobytes()).hexdigest()[:16]


@dataclass(frozen=True)
class Judged(Texts):
    """Texts whose likeness people judged."""

    pairs: JudgedPairs | None = None


def digest(*columns: Any) -> str:
    """Hash strings, each told from its neighbours."""
    total = hashlib.sha256()
    for column in columns:
        for text in column:
            encoded = str(text).encode("utf-8", "surrogatepass")
            total.update(len(encoded).to_bytes(8, "big") + encoded)
    return total.hexdigest()[:16]


def places(shared: Path | None, given: Mapping[str, Path]) -> dict[str, Path]:
    """Return the place of each data set: as the user says, or in the shared folder under its name for it."""
    unknown = set(given) - set(ALL)
    if unknown:
        raise SystemExit(f"No data set is called {', '.join(sorted(unknown))}; there are: {', '.join(ALL)}.")
    found = {} if shared is None else {name: shared / file for name, file in SHARED.items()}
    return {name: path for name, path in found.items() if path.exists()} | dict(given)


def load(name: str, path: Path | None, scale: Scale, cache: Path) -> Texts:
    """Load a data set at a scale."""
    if name == SIMILARITY:
        if path is None:
            raise DataError("there is no Lee corpus here: give its folder with --path lee=FOLDER.")
        pairs = load_lee(path if path.is_dir() else path.parent)
        return Judged(name, Dataset.from_dict({"text": list(pairs.texts)}), "document", pairs=pairs)
    if name == CITATIONS:
        papers = load_benchmark("aan", path, cache_dir=cache)
        links = papers.links
        numbers = number_links(list(papers.papers["id"]), list(zip(links["citing"], links["cited"], strict=True)))
        return Papers(name, papers.papers, "document", papers.notes, links=numbers)
    if name in LONG:
        if path is None:
            raise DataError(f"there is no {name!r} here: give a table with a column text with --path {name}=FILE.")
        rows = [{"text": document.text} for document in read_documents(path)]
        return Texts(name, Dataset.from_list(rows))
    return load_labelled(name, path, scale, cache)


def load_labelled(name: str, path: Path | None, scale: Scale, cache: Path) -> Labelled:
    """Load labelled documents, as many as the scale has of them."""
    found = load_benchmark(name, path, test_share=scale.test_share, cache_dir=cache)
    assert found.name == name
    parts = []
    shots = scale.shots.get(name, 5)
    for rows, most, least in (
        (found.train, scale.train_documents, max(scale.curve) if name == scale.curve_data else shots),
        (found.test, scale.test_documents, 1),
    ):
        labels = rows["label"]
        usable = [index for index, label in enumerate(labels) if label is not None]
        drawn = draw([labels[index] for index in usable], most, least)
        parts.append(rows.select([usable[index] for index in drawn]))
    notes = (f"split {found.split_origin}", *found.notes)
    return Labelled(name, concatenate_datasets(parts), notes=notes, learn=len(parts[0]), shots=shots, whole=found)


def keep_description(work: Work, data: Texts) -> None:
    """Keep what the page says of a data set: what was drawn of it, its notes, and the statistics of all of it."""
    name = f"sets/{data.name}"
    path = work.path(name)
    if path.exists() and read_json(path)["identity"] == data.identity:
        return
    whole = data.whole if isinstance(data, Labelled) else None
    numbers = None if whole is None else statistics(whole)
    kept = ("documents", "classes", "words_mean", "words_median", "words_max")
    record = {
        "identity": data.identity,
        "notes": list(data.notes),
        "whole": None if numbers is None else {key: getattr(numbers, key) for key in kept},
    }
    write_json(path, record)


def sampled(data: Texts, most: int) -> list[Document]:
    """Draw documents of a data set, in their order; the others are not read."""
    rows = sample_rows(len(data), most, seed=0)
    return [Document(str(row), data.texts(row, row + 1)[0]) for row in rows]


def draw(labels: Sequence[str], most: int | None, least: int, seed: int = 0) -> list[int]:
    """Draw up to ``most`` documents, each class in proportion.

    Small classes are not starved: each gets ``least`` documents, or all it has, as far as equal parts of ``most`` go.
    """
    if most is None or len(labels) <= most:
        return list(range(len(labels)))
    members: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        members.setdefault(label, []).append(index)
    floor = min(least, most // len(members))
    counts = {label: min(len(members[label]), max(floor, 1)) for label in sorted(members)}
    # What is left goes to whoever is furthest below its proportion.
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
