"""Drawing and dividing documents for an evaluation: samples, training and test parts, a few examples a class."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.labels import Label, plain_labels

logger = logging.getLogger(__name__)


def sample_documents(documents: Any, most: int, seed: int) -> list[Document]:
    """Draw up to ``most`` documents of what :func:`~simlte_st.data.read_documents` takes; see :func:`sample_rows`."""
    read = list_documents(documents)
    return [read[row] for row in sample_rows(len(read), most, seed)]


def sample_rows(count: int, most: int, seed: int) -> list[int]:
    """Draw up to ``most`` of the numbers below ``count`` without replacement, ascending.

    Raises:
        ConfigurationError: ``most`` is less than 2.
    """
    if most < 2:
        raise ConfigurationError(f"A sample of {most} documents: there is nothing to compare below 2.")
    if count <= most:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, size=most, replace=False).tolist())


def split_by_label(documents: Any, test_share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Divide labelled documents into training and test parts, each class in proportion.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; a source of which it must be told the column of
            the labels is read with it first.
        test_share: Share of the documents in the test part, in (0, 1).
        seed: Decides which.

    Raises:
        DataError: A document has no label, or a class has only one document.
    """
    read = list_documents(documents)
    labels = document_labels(read)
    train, test = divide_rows(labels, test_share, seed)
    return [read[row] for row in train], [read[row] for row in test]


def divide_rows(labels: Sequence[str], test_share: float, seed: int) -> tuple[list[int], list[int]]:
    """Divide the rows of labels into training and test part, each class in proportion; see :func:`split_by_label`.

    Raises:
        DataError: A class has only one row, or a part would lack a class.
    """
    alone = sorted(str(label) for label, count in Counter(labels).items() if count == 1)
    if alone:
        shown = ", ".join(map(repr, alone[:5])) + (", ..." if len(alone) > 5 else "")
        raise DataError(
            f"The documents cannot be divided by class: {len(alone)} classes have one document only ({shown}). "
            "Leave them out, or give documents to score on (on the command line: --test-data)."
        )
    try:
        train, test = train_test_split(range(len(labels)), test_size=test_share, random_state=seed, stratify=labels)
    except ValueError as error:
        raise DataError(f"The documents cannot be divided by class: {error}") from error
    return train, test


def document_labels(documents: Sequence[Document]) -> list[str]:
    """The label of each document.

    Raises:
        DataError: A document has none.
    """
    labels = [document.label for document in documents if document.label is not None]
    if len(labels) < len(documents):
        raise DataError(
            f"{len(documents) - len(labels)} of {len(documents)} documents have no label: name the column of the "
            "labels, read_documents(..., label_column=...), and leave out documents without one."
        )
    return labels


def draw_shots(labels: Sequence[Label], shots: int, draw: int, seed: int) -> list[int]:
    """Draw ``shots`` examples of each class without replacement.

    Args:
        labels: The labels to draw from, strings or integers.
        shots: Examples per class. A class that has fewer gives all it has.
        draw: Number of the draw, from 0. Draws are independent of each other.
        seed: Seed; (seed, draw, labels) decide the result alone.

    Returns:
        Indices into ``labels``, ascending, none twice.

    Raises:
        DataError: No labels, or labels that cannot be used.
        ConfigurationError: ``shots`` below 1, or a negative ``draw`` or ``seed``.
    """
    if shots < 1 or draw < 0 or seed < 0:
        raise ConfigurationError(
            f"shots must be at least 1, draw and seed at least 0; got shots={shots}, draw={draw}, seed={seed}."
        )
    if len(labels) == 0:
        raise DataError("There are no labels to draw from.")
    members: dict[Label, list[int]] = {}
    for index, label in enumerate(plain_labels(labels)):
        members.setdefault(label, []).append(index)
    generator = np.random.default_rng([seed, draw])
    drawn: list[int] = []
    for _, indices in sorted(members.items()):
        drawn.extend(generator.choice(indices, min(shots, len(indices)), replace=False).tolist())
    return sorted(drawn)


def few_shot_rows(labels: Sequence[Label], shots: int, draws: int, seed: int) -> list[list[int]]:
    """The indices of all draws, with one warning for the classes that have fewer than ``shots`` examples.

    Raises:
        DataError: No labels, or labels that cannot be used.
        ConfigurationError: ``shots`` or ``draws`` below 1, or a negative ``seed``.
    """
    if draws < 1:
        raise ConfigurationError(f"draws must be at least 1, got {draws}.")
    rows = [draw_shots(labels, shots, draw, seed) for draw in range(draws)]
    short = {label: count for label, count in sorted(Counter(plain_labels(labels)).items()) if count < shots}
    if short:
        logger.warning(
            "%d classes have fewer than %d examples and give all they have at every draw: %s",
            len(short),
            shots,
            dict(list(short.items())[:10]),
        )
    return rows
