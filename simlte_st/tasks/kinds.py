"""The five kinds of mteb task, with data made on this machine instead of loaded from the Hub."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from mteb.abstasks import (
    AbsTask,
    AbsTaskClassification,
    AbsTaskClustering,
    AbsTaskPairClassification,
    AbsTaskRetrieval,
    AbsTaskSTS,
)

from simlte_st.tasks.generators import kept_generators


class LocalTask(AbsTask):
    """A task of mteb whose data :meth:`make_data` makes; nothing is asked of the Hub.

    A subclass of it and of one of mteb's kinds has a ``metadata`` (see
    :func:`~simlte_st.tasks.metadata.make_metadata`) and ``make_data``. Other than mteb's own tasks, it draws the same
    numbers each time that it is evaluated, whatever was evaluated before, and leaves the process's random generators
    as they were.

    The model gets whole texts and cuts them itself, without a word, at its ``max_seq_length`` tokens.

    Args:
        seed: Decides what mteb draws: few-shot examples, samples to cluster.
    """

    def __init__(self, seed: int = 42) -> None:
        with kept_generators():
            super().__init__(seed=seed)

    def make_data(self) -> Any:
        """Make what mteb has in ``dataset`` after loading; :mod:`simlte_st.tasks.datasets` has the forms.

        Raises:
            DataError: The data is not there, or cannot be used.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what its data is.")

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


class ClusteringTask(LocalTask, AbsTaskClustering):
    """K-means with as many clusters as there are classes, on ten bootstrap samples of the documents.

    A sample is as large as the data, drawn with replacement. Main score: ``v_measure``, mean of the samples.
    """

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


class PairClassificationTask(LocalTask, AbsTaskPairClassification):
    """Two texts belong together or not: the pairs ranked by similarity. Main score: ``max_ap``.

    ``max_`` is the best of five similarities and distances, and accuracy and F1 are those of the best threshold *on the
    pairs they are measured on*: upper bounds, not what a classifier would reach. Average precision has no threshold.
    A text is encoded again for each pair that it is in.
    """


class STSTask(LocalTask, AbsTaskSTS):
    """Correlation of the model's similarities with given ones. Main score: ``cosine_spearman``.

    A text is encoded again for each pair that it is in.
    """
