"""Drawing and dividing documents for an evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from sklearn.model_selection import train_test_split

from simlte_st.data.document import Document
from simlte_st.errors import ConfigurationError, DataError

Item = TypeVar("Item")


def sample_documents(documents: Sequence[Item], most: int, seed: int) -> list[Item]:
    """Draw up to ``most`` documents, or their numbers, without replacement, in their order.

    Raises:
        ConfigurationError: ``most`` is less than 2.
    """
    if most < 2:
        raise ConfigurationError(f"{most} documents: split-half retrieval needs at least 2.")
    if len(documents) <= most:
        return list(documents)
    chosen = np.random.default_rng(seed).choice(len(documents), size=most, replace=False)
    return [documents[index] for index in sorted(chosen.tolist())]


def split_by_label(
    documents: Sequence[Document], test_share: float, seed: int
) -> tuple[list[Document], list[Document]]:
    """Divide labelled documents into training and test parts, each class in proportion.

    Raises:
        DataError: A document has no label, or a class has only one document.
    """
    labels = [document.label for document in documents]
    if None in labels:
        raise DataError(f"{labels.count(None)} of {len(labels)} documents have no label.")
    try:
        train, test = train_test_split(
            list(documents), test_size=test_share, random_state=seed, stratify=[str(label) for label in labels]
        )
    except ValueError as error:
        raise DataError(f"The documents cannot be divided by class: {error}") from error
    return train, test
