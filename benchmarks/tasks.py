"""The papers' data sets as tasks of mteb, made on this machine instead of loaded from the Hub.

A model gets whole texts and cuts them itself, at its ``max_seq_length`` tokens. Importing this module needs ``mteb``
(extra ``dev``).
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import mteb
import numpy as np
import torch
from datasets import ClassLabel, Dataset, DatasetDict
from mteb import TaskMetadata
from mteb.abstasks import (
    AbsTask,
    AbsTaskClassification,
    AbsTaskClustering,
    AbsTaskPairClassification,
    AbsTaskRetrieval,
    AbsTaskSTS,
)
from sentence_transformers import SentenceTransformer

from benchmarks.datasets import SETS, Benchmark, CitationBenchmark, load_benchmark
from benchmarks.papers.document_similarity import JudgedPairs, load_lee
from simlte_st.errors import DataError

PathLike = str | os.PathLike[str]

LEE = "lee"
"""Name of the Lee corpus, which is not among :data:`~benchmarks.datasets.SETS`."""

_POOL = 800  # training documents of a class: a hundred times what mteb draws of them


class LocalTask(AbsTask):
    """A task of mteb whose data a function makes."""

    kind: ClassVar[str]
    main_score: ClassVar[str]

    def __init__(self, make_data: Callable[[], Any], *, seed: int) -> None:
        self.make_data = make_data
        super().__init__(seed=seed)

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Make the data, unless it is there. The arguments are mteb's and make no difference."""
        if not self.data_loaded:
            self.dataset = self.make_data()
            self.data_loaded = True


class ClassificationTask(LocalTask, AbsTaskClassification):
    """A logistic regression on the embeddings of 8 documents a class, the mean of ten draws; macro-F1."""

    kind, main_score = "Classification", "f1"


class ClusteringTask(LocalTask, AbsTaskClustering):
    """K-means with as many clusters as there are classes, on ten bootstrap samples as large as the data."""

    kind, main_score = "Clustering", "v_measure"
    max_fraction_of_documents_to_embed = None
    max_document_to_embed = None

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Make the data, unless it is there."""
        super().load_data(num_proc, **kwargs)
        assert self.dataset is not None
        self.max_documents_per_cluster = len(self.dataset["test"])


class RetrievalTask(LocalTask, AbsTaskRetrieval):
    """Search of a corpus by the model's similarity; a query's own document is left out."""

    kind, main_score = "Retrieval", "ndcg_at_10"
    ignore_identical_ids = True


class PairClassificationTask(LocalTask, AbsTaskPairClassification):
    """Two texts belong together or not: the average precision of the best of five similarities and distances."""

    kind, main_score = "PairClassification", "max_ap"


class STSTask(LocalTask, AbsTaskSTS):
    """Rank correlation of the model's similarities with given ones, from 0 to 1."""

    kind, main_score = "STS", "cosine_spearman"
    min_score, max_score = 0, 1


@dataclass(frozen=True)
class Draw:
    """What is drawn of a data set.

    Attributes:
        most: Most documents, or pairs, that are tested on; None for all.
        seed: Decides which, and what mteb draws.
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
    """A task over one of the papers' data sets.

    Attributes:
        data_set: Name of the data set.
        task: mteb's class of task, with the metadata.
        make_data: Makes the task's data of the loaded data set.
    """

    data_set: str
    task: type[LocalTask]
    make_data: Callable[[Any, Draw], Any]

    def make(
        self, path: PathLike | None = None, *, most: int | None = None, seed: int = 42, **settings: Any
    ) -> LocalTask:
        """Make the task; the data set is loaded when its data is needed."""

        def load() -> Benchmark | CitationBenchmark | JudgedPairs:
            if self.data_set != LEE:
                return load_benchmark(self.data_set, path, **settings)
            if path is None:
                raise DataError("The Lee corpus is in no package: pass the folder with its two files.")
            return load_lee(path)

        draw = Draw(most, seed)
        return self.task(lambda: self.make_data(load(), draw), seed=seed)


def _classification(found: Benchmark, draw: Draw) -> DatasetDict:
    """The split is the data set's own, else the one that loading it makes."""
    parts = {"train": draw.train(found.train), "test": draw.test(found.test)}
    classes = ClassLabel(names=sorted({label for rows in parts.values() for label in rows["label"][:]}))
    return DatasetDict(
        {part: rows.select_columns(["text", "label"]).cast_column("label", classes) for part, rows in parts.items()}
    )


def _clustering(found: Benchmark, draw: Draw) -> DatasetDict:
    """Documents of the training part are among them: no label was looked at.

    Not so for a model that was trained with the labels; that one is to be given another data set.
    """
    rows = draw.test(found.rows)
    return DatasetDict({"test": Dataset.from_dict({"sentences": rows["text"][:], "labels": rows["label"][:]})})


def _citation_retrieval(found: CitationBenchmark, draw: Draw) -> dict[str, Any]:
    """All links of the data set are used, whatever their split, and all papers: there is nothing to draw."""
    links = found.links
    relevant: dict[str, dict[str, int]] = {}
    for citing, cited in zip(links["citing"][:], links["cited"][:], strict=True):
        if citing != cited:
            relevant.setdefault(citing, {})[cited] = 1
    pool = {cited for papers in relevant.values() for cited in papers}
    papers = [{"id": paper.id, "text": paper.text} for paper in found.documents()]
    split = {
        "queries": Dataset.from_list([paper for paper in papers if paper["id"] in relevant]),
        "corpus": Dataset.from_list([paper for paper in papers if paper["id"] in pool]),
        "relevant_docs": relevant,
        "top_ranked": None,
    }
    return {"default": {"test": split}}


def _citation_pairs(found: CitationBenchmark, draw: Draw) -> DatasetDict:
    """Link or no link, on the test pairs; there is no training.

    The Long Range Arena's accuracy is that of a head trained on the training pairs, which is ``citation_link_probe``'s.
    """
    pairs = draw.test(found.part("test"))
    texts = {paper.id: paper.text for paper in found.documents()}
    first, second = ([texts[paper] for paper in pairs[end][:]] for end in ("citing", "cited"))
    return _pairs(first, second, labels=pairs["label"][:])


def _judged_similarity(found: JudgedPairs, draw: Draw) -> DatasetDict:
    first, second = ([found.texts[row] for row in rows] for rows in found.pairs.T.tolist())
    return _pairs(first, second, score=found.scores.tolist())


def _pairs(first: list[str], second: list[str], **judged: list[Any]) -> DatasetDict:
    return DatasetDict({"test": Dataset.from_dict({"sentence1": first, "sentence2": second, **judged})})


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


def _task(
    data_set: str,
    name: str,
    base: type[LocalTask],
    make_data: Callable[[Any, Draw], Any],
    description: str,
    annotators: str = "derived",
) -> PaperTask:
    if data_set in SETS:
        card = SETS[data_set].card
        description = f"{card.title}: {description} Licence: {card.licence}. Source: {card.citation}"
    metadata = TaskMetadata(
        name=name,
        type=base.kind,
        description=f"{description} Texts are cut by the model, at its max_seq_length.",
        category="t2c" if base.kind in ("Classification", "Clustering") else "t2t",
        main_score=base.main_score,
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        dataset={"path": f"simlte-st/{data_set}", "revision": "local"},
        annotations_creators=annotators,
        dialect=[],
        sample_creation="found",
        **_FIELDS[data_set],
    )
    return PaperTask(data_set, type(name, (base,), {"metadata": metadata}), make_data)


# Data set, beginning of the tasks' names, what is classified, what is clustered.
_LABELLED = (
    ("fakenews", "FakeNewsCorpus", "kind of site from an article.", "articles by kind of site."),
    # mteb's own clustering of these has the subjects only.
    ("20news", "TwentyNewsgroupsByDate", "newsgroup from a whole post.", "whole posts by newsgroup."),
    ("arxiv", "ArxivArchive", "first archive from title and abstract.", "titles with abstracts by first archive."),
    ("nyt", "NYTSection", "section from an article.", "articles by section."),
    ("bbc", "BBCNews", "section from an article.", "articles by section."),
)

TASKS: dict[str, PaperTask] = {
    made.task.metadata.name: made
    for made in (
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
        ),
    )
}
"""The tasks by name. Lee: the similarity of 50 short news texts, all 1,225 pairs, against people's judgement."""


def measure(model: SentenceTransformer, task: LocalTask, batch_size: int) -> dict[str, Any]:
    """Evaluate a model on a task: the main score, those of mteb that are plain numbers, and the seconds."""
    began = time.perf_counter()
    # mteb's cache finds results by the names of task and model, and a model from a folder has no name there.
    result = mteb.evaluate(
        model,
        task,
        cache=None,
        co2_tracker=False,
        encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        show_progress_bar=False,
    ).task_results[0]
    [scores] = result.scores["test"]
    return {
        "main_score": task.metadata.main_score,
        "main": scores["main_score"],
        "scores": {name: value for name, value in scores.items() if isinstance(value, float)},
        "seconds": time.perf_counter() - began,
    }


@contextmanager
def kept_generators() -> Iterator[None]:
    """Put the global generators of Python, NumPy and torch back when the block ends.

    mteb seeds all of them when a task is made and when one is evaluated: a training after it would go on with other
    numbers.
    """
    python, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng():
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)
