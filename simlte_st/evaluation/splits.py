"""Labels, samples, training and test sets, and few-shot draws for evaluations."""

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

from simlte_st.arguments import Count, CountOrZero, Seed, check_arguments
from simlte_st.errors import DataError
from simlte_st.reading.document import Document, text_key

logger = logging.getLogger(__name__)

Label = str | int

PROBE_LEAST = 4
"""Minimum number of documents of a class for a probe on held-out documents: two to learn from, two to score."""

TRAIN, TEST, NEITHER = 0, 1, -1

TestShare = Annotated[float, Interval(gt=0, lt=1)]
"""A share that leaves some documents for the other part."""

Sample = Annotated[int, Interval(ge=2, le=2**31 - 1)]
"""Sample size."""


def number_labels(train: Sequence[Label], test: Sequence[Label]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the class numbers of training and test labels.

    Classes that occur only in the test labels come last: no probe can predict them, and they count as missed.
    """
    if len(train) == 0 or len(test) == 0:
        raise DataError(f"A probe needs training and test labels, got {len(train)} and {len(test)}.")
    parts = plain_labels(train), plain_labels(test)
    classes = sorted(set(parts[0]))
    unseen = sorted(set(parts[1]) - set(classes))
    if len(classes) < 2:
        raise DataError(f"A probe needs at least two classes in the training labels, got {classes}.")
    index = {label: number for number, label in enumerate(classes + unseen)}
    first, second = (np.array([index[label] for label in part], dtype=np.int64) for part in parts)
    return first, second


def list_labels(labels: Sequence[Label], most: int = 10) -> str:
    """Return the first labels as text, with the number of the others."""
    more = len(labels) - most
    return ", ".join(map(str, labels[:most])) + (f" and {more} more" if more > 0 else "")


def warn_of_classes(train: Sequence[Label], test: Sequence[Label], shots: int) -> None:
    """Warn about classes with fewer than ``shots`` training examples, or none."""
    counts = Counter(plain_labels(train))
    few = [f"{label} ({count})" for label, count in sorted(counts.items()) if count < shots]
    if few:
        logger.warning("Classes with fewer than %d examples, all used in each draw: %s", shots, list_labels(few))
    unseen = sorted(set(plain_labels(test)) - set(counts))
    if unseen:
        logger.warning(
            "%d of the test classes have no training example and count as missed: %s", len(unseen), list_labels(unseen)
        )


def plain_labels(labels: Sequence[Label]) -> list[Label]:
    """Convert labels to plain ``str`` or ``int``."""
    values = np.asarray(list(labels))
    if values.dtype.kind not in "Uiub":
        raise DataError(
            "Labels must be all strings or all integers: convert them, and leave out documents without a label."
        )
    plain: list[Label] = values.tolist()
    return plain


@check_arguments
def stratified_split(
    classes: NDArray[np.int32], keys: NDArray[np.int64], test_share: TestShare, seed: Seed
) -> NDArray[np.int8]:
    """Assign each document to :data:`TRAIN`, :data:`TEST` or :data:`NEITHER`, with the same share of every class.

    The seed and the texts determine the order of a class, whose first documents form the test set. So the split does
    not depend on the order of the documents, and duplicates in a class stay together.
    """
    sides = np.full(len(classes), NEITHER, dtype=np.int8)
    sides[classes >= 0] = TRAIN
    places = _mix(keys, seed)
    order = np.lexsort((places, classes))
    starts = np.searchsorted(classes[order], np.arange(classes.max(initial=-1) + 2))
    for start, stop in itertools.pairwise(starts):
        members = order[start:stop]
        sides[members[: _test_size(places[members], test_share)]] = TEST
    return sides


def _test_size(places: NDArray[np.uint64], share: float) -> int:
    """Return the test size of a class: the wanted size, adjusted to keep duplicates together."""
    wanted = min(round(len(places) * share), len(places) - 1)
    ends = np.flatnonzero(places[1:] != places[:-1]) + 1  # sizes at which duplicates stay together
    if wanted < 1 or not len(ends):
        return 0
    return int(ends[min(int(np.searchsorted(ends, wanted)), len(ends) - 1)])


def _mix(keys: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Hash keys with the seed (SplitMix64's finaliser, a bijection: distinct keys stay distinct)."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "big")
    mixed = keys.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


@check_arguments
def sample_documents(documents: Iterable[Document], most: int, seed: int) -> list[Document]:
    """Draw a random sample of documents, in their original order. Labelled documents are drawn first.

    A reader is read twice, to count and to draw; memory holds only the sample.

    Args:
        documents: A list of documents, or a reader.
        most: Maximum size of the sample.
        seed: Random seed of the sample.
    """
    rows = set(labelled_first([bool(document.label) for document in documents], most, seed))
    return [document for row, document in enumerate(documents) if row in rows]


@check_arguments
def sample_rows(count: CountOrZero, most: Sample, seed: Seed) -> list[int]:
    """Return up to ``most`` distinct random numbers below ``count``, ascending."""
    if count <= most:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, size=most, replace=False).tolist())


def labelled_first(labelled: Sequence[bool], most: int, seed: int) -> list[int]:
    """Return up to ``most`` random rows, ascending; unlabelled ones only where labelled ones are too few."""
    mask = np.array(labelled, dtype=bool)
    first, rest = np.flatnonzero(mask), np.flatnonzero(~mask)
    drawn = first[sample_rows(len(first), most, seed)]
    more = np.random.default_rng(seed).choice(rest, min(len(rest), most - len(drawn)), replace=False)
    return sorted([*drawn.tolist(), *more.tolist()])


@check_arguments
def split_by_label(
    documents: Sequence[Document], test_share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Split labelled documents into training and test set, stratified by class, with duplicates on one side.

    Args:
        documents: The labelled documents.
        test_share: Share of the documents in the test set, in (0, 1).
        seed: Random seed of the split.

    Returns:
        Training and test documents.

    Raises:
        DataError: A document has no label, or a class has only one document.
        ConfigurationError: ``test_share`` is out of range.

    Example:
        ::

            documents = list(read_documents("papers.parquet", label_column="topic"))
            train_part, test_part = split_by_label(documents, 0.3, seed=0)
    """
    texts = [document.text for document in documents]
    train, test = divide_rows(texts, document_labels(documents), test_share, seed)
    return [documents[row] for row in train], [documents[row] for row in test]


def divide_rows(
    texts: Sequence[str], labels: Sequence[Label], test_share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Return the rows of training and test set; see :func:`stratified_split`."""
    names, classes, counts = np.unique(plain_labels(labels), return_inverse=True, return_counts=True)
    if (counts < 2).any():
        alone = names[counts < 2].tolist()
        raise DataError(
            f"The documents cannot be split by class: {len(alone)} of the classes have only one document "
            f"({list_labels(alone)}). Leave these out, or set test_data= to score on other documents."
        )
    keys = np.array([text_key(text) for text in texts], dtype=np.int64)
    sides = stratified_split(classes.astype(np.int32), keys, test_share, seed)
    train, test = (np.flatnonzero(sides == side).tolist() for side in (TRAIN, TEST))
    if not test:
        raise DataError("The documents cannot be split by class: the documents of each class are duplicates.")
    return train, test


def warn_of_copies(train: Iterable[str], test: Sequence[str]) -> None:
    """Warn about test texts that duplicate a training text."""
    known = {text_key(text) for text in train}
    copies = sum(text_key(text) in known for text in test)
    if copies:
        logger.warning(
            "%d of %d test texts are duplicates of training texts: scores will be too high.", copies, len(test)
        )


def probe_rows(documents: Sequence[Document], least: int = PROBE_LEAST) -> list[int]:
    """Return the rows of documents in classes of ``least`` or more, large enough for a probe."""
    counts = Counter(document.label for document in documents)
    return [row for row, each in enumerate(documents) if each.label and counts[each.label] >= least]


def document_labels(documents: Sequence[Document]) -> list[str]:
    """Return the label of each document."""
    labels = [document.label for document in documents if document.label is not None]
    if len(labels) < len(documents):
        raise DataError(
            f"{len(documents) - len(labels)} of {len(documents)} documents have no label: set label_column=, and leave "
            "out documents without a label."
        )
    return labels


@check_arguments
def draw_shots(labels: Sequence[Any], shots: Count, draw: CountOrZero, seed: Seed) -> list[int]:
    """Draw ``shots`` examples of each class without replacement.

    Args:
        labels: The labels to draw from, strings or integers.
        shots: Number of examples per class, or all examples of a smaller class.
        draw: Number of the draw, from 0. Draws are independent.
        seed: Random seed; the draws also depend on the labels.

    Returns:
        Indices into ``labels``, ascending.

    Raises:
        DataError: The labels mix strings and integers.
    """
    members: dict[Label, list[int]] = {}
    for index, label in enumerate(plain_labels(labels)):
        members.setdefault(label, []).append(index)
    generator = np.random.default_rng([seed, draw])
    drawn: list[int] = []
    for _, indices in sorted(members.items()):
        drawn.extend(generator.choice(indices, min(shots, len(indices)), replace=False).tolist())
    return sorted(drawn)
