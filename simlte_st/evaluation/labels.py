"""Checking class labels and numbering them, the same way for every probe."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import DataError

logger = logging.getLogger(__name__)

Label = str | int


def number_labels(
    train: Sequence[Label], test: Sequence[Label]
) -> tuple[list[Label], NDArray[np.int64], NDArray[np.int64]]:
    """Number the classes: those of the training labels first, sorted, then those only the test labels have.

    A class that only the test labels have is allowed: a probe can never predict it, accuracy and macro-F1 count it as
    missed, and a warning names it.
    """
    if len(train) == 0 or len(test) == 0:
        raise DataError(f"A probe needs training and test labels, got {len(train)} and {len(test)}.")
    train_plain, test_plain = plain_labels(train), plain_labels(test)
    if isinstance(train_plain[0], str) != isinstance(test_plain[0], str):
        raise DataError("Training and test labels must be of one kind: all strings or all integers.")
    classes = sorted(set(train_plain))
    if len(classes) < 2:
        raise DataError(f"A probe needs at least two classes in the training labels, got {classes}.")
    unseen = sorted(set(test_plain) - set(classes))
    if unseen:
        logger.warning(
            "%d of the test classes have no training example and count as missed: %s", len(unseen), listed(unseen)
        )
    index = {label: number for number, label in enumerate(classes + unseen)}
    return (
        classes + unseen,
        np.array([index[label] for label in train_plain], dtype=np.int64),
        np.array([index[label] for label in test_plain], dtype=np.int64),
    )


def listed(labels: Sequence[Label], most: int = 10) -> str:
    """List labels, the first of them where there are many; how many more there are is said."""
    more = len(labels) - most
    return ", ".join(map(str, labels[:most])) + (f" and {more} more" if more > 0 else "")


def warn_of_few(labels: Sequence[Label], shots: int) -> None:
    """Warn of classes that have fewer examples than a few-shot probe takes of each."""
    few = {label: count for label, count in sorted(Counter(plain_labels(labels)).items()) if count < shots}
    if few:
        logger.warning(
            "%d %s fewer than %d examples and give%s all there are at every draw: %s",
            len(few),
            "class has" if len(few) == 1 else "classes have",
            shots,
            "s" if len(few) == 1 else "",
            listed([f"{label} ({count})" for label, count in few.items()]),
        )


@contextmanager
def warned_once() -> Iterator[None]:
    """Let the warnings of labels come once, however many probes of the same labels the block makes."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        message = record.getMessage()
        new = message not in seen
        seen.add(message)
        return new

    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)


def plain_labels(labels: Sequence[Label]) -> list[Label]:
    """Bring labels to plain ``str`` or plain ``int``."""
    plain: list[Label] = []
    for label in labels:
        if isinstance(label, str):
            plain.append(str(label))
        elif isinstance(label, (int, np.integer, np.bool_)):
            plain.append(int(label))
        else:
            raise DataError(f"A label must be a string or an integer, got {label!r} ({type(label).__name__}).")
    if len({type(label) for label in plain}) > 1:
        raise DataError("The labels mix strings and integers; bring them to one kind first.")
    return plain


def check_lengths(texts: Sequence[object], labels: Sequence[Label], part: str) -> None:
    """Raise :class:`DataError` unless there is one label per text. ``part`` names them in the message."""
    if len(texts) != len(labels):
        raise DataError(f"The {part} part has {len(texts)} texts but {len(labels)} labels.")
