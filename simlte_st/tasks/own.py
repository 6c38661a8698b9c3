"""Tasks made of a user's own texts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from simlte_st.errors import ConfigurationError
from simlte_st.evaluation.labels import Label, check_lengths, plain_labels
from simlte_st.evaluation.splits import divide_rows
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

Task = TypeVar("Task", bound=LocalTask)


def classification_task(
    name: str,
    texts: Sequence[str],
    labels: Sequence[Label],
    test_texts: Sequence[str] | None = None,
    test_labels: Sequence[Label] | None = None,
    *,
    test_share: float = 0.5,
    samples_per_label: int = 8,
    experiments: int = 10,
    language: str = "eng-Latn",
    seed: int = 42,
) -> ClassificationTask:
    """Make a classification task: a logistic regression on a few documents a class, several draws.

    Args:
        name: Its name among mteb's results.
        texts: The documents; training documents where test documents are given.
        labels: Their classes, all strings or all integers.
        test_texts: Test documents. None: documents are divided, each class in proportion.
        test_labels: Their classes.
        test_share: Share of each class that goes to the test, where they are divided.
        samples_per_label: Training documents a class, in each draw.
        experiments: Number of draws.
        language: Of the texts, as mteb writes it.
        seed: Decides division and draws.

    Raises:
        DataError: Texts and labels cannot be used, or a class has a single document and cannot be divided.
        ConfigurationError: The name cannot be used, or a number is out of its range.

    Example:
        ::

            import mteb
            from simlte_st.tasks import classification_task

            task = classification_task("Tickets", texts, labels)
            result = mteb.evaluate(model, task, cache=None)
            result.task_results[0].get_score()
    """
    if samples_per_label < 1 or experiments < 1:
        raise ConfigurationError(f"samples_per_label={samples_per_label} and experiments={experiments}: at least 1.")
    if (test_texts is None) != (test_labels is None):
        raise ConfigurationError("Give test_texts and test_labels, or neither.")
    if test_texts is None or test_labels is None:
        texts, labels, test_texts, test_labels = _divide(texts, labels, test_share, seed)
    parts = texts, labels, test_texts, test_labels
    few = {"samples_per_label": samples_per_label, "n_experiments": experiments}
    return _make_task(ClassificationTask, name, classification_data(*parts), parts, language, seed, **few)


def clustering_task(
    name: str, texts: Sequence[str], labels: Sequence[Label], *, language: str = "eng-Latn", seed: int = 42
) -> ClusteringTask:
    """Make a clustering task: k-means clusters against classes.

    Args:
        name: Its name among mteb's results.
        texts: The documents.
        labels: Their classes, all strings or all integers.
        language: Of the texts, as mteb writes it.
        seed: Decides samples and clusters.

    Raises:
        DataError: Texts and labels cannot be used.
        ConfigurationError: The name cannot be used.
    """
    data = clustering_data(texts, labels)
    return _make_task(ClusteringTask, name, data, (texts, labels), language, seed)


def retrieval_task(
    name: str,
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    relevant: Mapping[str, Iterable[str]],
    *,
    same_id_is_same_text: bool = True,
    language: str = "eng-Latn",
    seed: int = 42,
) -> RetrievalTask:
    """Make a retrieval task.

    Args:
        name: Its name among mteb's results.
        queries: Text of each query, by id.
        corpus: Text of each document, by id.
        relevant: Ids of the documents that each query should find.
        same_id_is_same_text: Whether a document with the query's id is the query itself, and is left out of its search.
        language: Of the texts, as mteb writes it.
        seed: Of mteb; nothing is drawn.

    Raises:
        DataError: No query has a relevant document, an id has no text, or a query's only relevant document is itself.
        ConfigurationError: The name cannot be used.
    """
    judged = {query: found if isinstance(found, str) else list(found) for query, found in relevant.items()}
    parts = dict(queries), dict(corpus), judged
    data = retrieval_data(*parts, leave_out_own=same_id_is_same_text)
    return _make_task(RetrievalTask, name, data, parts, language, seed, ignore_identical_ids=same_id_is_same_text)


def pair_classification_task(
    name: str,
    first: Sequence[str],
    second: Sequence[str],
    labels: Sequence[int],
    *,
    language: str = "eng-Latn",
    seed: int = 42,
) -> PairClassificationTask:
    """Make a pair classification task: do two texts belong together?

    Args:
        name: Its name among mteb's results.
        first: The first text of each pair.
        second: The second.
        labels: 1 where they belong together, 0 where not.
        language: Of the texts, as mteb writes it.
        seed: Of mteb; nothing is drawn.

    Raises:
        DataError: The three do not fit, or labels of one kind only.
        ConfigurationError: The name cannot be used.
    """
    data, parts = pair_data(first, second, labels), (first, second, labels)
    return _make_task(PairClassificationTask, name, data, parts, language, seed)


def sts_task(
    name: str,
    first: Sequence[str],
    second: Sequence[str],
    scores: Sequence[float],
    *,
    language: str = "eng-Latn",
    seed: int = 42,
) -> STSTask:
    """Make a similarity task: a model's similarities against given ones.

    Args:
        name: Its name among mteb's results.
        first: The first text of each pair.
        second: The second.
        scores: How alike they are, on any scale; the higher, the more alike.
        language: Of the texts, as mteb writes it.
        seed: Of mteb; nothing is drawn.

    Raises:
        DataError: The three do not fit, or the scores are not finite or all the same.
        ConfigurationError: The name cannot be used.
    """
    data, parts = sts_data(first, second, scores), (first, second, scores)
    scale = {"min_score": math.floor(min(scores)), "max_score": math.ceil(max(scores))}
    return _make_task(STSTask, name, data, parts, language, seed, **scale)


def _divide(texts: Sequence[str], labels: Sequence[Label], test_share: float, seed: int) -> list[Any]:
    check_lengths(texts, labels, "given")
    listed, classes = list(texts), plain_labels(labels)
    parts = divide_rows(listed, classes, test_share, seed)
    return [[values[row] for row in rows] for rows in parts for values in (listed, classes)]


def _make_task(
    base: type[Task], name: str, data: Any, parts: Sequence[Any], language: str, seed: int, **settings: Any
) -> Task:
    """Make a task whose revision tells its data from others'."""
    values = [part if isinstance(part, Mapping) else list(part) for part in parts]
    digest = hashlib.blake2b(json.dumps(values, default=str).encode(), digest_size=8).hexdigest()
    metadata = make_metadata(
        name, base.kind, f"{base.kind} of own texts.", source=f"own/{name}", revision=digest, language=language
    )
    return base(metadata, lambda: data, seed=seed, **settings)
