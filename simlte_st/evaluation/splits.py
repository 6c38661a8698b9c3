"""Drawing and dividing documents for an evaluation: samples, training and test parts, a few examples a class."""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.checks import check_count, check_number, check_seed
from simlte_st.data.document import Document, text_key
from simlte_st.data.documents import list_documents, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.labels import Label, listed, plain_labels, warn_of_few

logger = logging.getLogger(__name__)

PROBE_LEAST = 4
"""Documents of a class that a probe on documents held out needs: two to learn from, two to score."""

TRAIN, TEST, NEITHER = 0, 1, -1


def stratified_split(
    classes: NDArray[np.int32], keys: NDArray[np.int64], test_share: float, seed: int
) -> NDArray[np.int8]:
    """Divide documents into training and test part, each class in proportion.

    The documents of a class are put in an order that (seed, text) decides, and the first of them are for the test. So
    the split does not depend on the order in which they are stored, and copies of a text in a class stay together.
    """
    check_number("test_share", test_share, above=0, below=1)
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
    """Return the test size of a class: as asked, moved up or else down so that no duplicates are parted."""
    wanted = min(round(len(places) * share), len(places) - 1)
    ends = np.flatnonzero(places[1:] != places[:-1]) + 1  # sizes at which no copies are parted
    if wanted < 1 or not len(ends):
        return 0
    return int(ends[min(int(np.searchsorted(ends, wanted)), len(ends) - 1)])


def _mix(keys: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """Hash keys together with the seed (SplitMix64's finaliser: a bijection, so distinct keys stay distinct)."""
    salt = int.from_bytes(hashlib.blake2b(str(seed).encode(), digest_size=8).digest(), "big")
    mixed = keys.view(np.uint64) ^ np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64)


def sample_documents(documents: Any, most: int, seed: int) -> list[Document]:
    """Draw up to ``most`` documents of what :func:`~simlte_st.data.read_documents` takes; see :func:`sample_rows`.

    The documents are counted, and then read again for those that were drawn: no others are held. What can be read only
    once is held while it is drawn from.
    """
    source = list(documents) if isinstance(documents, Iterator) else documents
    reader = read_documents(source)
    rows = set(sample_rows(sum(1 for _ in reader), most, seed))
    if reader.report.skipped and reader is not source:  # a reader of theirs has a report of its own
        logger.warning("%s", reader.report.summary())
    return [document for row, document in enumerate(reader) if row in rows]


def sample_rows(count: int, most: int, seed: int) -> list[int]:
    """Draw up to ``most`` of the numbers below ``count`` without replacement, ascending."""
    if most < 2:
        raise ConfigurationError(f"A sample of {most} documents: there is nothing to compare below 2.")
    if count <= most:
        return list(range(count))
    return sorted(np.random.default_rng(seed).choice(count, size=most, replace=False).tolist())


def split_by_label(documents: Any, test_share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """Divide labelled documents into training and test parts, each class in proportion, copies on one side.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes, or what it gives for a source whose column of
            labels has to be named.
        test_share: Share of the documents in the test part, in (0, 1).
        seed: Decides which.

    Raises:
        DataError: A document has no label, or a class has only one document.
        ConfigurationError: ``test_share`` is out of its range.
    """
    read = list_documents(documents)
    train, test = divide_rows([document.text for document in read], document_labels(read), test_share, seed)
    return [read[row] for row in train], [read[row] for row in test]


def divide_rows(
    texts: Sequence[str], labels: Sequence[Label], test_share: float, seed: int
) -> tuple[list[int], list[int]]:
    """Divide the rows of labelled texts into training and test part: :func:`stratified_split`."""
    names, classes, counts = np.unique(plain_labels(labels), return_inverse=True, return_counts=True)
    if (counts < 2).any():
        alone = names[counts < 2].tolist()
        have = "class has" if len(alone) == 1 else "classes have"
        raise DataError(
            f"The documents cannot be divided by class: {len(alone)} {have} one document only ({listed(alone)}). "
            "Leave them out, or give documents to score on (test_data=)."
        )
    keys = np.array([text_key(text) for text in texts], dtype=np.int64)
    sides = stratified_split(classes.astype(np.int32), keys, test_share, seed)
    train, test = (np.flatnonzero(sides == side).tolist() for side in (TRAIN, TEST))
    if not test:
        raise DataError("The documents cannot be divided by class: those of a class are all copies of one text.")
    return train, test


def warn_of_copies(train: Iterable[str], test: Sequence[str]) -> int:
    """Count the test texts that are copies of a training text, and warn of them: scores on them are memory."""
    known = {text_key(text) for text in train}
    copies = sum(text_key(text) in known for text in test)
    if copies:
        logger.warning("%d of %d test texts are copies of training texts: the scores flatter.", copies, len(test))
    return copies


def probe_rows(documents: Sequence[Document]) -> list[int]:
    """Choose the documents that a probe can use, by their rows: of classes that have :data:`PROBE_LEAST` or more."""
    counts = Counter(document.label for document in documents)
    return [row for row, each in enumerate(documents) if each.label and counts[each.label] >= PROBE_LEAST]


def document_labels(documents: Sequence[Document]) -> list[str]:
    """The label of each document."""
    labels = [document.label for document in documents if document.label is not None]
    if len(labels) < len(documents):
        raise DataError(
            f"{len(documents) - len(labels)} of {len(documents)} documents have no label: name the column of the "
            "labels with label_column=, and leave out documents without one."
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
    check_count("shots", shots)
    check_count("draw", draw, least=0)
    check_seed(seed)
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
    """The indices of all draws, with one warning for the classes that have fewer than ``shots`` examples."""
    check_count("draws", draws)
    rows = [draw_shots(labels, shots, draw, seed) for draw in range(draws)]
    warn_of_few(labels, shots)
    return rows
