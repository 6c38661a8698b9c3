"""Tasks for mteb (extra ``mteb``): the papers' data sets and a user's own texts.

Every task runs with ``mteb.evaluate``, offline once its data is there. Importing this package without mteb raises
:class:`~simlte_st.errors.MissingExtraError`.

What is special to mteb: the model gets whole texts and cuts them at its ``max_seq_length``, and results are cached by
the names of task and model, which a model from a folder does not have. :func:`evaluate` sets the one and goes without
the other.

Example:
    ::

        from simlte_st.tasks import evaluate, paper_tasks

        tasks = paper_tasks(["bbc", "AANCitationRetrieval"], paths={"aan": "data/aan"})
        for result in evaluate(model, tasks, max_seq_length=4096).task_results:
            print(result.task_name, result.get_score())

:func:`evaluate` takes mteb's own tasks too, whose data comes from the Hub: of long documents, those of LongEmbed
(Zhu et al., 2024) are ``mteb.get_benchmark("LongEmbed").tasks``.
"""

from __future__ import annotations

from simlte_st.extras import require
from simlte_st.tasks.generators import kept_generators

# Before the modules below, which are made of mteb's classes; importing it seeds the process's generators.
with kept_generators():
    require("mteb", "mteb", "the MTEB-style tasks")

from simlte_st.tasks.evaluate import evaluate
from simlte_st.tasks.kinds import (
    MAIN_SCORES,
    ClassificationTask,
    ClusteringTask,
    LocalTask,
    PairClassificationTask,
    RetrievalTask,
    STSTask,
    make_metadata,
)
from simlte_st.tasks.own import (
    classification_task,
    clustering_task,
    pair_classification_task,
    retrieval_task,
    sts_task,
)
from simlte_st.tasks.papers import TASKS, PaperTask, paper_tasks

__all__ = [
    "MAIN_SCORES",
    "TASKS",
    "ClassificationTask",
    "ClusteringTask",
    "LocalTask",
    "PairClassificationTask",
    "PaperTask",
    "RetrievalTask",
    "STSTask",
    "classification_task",
    "clustering_task",
    "evaluate",
    "make_metadata",
    "pair_classification_task",
    "paper_tasks",
    "retrieval_task",
    "sts_task",
]
