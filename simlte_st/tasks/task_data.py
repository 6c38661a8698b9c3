"""The data of each kind of task, in the columns in which mteb wants it, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from simlte_st.errors import DataError
from simlte_st.evaluation.labels import Label, check_lengths, number_labels, plain_labels


def classification_data(
    texts: Sequence[str], labels: Sequence[Label], test_texts: Sequence[str], test_labels: Sequence[Label]
) -> DatasetDict:
    """Make the two parts of a classification task, of documents and their classes, all strings or all integers.

    Returns:
        ``train`` and ``test``, each with ``text`` and ``label``, a ``ClassLabel``.

    Raises:
        DataError: Texts and labels do not fit, or there are fewer than two classes in the training part.
    """
    train, test = _texts(texts, "training"), _texts(test_texts, "test")
    check_lengths(train, labels, "train")
    check_lengths(test, test_labels, "test")
    classes, *numbers = number_labels(labels, test_labels)
    features = Features({"text": Value("string"), "label": ClassLabel(names=[str(name) for name in classes])})
    return DatasetDict(
        {
            part: Dataset.from_dict({"text": some, "label": theirs.tolist()}, features=features)
            for part, some, theirs in zip(("train", "test"), (train, test), numbers, strict=True)
        }
    )


def clustering_data(texts: Sequence[str], labels: Sequence[Label]) -> DatasetDict:
    """Make the documents of a clustering task, of documents and their classes, all strings or all integers.

    Returns:
        ``test``, with ``sentences`` (each a whole document) and ``labels``.

    Raises:
        DataError: Texts and labels do not fit, or there are fewer than two classes.
    """
    documents = _texts(texts, "clustering")
    check_lengths(documents, labels, "clustering")
    names = [str(label) for label in plain_labels(labels)]
    if len(set(names)) < 2:
        raise DataError(f"Clustering needs at least two classes, got {sorted(set(names))}.")
    return DatasetDict({"test": Dataset.from_dict({"sentences": documents, "labels": names})})


def retrieval_data(
    queries: Mapping[str, str],
    corpus: Mapping[str, str],
    relevant: Mapping[str, Iterable[str]],
    *,
    leave_out_own: bool,
) -> dict[str, Any]:
    """Make a retrieval task's corpus, queries and judgements.

    Args:
        queries: Text of each query, by id.
        corpus: Text of each document, by id.
        relevant: Ids of the documents that each query should find. A query without any is left out.
        leave_out_own: Whether the document of a query's own id is left out of its search.

    Returns:
        What mteb calls the split ``test`` of the subset ``default``.

    Raises:
        DataError: No query has a relevant document, an id has no text, or a relevant document would be left out.
    """
    judged: dict[str, dict[str, int]] = {}
    for query, found in relevant.items():
        if isinstance(found, str):
            raise DataError(f"The relevant documents of query {query!r} are a single string: give a list of ids.")
        if documents := dict.fromkeys(found, 1):
            judged[query] = documents
        if leave_out_own and query in documents:
            raise DataError(
                f"The document of query {query!r}'s own id is one that it should find, but is left out of its search: "
                "take it out of the relevant ones, or say that equal ids are not the same text."
            )
    if not judged:
        raise DataError("No query has a relevant document.")
    for kind, wanted, there in (
        ("queries", set(judged), queries),
        ("documents", set().union(*judged.values()), corpus),
    ):
        if missing := sorted(wanted - set(there)):
            raise DataError(f"{len(missing)} {kind} have judgements but no text: {missing[:5]}.")
    split = {
        "queries": _by_id({query: queries[query] for query in judged}, "query"),
        "corpus": _by_id(corpus, "corpus"),
        "relevant_docs": judged,
        "top_ranked": None,
    }
    return {"default": {"test": split}}


def pair_data(first: Sequence[str], second: Sequence[str], labels: Sequence[int]) -> DatasetDict:
    """Make the pairs of a pair classification task: 1 where two texts belong together, 0 where not.

    Returns:
        ``test``, with ``sentence1``, ``sentence2`` and ``labels``.

    Raises:
        DataError: The three do not fit, or a label is missing altogether or neither 0 nor 1.
    """
    one, two = _texts(first, "first"), _texts(second, "second")
    check_lengths(one, labels, "first")
    check_lengths(two, labels, "second")
    numbers = plain_labels(labels)
    if set(numbers) != {0, 1}:
        raise DataError(
            f"Pairs need labels of both kinds, 0 and 1, and no others; got {sorted(set(numbers), key=str)[:5]}."
        )
    return DatasetDict({"test": Dataset.from_dict({"sentence1": one, "sentence2": two, "labels": numbers})})


def sts_data(first: Sequence[str], second: Sequence[str], scores: Sequence[float]) -> DatasetDict:
    """Make the pairs of a similarity task; the higher a score, the more alike two texts are.

    Returns:
        ``test``, with ``sentence1``, ``sentence2`` and ``score``.

    Raises:
        DataError: The three do not fit, or the scores are not finite or all the same: nothing to correlate with.
    """
    one, two = _texts(first, "first"), _texts(second, "second")
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(one),) or len(two) != len(one):
        raise DataError(f"{len(one)} first and {len(two)} second texts need as many scores, got shape {values.shape}.")
    if not np.isfinite(values).all() or np.ptp(values) == 0:
        raise DataError("The scores must be finite and not all the same.")
    return DatasetDict({"test": Dataset.from_dict({"sentence1": one, "sentence2": two, "score": values.tolist()})})


def _by_id(texts: Mapping[str, str], part: str) -> Dataset:
    return Dataset.from_dict({"id": list(texts), "text": _texts(list(texts.values()), part)})


def _texts(texts: Sequence[str], part: str) -> list[str]:
    if isinstance(texts, str):
        raise DataError(f"The {part} texts are a single string: give a list of texts.")
    given = list(texts)
    if not given:
        raise DataError(f"There are no {part} texts.")
    for number, text in enumerate(given):
        if not isinstance(text, str):
            raise DataError(f"The {part} text at index {number} is {type(text).__name__}, not a string.")
    return given
