"""Sample documents, split them into training and test sets, and draw few-shot examples."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from simlte_st.arguments import Count, CountOrZero, Plural, Seed, check_arguments
from simlte_st.errors import DataError, list_names
from simlte_st.models.vectors import Ints
from simlte_st.reading.document import Document, text_key

logger = logging.getLogger(__name__)

Label = str | int

MIN_CLASS_SIZE = 4
"""Minimum class size for a probe on held-out documents: two documents to train on, two to score on."""

TRAIN, TEST, NEITHER = 0, 1, -1


def number_labels(train: Sequence[Label], test: Sequence[Label]) -> tuple[Ints, Ints]:
    """Convert training and test labels to class numbers.

    Classes that occur only in the test labels get the highest numbers; no probe can predict them, so they count as
    misses.
    """
    if len(train) == 0 or len(test) == 0:
        raise DataError(f"A probe needs training and test labels, got {len(train)} and {len(test)}.")
    train, test = plain_labels(train), plain_labels(test)
    classes = sorted(set(train))
    if len(classes) < 2:
        raise DataError(f"A probe needs training labels of at least two classes, got {classes}.")
    numbers = {label: number for number, label in enumerate([*classes, *sorted(set(test) - set(classes))])}
    train_numbers, test_numbers = ([numbers[label] for label in labels] for labels in (train, test))
    return np.array(train_numbers, dtype=np.int64), np.array(test_numbers, dtype=np.int64)


def warn_of_classes(train: Sequence[Label], test: Sequence[Label], shots: int) -> None:
    """Warn about classes with fewer than ``shots`` training examples or none at all."""
    counts = Counter(plain_labels(train))
    if small := [f"{label} ({count})" for label, count in sorted(counts.items()) if count < shots]:
        logger.warning("Classes with fewer than %d examples, all used in each draw: %s", shots, list_names(small, 10))
    if unseen := sorted(set(plain_labels(test)) - set(counts)):
        message = "%d of the test classes have no training examples and count as misses: %s"
        logger.warning(message, len(unseen), list_names(unseen, 10))


def plain_labels(labels: Sequence[Label]) -> list[Label]:
    """Convert labels to plain ``str`` or ``int``."""
    values = np.asarray(list(labels))
    if values.dtype.kind not in "Uiub":
        raise DataError("Labels must be all strings or all integers: convert them, and leave out unlabelled documents.")
    plain: list[Label] = values.tolist()
    return plain


@check_arguments
def stratified_split(
    classes: NDArray[np.int32], keys: Ints, test_share: Annotated[float, Interval(gt=0, lt=1)], seed: Seed
) -> NDArray[np.int8]:
    """Assign each document to :data:`TRAIN`, :data:`TEST` or :data:`NEITHER`, with the same test share in every class.

    Each class is ordered by a hash of text and seed, and its first documents form the test set. The split therefore
    does not depend on the order of the documents, and duplicates within a class stay together.
    """
    split = np.where(classes >= 0, TRAIN, NEITHER).astype(np.int8)
    hashes = _mix(keys, seed)
    order = np.lexsort((hashes, classes))
    for start, stop in itertools.pairwise(np.searchsorted(classes[order], np.arange(classes.max(initial=-1) + 2))):
        members = order[start:stop]
        split[members[: _test_size(hashes[members], test_share)]] = TEST
    return split


def _test_size(hashes: NDArray[np.uint64], share: float) -> int:
    """Return the number of test documents in a class, adjusted to keep duplicates together."""
    size = min(round(len(hashes) * share), len(hashes) - 1)
    # Possible sizes: those that do not split a group of duplicates.
    ends = np.flatnonzero(hashes[1:] != hashes[:-1]) + 1
    return 0 if size < 1 or not len(ends) else int(ends[min(int(np.searchsorted(ends, size)), len(ends) - 1)])


def _mix(keys: Ints, seed: int) -> NDArray[np.uint64]:
    """Hash keys and seed with SplitMix64's finaliser, a bijection that keeps distinct keys distinct."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "big")
    hashes = keys.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(hashes ^ (hashes >> np.uint64(31)), dtype=np.uint64)


@check_arguments
def sample_documents(documents: Iterable[Document], most: Plural, seed: Seed) -> list[Document]:
    """Draw a random sample of documents, labelled documents first, and keep their original order.

    A reader is read twice, once to count the documents and once to collect the sample; only the sample is kept in
    memory.

    Args:
        documents: A list of documents, or a reader.
        most: Maximum number of documents in the sample.
        seed: Random seed of the sample.
    """
    rows = set(sample_labelled_first([bool(document.label) for document in documents], most, seed))
    return [document for row, document in enumerate(documents) if row in rows]


@check_arguments
def sample_rows(count: CountOrZero, size: Plural, seed: Seed) -> list[int]:
    """Return up to ``size`` distinct random numbers below ``count``, in ascending order."""
    if count <= size:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, size=size, replace=False).tolist())


def sample_labelled_first(has_label: Sequence[bool], size: int, seed: int) -> list[int]:
    """Return up to ``size`` random rows in ascending order; unlabelled rows only if too few rows are labelled."""
    mask = np.array(has_label, dtype=bool)
    labelled_rows, unlabelled_rows = np.flatnonzero(mask), np.flatnonzero(~mask)
    sample = labelled_rows[sample_rows(len(labelled_rows), size, seed)]
    shortfall = min(len(unlabelled_rows), size - len(sample))
    unlabelled_sample = np.random.default_rng(seed).choice(unlabelled_rows, shortfall, replace=False)
    return sorted([*sample.tolist(), *unlabelled_sample.tolist()])


@check_arguments
def split_by_label(
    documents: Sequence[Document], test_share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Split labelled documents into a training and a test set, stratified by class; duplicates stay together.

    Args:
        documents: Labelled documents.
        test_share: Fraction of the documents for the test set, above 0 and below 1.
        seed: Random seed of the split.

    Returns:
        The training and test documents.

    Raises:
        DataError: A document has no label, or a class has only one document.
        ConfigurationError: ``test_share`` is out of range.

    Example:
        ::

            documents = list(read_documents("papers.parquet", label_column="topic"))
            train_part, test_part = split_by_label(documents, 0.3, seed=0)
    """
    train, test = divide_rows([document.text for document in documents], document_labels(documents), test_share, seed)
    return [documents[row] for row in train], [documents[row] for row in test]


def divide_rows(
    texts: Sequence[str], labels: Sequence[Label], test_share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Return the rows of the training set and of the test set; see :func:`stratified_split`."""
    names, classes, counts = np.unique(plain_labels(labels), return_inverse=True, return_counts=True)
    if singletons := names[counts < 2].tolist():
        raise DataError(
            f"The documents cannot be split by class: {len(singletons)} of the classes have only one document "
            f"({list_names(singletons, 10)}). Leave out these classes, or set test_data= to documents to score on."
        )
    keys = np.array([text_key(text) for text in texts], dtype=np.int64)
    split = stratified_split(classes.astype(np.int32), keys, test_share, seed)
    train, test = (np.flatnonzero(split == part).tolist() for part in (TRAIN, TEST))
    if not test:
        raise DataError("The documents cannot be split by class: all documents in each class are duplicates.")
    return train, test


def warn_of_duplicates(train: Iterable[str], test: Sequence[str]) -> None:
    """Warn about test texts that duplicate a training text."""
    keys = set(map(text_key, train))
    if duplicates := sum(text_key(text) in keys for text in test):
        message = "%d of %d test texts are duplicates of training texts, so scores will be too high."
        logger.warning(message, duplicates, len(test))


def probe_rows(documents: Sequence[Document], min_class_size: int = MIN_CLASS_SIZE) -> list[int]:
    """Return the rows of documents whose class is large enough for a probe."""
    labels = [document.label for document in documents]
    counts = Counter(labels)
    return [row for row, label in enumerate(labels) if label and counts[label] >= min_class_size]


def document_labels(documents: Sequence[Document]) -> list[str]:
    """Return the label of each document."""
    labels = [document.label for document in documents if document.label is not None]
    if len(labels) < len(documents):
        advice = "Set label_column=, and leave out documents without a label."
        raise DataError(f"{len(documents) - len(labels)} of {len(documents)} documents have no label. {advice}")
    return labels


@check_arguments
def draw_shots(labels: Sequence[Any], shots: Count, draw: CountOrZero, seed: Seed) -> list[int]:
    """Draw ``shots`` examples of each class without replacement.

    Args:
        labels: Labels to draw from, strings or integers.
        shots: Number of examples per class; smaller classes are used whole.
        draw: Number of the draw, starting at 0; draws are independent of each other.
        seed: Random seed; the draw also depends on the labels.

    Returns:
        Indices into ``labels``, in ascending order.

    Raises:
        DataError: The labels mix strings and integers.
    """
    _, classes, sizes = np.unique(plain_labels(labels), return_inverse=True, return_counts=True)
    members = np.split(np.argsort(classes, kind="stable"), np.cumsum(sizes)[:-1])
    rng = np.random.default_rng([seed, draw])
    return sorted(np.concatenate([rng.choice(rows, min(shots, len(rows)), replace=False) for rows in members]).tolist())
