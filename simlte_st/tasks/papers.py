"""The papers' data sets as tasks: the registry's, and the Lee corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import new_class
from typing import Any, ClassVar, TypeVar

import numpy as np
from datasets import Dataset, DatasetDict
from mteb import TaskMetadata

from simlte_st.datasets import SETS, Benchmark, CitationBenchmark, load_benchmark
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.document_similarity import load_lee
from simlte_st.tasks.datasets import (
    classification_dataset,
    clustering_dataset,
    pair_dataset,
    retrieval_dataset,
    sts_dataset,
)
from simlte_st.tasks.kinds import (
    ClassificationTask,
    ClusteringTask,
    LocalTask,
    PairClassificationTask,
    RetrievalTask,
    STSTask,
)
from simlte_st.tasks.metadata import Kind, make_metadata

PathLike = str | os.PathLike[str]
Made = TypeVar("Made", bound=LocalTask)

# What mteb asks beside what a data set's card says.
_FIELDS: dict[str, dict[str, Any]] = {
    "fakenews": {"license": "apache-2.0", "domains": ["News", "Written"], "date": ("2017-01-01", "2018-02-13")},
    "20news": {"license": "not specified", "domains": ["News", "Web", "Written"], "date": ("1993-01-01", "1993-12-31")},
    "arxiv": {"license": "cc0-1.0", "domains": ["Academic", "Written"], "date": ("1986-01-01", "2022-12-31")},
    "nyt": {"license": "https://catalog.ldc.upenn.edu/LDC2008T19", "domains": ["News", "Written"], "is_public": False},
    "bbc": {"license": "not specified", "domains": ["News", "Written"], "date": ("2004-01-01", "2005-12-31")},
    "aan": {"license": "not specified", "domains": ["Academic", "Written"]},
}


def _metadata(benchmark: str, name: str, kind: Kind, description: str) -> TaskMetadata:
    card = SETS[benchmark].card
    return make_metadata(
        name,
        kind,
        f"{card.title}: {description} Licence: {card.licence}. Source: {card.citation}",
        source=f"simlte-st/{benchmark}",
        annotations_creators="derived",
        dialect=[],
        sample_creation="found",
        **_FIELDS[benchmark],
    )


class BenchmarkTask(LocalTask):
    """A task over a data set that :func:`~simlte_st.datasets.load_benchmark` loads.

    Args:
        path: Where the data set is; None for an installed package or the Hub.
        seed: Decides what is drawn here and by mteb. The split of a data set that has none is decided by
            ``settings={"seed": ...}``.
        max_documents: Most documents that are embedded as a test, drawn at random, as mteb's own tasks do; None for
            all.
        settings: Further arguments of ``load_benchmark``.

    Attributes:
        benchmark: Name of the data set.
    """

    benchmark: ClassVar[str]

    def __init__(
        self,
        path: PathLike | None = None,
        *,
        seed: int = 42,
        max_documents: int | None = 2048,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        if max_documents is not None and max_documents < 2:
            raise ConfigurationError(f"max_documents must be at least 2, or None for all, not {max_documents}.")
        super().__init__(seed=seed)
        self.path = path
        self.max_documents = max_documents
        self.settings = dict(settings or {})

    def labelled(self) -> Benchmark:
        """Load documents with classes."""
        found = load_benchmark(self.benchmark, self.path, **self.settings)
        assert isinstance(found, Benchmark)
        return found

    def linked(self) -> CitationBenchmark:
        """Load papers with citation links."""
        found = load_benchmark(self.benchmark, self.path, **self.settings)
        assert isinstance(found, CitationBenchmark)
        return found

    def draw(self, rows: Dataset) -> Dataset:
        """Draw ``max_documents`` of the rows that have a class, in their order."""
        there = np.flatnonzero([label is not None for label in rows["label"][:]])
        if self.max_documents is not None and len(there) > self.max_documents:
            generator = np.random.default_rng(self.seed)
            there = np.sort(generator.choice(there, self.max_documents, replace=False))
        return rows.select(there)


class BenchmarkClassificationTask(BenchmarkTask, ClassificationTask):
    """Few-shot classification; see :class:`ClassificationTask` and :class:`BenchmarkTask`.

    The split is the data set's own, else the registry's. Of a large training part, at most 100 times
    ``samples_per_label`` documents a class are kept: draws of a few do not tell them from all.
    """

    def make_data(self) -> DatasetDict:
        """Load the data set and draw from it."""
        found = self.labelled()
        train, test = self._pool(found.train), self.draw(found.test)
        return classification_dataset(train["text"][:], train["label"][:], test["text"][:], test["label"][:])

    def _pool(self, rows: Dataset) -> Dataset:
        most = 100 * self.samples_per_label
        labels = np.array(rows["label"][:], dtype=object)
        generator = np.random.default_rng(self.seed)
        chosen = []
        for label in sorted({label for label in labels if label is not None}):
            members = np.flatnonzero(labels == label)
            chosen.append(generator.choice(members, most, replace=False) if len(members) > most else members)
        if not chosen:
            raise DataError(f"The training part of {self.benchmark!r} has no documents with a class.")
        return rows.select(np.sort(np.concatenate(chosen)))


class BenchmarkClusteringTask(BenchmarkTask, ClusteringTask):
    """Clustering; see :class:`ClusteringTask` and :class:`BenchmarkTask`.

    Documents are drawn from all of the data set, its training part included: no label was looked at. Not so for a
    model that was trained with the labels; that one is to be given another data set.
    """

    def make_data(self) -> DatasetDict:
        """Load the data set and draw from it."""
        rows = self.draw(self.labelled().rows)
        return clustering_dataset(rows["text"][:], rows["label"][:])


def _document_tasks(
    benchmark: str, name: str, classification: str, clustering: str
) -> tuple[type[BenchmarkClassificationTask], type[BenchmarkClusteringTask]]:
    """Make the two classes of a data set with labels, ``{name}Classification`` and ``{name}Clustering``.

    They are assigned to these names, under which pickle finds them.
    """

    def make(base: type[Made], kind: Kind, description: str) -> type[Made]:
        body = {
            "__doc__": f"``{benchmark}``: {description}",
            "__module__": __name__,
            "benchmark": benchmark,
            "metadata": _metadata(benchmark, f"{name}{kind}", kind, description),
        }
        made: type[Made] = new_class(f"{name}{kind}", (base,), exec_body=lambda namespace: namespace.update(body))
        return made

    return (
        make(BenchmarkClassificationTask, "Classification", classification),
        make(BenchmarkClusteringTask, "Clustering", clustering),
    )


FakeNewsCorpusClassification, FakeNewsCorpusClustering = _document_tasks(
    "fakenews", "FakeNewsCorpus", "kind of site from an article.", "articles by kind of site."
)
# mteb's own clustering of these has the subjects only.
TwentyNewsgroupsByDateClassification, TwentyNewsgroupsByDateClustering = _document_tasks(
    "20news", "TwentyNewsgroupsByDate", "newsgroup from a whole post.", "whole posts by newsgroup."
)
ArxivArchiveClassification, ArxivArchiveClustering = _document_tasks(
    "arxiv",
    "ArxivArchive",
    "first archive from title and abstract.",
    "titles with abstracts by first archive.",
)
# The corpus is licensed: path is needed.
NYTSectionClassification, NYTSectionClustering = _document_tasks(
    "nyt", "NYTSection", "section from an article.", "articles by section."
)
BBCNewsClassification, BBCNewsClustering = _document_tasks(
    "bbc", "BBCNews", "section from an article.", "articles by section."
)


class AANCitationRetrieval(BenchmarkTask, RetrievalTask):
    """``aan``: a paper searches those that it cites among all that are cited, itself left out.

    All links of the data set are used, whatever their split, and all papers, whatever ``max_documents`` is.
    """

    benchmark = "aan"
    ignore_identical_ids = True
    metadata = _metadata(benchmark, "AANCitationRetrieval", "Retrieval", "cited papers from the citing paper.")

    def make_data(self) -> dict[str, Any]:
        """Load the papers, and turn the links into judgements."""
        found = self.linked()
        links = found.links
        relevant: dict[str, list[str]] = {}
        for citing, cited in zip(links["citing"][:], links["cited"][:], strict=True):
            if citing != cited:
                relevant.setdefault(citing, []).append(cited)
        pool = {cited for papers in relevant.values() for cited in papers}
        queries: dict[str, str] = {}
        corpus: dict[str, str] = {}
        for paper in found.documents():
            if paper.id in relevant:
                queries[paper.id] = paper.text
            if paper.id in pool:
                corpus[paper.id] = paper.text
        return retrieval_dataset(queries, corpus, relevant, leave_out_own=True)


class AANCitationPairClassification(BenchmarkTask, PairClassificationTask):
    """``aan``: link or no link, on the test pairs.

    There is no training: similarities are ranked (see :class:`PairClassificationTask`). The Long Range Arena's
    accuracy is that of a head trained on the training pairs, which is ``citation_link_probe``'s. ``max_documents``
    bounds the pairs.
    """

    benchmark = "aan"
    metadata = _metadata(
        benchmark, "AANCitationPairClassification", "PairClassification", "does the first paper cite the second?"
    )

    def make_data(self) -> DatasetDict:
        """Load papers and test pairs."""
        found = self.linked()
        pairs = self.draw(found.part("test"))
        ends = [pairs["citing"][:], pairs["cited"][:]]
        wanted = {*ends[0], *ends[1]}
        texts = {paper.id: paper.text for paper in found.documents() if paper.id in wanted}
        first, second = ([texts[paper] for paper in papers] for papers in ends)
        return pair_dataset(first, second, pairs["label"][:])


class LeeDocumentSTS(STSTask):
    """The Lee corpus: similarity of 50 short news texts, all 1,225 pairs, against people's judgement.

    Args:
        path: Folder of ``lee_documents.parquet`` and ``lee_similarities_50x50.json``; see
            :func:`~simlte_st.evaluation.document_similarity.load_lee`.
        seed: Of mteb; nothing is drawn.
    """

    min_score, max_score = 0, 1
    metadata = make_metadata(
        "LeeDocumentSTS",
        "STS",
        "Lee corpus: similarity of 50 news texts, judged by people. Source: Lee, Pincombe and Welsh. An Empirical "
        "Evaluation of Models of Text Document Similarity. CogSci 2005.",
        source="simlte-st/lee",
        domains=["News", "Written"],
        license="not specified",
        annotations_creators="human-annotated",
        dialect=[],
        sample_creation="found",
    )

    def __init__(self, path: PathLike | None = None, *, seed: int = 42) -> None:
        super().__init__(seed=seed)
        self.path = path

    def make_data(self) -> DatasetDict:
        """Load texts and judgements."""
        if self.path is None:
            raise DataError("The Lee corpus is in no package: pass path=, the folder with its two files.")
        judged = load_lee(self.path)
        first, second = ([judged.texts[row] for row in rows] for rows in judged.pairs.T.tolist())
        return sts_dataset(first, second, judged.scores.tolist())


TASKS: dict[str, type[BenchmarkTask] | type[LeeDocumentSTS]] = {
    task.metadata.name: task
    for task in (
        FakeNewsCorpusClassification,
        TwentyNewsgroupsByDateClassification,
        ArxivArchiveClassification,
        NYTSectionClassification,
        BBCNewsClassification,
        FakeNewsCorpusClustering,
        TwentyNewsgroupsByDateClustering,
        ArxivArchiveClustering,
        NYTSectionClustering,
        BBCNewsClustering,
        AANCitationRetrieval,
        AANCitationPairClassification,
        LeeDocumentSTS,
    )
}
"""The tasks by name."""
