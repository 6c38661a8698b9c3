"""The papers' data sets as tasks: a table of them, and the Lee corpus."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from mteb import TaskMetadata

from simlte_st.datasets import SETS, Benchmark, CitationBenchmark, load_benchmark
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.document_similarity import JudgedPairs, load_lee
from simlte_st.tasks.kinds import (
    ClassificationTask,
    ClusteringTask,
    LocalTask,
    PairClassificationTask,
    RetrievalTask,
    STSTask,
    make_metadata,
)
from simlte_st.tasks.task_data import classification_data, clustering_data, pair_data, retrieval_data, sts_data

PathLike = str | os.PathLike[str]

LEE = "lee"
"""Name of the Lee corpus, which is not among :data:`~simlte_st.datasets.SETS`."""

_POOL = 800  # training documents of a class: a hundred times what mteb draws of them by default

# What mteb asks beside what a data set's card says.
_FIELDS: dict[str, dict[str, Any]] = {
    "fakenews": {"license": "apache-2.0", "domains": ["News", "Written"], "date": ("2017-01-01", "2018-02-13")},
    "20news": {"license": "not specified", "domains": ["News", "Web", "Written"], "date": ("1993-01-01", "1993-12-31")},
    "arxiv": {"license": "cc0-1.0", "domains": ["Academic", "Written"], "date": ("1986-01-01", "2022-12-31")},
    "nyt": {"license": "https://catalog.ldc.upenn.edu/LDC2008T19", "domains": ["News", "Written"], "is_public": False},
    "bbc": {"license": "not specified", "domains": ["News", "Written"], "date": ("2004-01-01", "2005-12-31")},
    "aan": {"license": "not specified", "domains": ["Academic", "Written"]},
    LEE: {"license": "not specified", "domains": ["News", "Written"]},
}


@dataclass(frozen=True)
class Draw:
    """What is drawn of a data set.

    Attributes:
        most: Most documents, or pairs, that are tested on; None for all.
        seed: Decides which.
    """

    most: int | None
    seed: int

    def test(self, rows: Dataset) -> Dataset:
        """Draw of the rows that have a class, in their order."""
        there = np.flatnonzero([label is not None for label in rows["label"][:]])
        if self.most is not None and len(there) > self.most:
            there = np.sort(np.random.default_rng(self.seed).choice(there, self.most, replace=False))
        return rows.select(there)

    def train(self, rows: Dataset) -> Dataset:
        """Draw of each class, as many that draws of a few do not tell them from all."""
        labels = np.array(rows["label"][:], dtype=object)
        generator = np.random.default_rng(self.seed)
        chosen = []
        for label in sorted({label for label in labels if label is not None}):
            members = np.flatnonzero(labels == label)
            chosen.append(generator.choice(members, _POOL, replace=False) if len(members) > _POOL else members)
        if not chosen:
            raise DataError("The training part has no documents with a class.")
        return rows.select(np.sort(np.concatenate(chosen)))


@dataclass(frozen=True)
class PaperTask:
    """A task over one of the papers' data sets, of which :func:`paper_tasks` makes one of mteb.

    Attributes:
        data_set: Name of the data set.
        base: The kind of task.
        metadata: What mteb knows of it.
        make_data: Makes the task's data of the loaded data set.
        settings: Attributes of mteb's kind of task.
    """

    data_set: str
    base: type[LocalTask]
    metadata: TaskMetadata
    make_data: Callable[[Any, Draw], Any]
    settings: Mapping[str, Any] = field(default_factory=dict)

    def make(self, path: PathLike | None, draw: Draw, settings: Mapping[str, Any]) -> LocalTask:
        """Make the task; the data set is loaded when its data is needed."""

        def load() -> Benchmark | CitationBenchmark | JudgedPairs:
            if self.data_set != LEE:
                return load_benchmark(self.data_set, path, **settings)
            if path is None:
                raise DataError("The Lee corpus is in no package: pass path=, the folder with its two files.")
            return load_lee(path)

        return self.base(self.metadata, lambda: self.make_data(load(), draw), seed=draw.seed, **self.settings)


def _classification(found: Benchmark, draw: Draw) -> DatasetDict:
    """The split is the data set's own, else the one that loading it makes."""
    train, test = draw.train(found.train), draw.test(found.test)
    return classification_data(train["text"][:], train["label"][:], test["text"][:], test["label"][:])


def _clustering(found: Benchmark, draw: Draw) -> DatasetDict:
    """Documents of the training part are among them: no label was looked at.

    Not so for a model that was trained with the labels; that one is to be given another data set.
    """
    rows = draw.test(found.rows)
    return clustering_data(rows["text"][:], rows["label"][:])


def _citation_retrieval(found: CitationBenchmark, draw: Draw) -> dict[str, Any]:
    """All links of the data set are used, whatever their split, and all papers: there is nothing to draw."""
    links = found.links
    relevant: dict[str, list[str]] = {}
    for citing, cited in zip(links["citing"][:], links["cited"][:], strict=True):
        if citing != cited:
            relevant.setdefault(citing, []).append(cited)
    texts = {paper.id: paper.text for paper in found.documents()}
    pool = {cited for papers in relevant.values() for cited in papers}
    queries = {paper: text for paper, text in texts.items() if paper in relevant}
    corpus = {paper: text for paper, text in texts.items() if paper in pool}
    return retrieval_data(queries, corpus, relevant, leave_out_own=True)


def _citation_pairs(found: CitationBenchmark, draw: Draw) -> DatasetDict:
    """Link or no link, on the test pairs; there is no training.

    The Long Range Arena's accuracy is that of a head trained on the training pairs, which is ``citation_link_probe``'s.
    """
    pairs = draw.test(found.part("test"))
    ends = [pairs["citing"][:], pairs["cited"][:]]
    wanted = {*ends[0], *ends[1]}
    texts = {paper.id: paper.text for paper in found.documents() if paper.id in wanted}
    first, second = ([texts[paper] for paper in papers] for papers in ends)
    return pair_data(first, second, pairs["label"][:])


def _judged_similarity(found: JudgedPairs, draw: Draw) -> DatasetDict:
    first, second = ([found.texts[row] for row in rows] for rows in found.pairs.T.tolist())
    return sts_data(first, second, found.scores.tolist())


def _task(
    data_set: str,
    name: str,
    base: type[LocalTask],
    make_data: Callable[[Any, Draw], Any],
    description: str,
    annotators: str = "derived",
    **settings: Any,
) -> PaperTask:
    if data_set in SETS:
        card = SETS[data_set].card
        description = f"{card.title}: {description} Licence: {card.licence}. Source: {card.citation}"
    metadata = make_metadata(
        name,
        base.kind,
        description,
        source=f"simlte-st/{data_set}",
        annotations_creators=annotators,
        dialect=[],
        sample_creation="found",
        **_FIELDS[data_set],
    )
    return PaperTask(data_set, base, metadata, make_data, settings)


# Data set, beginning of the tasks' names, what is classified, what is clustered.
_LABELLED = (
    ("fakenews", "FakeNewsCorpus", "kind of site from an article.", "articles by kind of site."),
    # mteb's own clustering of these has the subjects only.
    ("20news", "TwentyNewsgroupsByDate", "newsgroup from a whole post.", "whole posts by newsgroup."),
    ("arxiv", "ArxivArchive", "first archive from title and abstract.", "titles with abstracts by first archive."),
    # The corpus is licensed: its path is needed.
    ("nyt", "NYTSection", "section from an article.", "articles by section."),
    ("bbc", "BBCNews", "section from an article.", "articles by section."),
)

TASKS: dict[str, PaperTask] = {
    task.metadata.name: task
    for task in (
        *(
            _task(data, f"{name}Classification", ClassificationTask, _classification, classified)
            for data, name, classified, _ in _LABELLED
        ),
        *(
            _task(data, f"{name}Clustering", ClusteringTask, _clustering, clustered)
            for data, name, _, clustered in _LABELLED
        ),
        _task(
            "aan",
            "AANCitationRetrieval",
            RetrievalTask,
            _citation_retrieval,
            "cited papers from the citing paper.",
            ignore_identical_ids=True,
        ),
        _task(
            "aan",
            "AANCitationPairClassification",
            PairClassificationTask,
            _citation_pairs,
            "does the first paper cite the second?",
        ),
        _task(
            LEE,
            "LeeDocumentSTS",
            STSTask,
            _judged_similarity,
            "Lee corpus: similarity of 50 news texts, judged by people. Source: Lee, Pincombe and Welsh. An Empirical "
            "Evaluation of Models of Text Document Similarity. CogSci 2005.",
            "human-annotated",
            min_score=0,
            max_score=1,
        ),
    )
}
"""The tasks by name. Lee: the similarity of 50 short news texts, all 1,225 pairs, against people's judgement."""


def paper_tasks(
    names: Sequence[str] | None = None,
    *,
    paths: Mapping[str, PathLike] | None = None,
    max_documents: int | None = 2048,
    seed: int = 42,
    settings: Mapping[str, Any] | None = None,
) -> list[LocalTask]:
    """Make tasks over the papers' data sets. Nothing is loaded yet.

    Args:
        names: Names of tasks (``"BBCNewsClustering"``), of data sets (``"bbc"``, ``"lee"``) or kinds
            (``"Clustering"``); a task that is named twice is made once. None for all of :data:`TASKS`.
        paths: Where data sets are, by name; what is not there is looked for in an installed package or on the Hub. Of
            the Lee corpus the folder of ``lee_documents.parquet`` and ``lee_similarities_50x50.json``.
        max_documents: Most documents (of ``aan``: pairs) that are embedded as a test, drawn at random, as mteb's own
            tasks do; None for all. Retrieval has all papers.
        seed: Decides what is drawn here and by mteb. The split of a data set that has none is decided by
            ``settings={"seed": ...}``.
        settings: Further arguments of :func:`~simlte_st.datasets.load_benchmark`, for each data set but Lee's.

    Raises:
        ConfigurationError: A name that is none of them, or ``max_documents`` below 2.
    """
    if max_documents is not None and max_documents < 2:
        raise ConfigurationError(f"max_documents must be at least 2, or None for all, not {max_documents}.")
    for data in paths or {}:
        if data not in (*SETS, LEE):
            raise ConfigurationError(f"paths: there is no data set {data!r}; there are {', '.join((*SETS, LEE))}.")
    wanted: dict[str, PaperTask] = {}
    for name in TASKS if names is None else names:
        found = {key: task for key, task in TASKS.items() if name in (key, task.data_set, task.base.kind)}
        if not found:
            raise ConfigurationError(f"There is no task, data set or kind {name!r}; the tasks are {', '.join(TASKS)}.")
        wanted |= found
    draw = Draw(max_documents, seed)
    return [task.make((paths or {}).get(task.data_set), draw, settings or {}) for task in wanted.values()]
