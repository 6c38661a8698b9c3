"""Tasks by name: ours, and those of mteb whose documents are long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mteb
from mteb import AbsTask

from simlte_st.datasets import SETS
from simlte_st.errors import ConfigurationError
from simlte_st.tasks.generators import kept_generators
from simlte_st.tasks.kinds import LocalTask
from simlte_st.tasks.papers import TASKS, BenchmarkTask, PathLike

LONG_EMBED = (
    "LEMBNarrativeQARetrieval",
    "LEMBNeedleRetrieval",
    "LEMBPasskeyRetrieval",
    "LEMBQMSumRetrieval",
    "LEMBSummScreenFDRetrieval",
    "LEMBWikimQARetrieval",
)
"""The tasks of LongEmbed (Zhu et al., 2024), by their names in mteb."""

# Where mteb's statistics have the length of the texts that are embedded; of retrieval, of the documents.
_LENGTHS = ("documents_text_statistics", "text_statistics", "text1_statistics")


def paper_tasks(
    names: Sequence[str] | None = None,
    *,
    paths: Mapping[str, PathLike] | None = None,
    max_documents: int | None = 2048,
    seed: int = 42,
) -> list[LocalTask]:
    """Make tasks over the papers' data sets. Nothing is loaded yet.

    Args:
        names: Names of tasks (``"BBCNewsClustering"``), of data sets (``"bbc"``, ``"lee"``) or kinds
            (``"Clustering"``); a task that is named twice is made once. None for all of :data:`TASKS`.
        paths: Where data sets are, by name; see :class:`BenchmarkTask`.
        max_documents: As :class:`BenchmarkTask` has it.
        seed: Decides what the tasks draw.

    Raises:
        ConfigurationError: A name that is none of them.
    """
    for data in paths or {}:
        if data not in (*SETS, "lee"):
            raise ConfigurationError(f"paths: there is no data set {data!r}; there are {', '.join((*SETS, 'lee'))}.")
    wanted: dict[str, None] = {}
    for name in TASKS if names is None else names:
        found = [task for task in TASKS if name in (task, _data_set(task), TASKS[task].metadata.type)]
        if not found:
            raise ConfigurationError(f"There is no task, data set or kind {name!r}; the tasks are {', '.join(TASKS)}.")
        wanted.update(dict.fromkeys(found))
    made: list[LocalTask] = []
    for name in wanted:
        task, path = TASKS[name], (paths or {}).get(_data_set(name))
        if issubclass(task, BenchmarkTask):
            made.append(task(path, seed=seed, max_documents=max_documents))
        else:
            made.append(task(path, seed=seed))
    return made


def _data_set(task: str) -> str:
    return str(getattr(TASKS[task], "benchmark", "lee"))


def long_document_tasks(names: Sequence[str] | None = None) -> list[AbsTask]:
    """Get ready-made tasks of mteb. Their data comes from the Hub when they are evaluated.

    Args:
        names: Names of tasks of mteb, such as :func:`long_document_task_names` gives. None for
            :data:`LONG_EMBED`.

    Raises:
        ConfigurationError: mteb has no task of that name, or none in English.
    """
    with kept_generators():
        made = []
        for name in LONG_EMBED if names is None else names:
            try:
                made.append(mteb.get_task(name, languages=["eng"]))
            except (KeyError, ValueError) as error:  # no such task; none of its texts are English
                raise ConfigurationError(f"mteb {mteb.__version__} has no English task {name!r}: {error}") from error
        return made


def long_document_task_names(min_characters: int = 5_000) -> dict[str, int]:
    """List the English tasks of the installed mteb whose documents are long.

    The lengths are from the statistics that mteb is delivered with: nothing is asked of the Hub.

    Args:
        min_characters: Mean length of the documents that are embedded, in the longest split that is evaluated.
            5,000 characters are some 1,100 tokens of English.

    Returns:
        Mean length in characters by name, the shortest first. Tasks that mteb has no statistics of are not among them.
    """
    lengths = {}
    with kept_generators():
        tasks = _english_tasks()
    for task in tasks:
        statistics: Mapping[str, Any] = task.metadata.descriptive_stats or {}
        found = [
            part["average_text_length"]
            for split in task.eval_splits
            for kind in _LENGTHS
            if (part := statistics.get(split, {}).get(kind))
        ]
        if found and max(found) >= min_characters:
            lengths[task.metadata.name] = round(max(found))
    return dict(sorted(lengths.items(), key=lambda item: (item[1], item[0])))


def _english_tasks() -> Sequence[AbsTask]:
    return mteb.get_tasks(
        languages=["eng"], modalities=["text"], exclusive_modality_filter=True, exclude_aggregate=True
    )
