"""The five kinds of mteb task, with data made on this machine instead of loaded from the Hub, and their metadata."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from mteb import TaskMetadata
from mteb.abstasks import (
    AbsTask,
    AbsTaskClassification,
    AbsTaskClustering,
    AbsTaskPairClassification,
    AbsTaskRetrieval,
    AbsTaskSTS,
)

from simlte_st.errors import ConfigurationError
from simlte_st.tasks.generators import kept_generators

Kind = Literal["Classification", "Clustering", "Retrieval", "PairClassification", "STS"]

MAIN_SCORES: dict[Kind, str] = {
    "Classification": "f1",
    "Clustering": "v_measure",
    "Retrieval": "ndcg_at_10",
    "PairClassification": "max_ap",
    "STS": "cosine_spearman",
}
"""The score that stands for a task of each kind, as mteb calls it; ``f1`` is macro-averaged."""

CUT = "Texts are cut by the model, at its max_seq_length."

_NAME = re.compile(r"\w[\w .+-]*")
_LANGUAGE = re.compile(r"[a-z]{3}-[A-Z][a-z]{3}")


class LocalTask(AbsTask):
    """A task of mteb whose data a function makes; nothing is asked of the Hub.

    Other than mteb's own tasks, it draws the same numbers each time that it is evaluated, whatever was evaluated
    before, and leaves the process's random generators as they were. The model gets whole texts and cuts them itself,
    without a word, at its ``max_seq_length`` tokens.

    Args:
        metadata: See :func:`make_metadata`.
        make_data: Makes what mteb has in ``dataset`` after loading, in a form of :mod:`simlte_st.tasks.task_data`;
            called when the data is needed. Raises ``DataError`` where it is not there, or cannot be used.
        seed: Decides what mteb draws: few-shot examples, samples to cluster.
        settings: Attributes of mteb's kind of task, such as ``samples_per_label``.
    """

    kind: ClassVar[Kind]

    def __new__(cls, metadata: TaskMetadata | None = None, *arguments: Any, **settings: Any) -> LocalTask:
        """Make the instance of a class of its own, which has the metadata.

        mteb looks for it in the classes of tasks, and takes an instance's own away when it unloads the data.
        """
        own: Any = cls if metadata is None else type(cls)(metadata.name, (cls,), {"metadata": metadata})  # type: ignore[misc]
        made: LocalTask = super().__new__(own)
        return made

    def __init__(
        self, metadata: TaskMetadata, make_data: Callable[[], Any], *, seed: int = 42, **settings: Any
    ) -> None:
        self.make_data = make_data
        vars(self).update(settings)
        with kept_generators():
            super().__init__(seed=seed)

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Make the data, unless it is there. The arguments are mteb's and make no difference."""
        if not self.data_loaded:
            self.dataset = self.make_data()
            self.data_loaded = True

    def evaluate(self, model: Any, split: str = "test", subsets_to_run: list[str] | None = None, **kwargs: Any) -> Any:
        """Evaluate a model that mteb has wrapped; see ``mteb.AbsTask.evaluate``. Users call ``mteb.evaluate``."""
        self.rng_state, self.np_rng = random.Random(self.seed), np.random.default_rng(self.seed)
        with kept_generators():
            return super().evaluate(model, split, subsets_to_run, **kwargs)


class ClassificationTask(LocalTask, AbsTaskClassification):
    """A logistic regression on the embeddings of a few documents a class, ten draws.

    ``samples_per_label`` (8) and ``n_experiments`` (10) are mteb's. Main score: ``f1``, macro-averaged, of the test
    documents, mean of the draws; ``accuracy`` and others are there too.
    """

    kind = "Classification"


class ClusteringTask(LocalTask, AbsTaskClustering):
    """K-means with as many clusters as there are classes, on ten bootstrap samples of the documents.

    A sample is as large as the data, drawn with replacement. Main score: ``v_measure``, mean of the samples.
    """

    kind = "Clustering"
    max_fraction_of_documents_to_embed = None
    max_document_to_embed = None

    def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
        """Make the data, unless it is there."""
        super().load_data(num_proc, **kwargs)
        assert self.dataset is not None
        self.max_documents_per_cluster = len(self.dataset["test"])


class RetrievalTask(LocalTask, AbsTaskRetrieval):
    """Search of a corpus by the model's similarity. Main score: ``ndcg_at_10``.

    mteb keeps the first 1,000 documents of a search: ``mrr_at_1000`` is the whole MRR of smaller corpora.
    """

    kind = "Retrieval"


class PairClassificationTask(LocalTask, AbsTaskPairClassification):
    """Two texts belong together or not: the pairs ranked by similarity. Main score: ``max_ap``.

    ``max_`` is the best of five similarities and distances, and accuracy and F1 are those of the best threshold *on the
    pairs they are measured on*: upper bounds, not what a classifier would reach. Average precision has no threshold.
    A text is encoded again for each pair that it is in.
    """

    kind = "PairClassification"


class STSTask(LocalTask, AbsTaskSTS):
    """Correlation of the model's similarities with given ones. Main score: ``cosine_spearman``.

    A text is encoded again for each pair that it is in.
    """

    kind = "STS"


def make_metadata(
    name: str,
    kind: Kind,
    description: str,
    *,
    source: str,
    revision: str = "local",
    language: str = "eng-Latn",
    **more: Any,
) -> TaskMetadata:
    """Fill in a task's metadata.

    Args:
        name: Name of the task: letters, digits and ``_ . + -`` or blanks; results go to files of that name.
        kind: Its kind.
        description: What it measures, in a sentence or two. That texts are cut is added.
        source: Where the data is from; mteb calls it the path. Nothing is loaded from there.
        revision: Version of the data; mteb adds results of one task to each other only where it is the same.
        language: Of the texts, as mteb writes it: ``eng-Latn``.
        more: Further fields of mteb's ``TaskMetadata``: ``reference``, ``license``, ``domains``, ...

    Raises:
        ConfigurationError: The name cannot be used, the language is written otherwise, or mteb refuses a field.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(f"A task cannot be called {name!r}: use letters, digits, blanks and _ . + -")
    if not _LANGUAGE.fullmatch(language):
        raise ConfigurationError(f"language={language!r}: write language and script as mteb does, such as eng-Latn.")
    try:
        return TaskMetadata(
            name=name,
            type=kind,
            description=f"{description} {CUT}",
            category="t2c" if kind in ("Classification", "Clustering") else "t2t",
            main_score=MAIN_SCORES[kind],
            eval_splits=["test"],
            eval_langs=[language],
            dataset={"path": source, "revision": revision},
            **more,
        )
    except ValueError as error:  # pydantic's errors are ValueErrors
        raise ConfigurationError(f"mteb refuses the metadata of {name!r}: {error}") from error
