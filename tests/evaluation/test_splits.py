from __future__ import annotations

from collections import Counter

import pytest

from simlte_st.data import Document
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.splits import sample_documents, split_by_label

CORPUS = [Document(str(number), "text", "abc"[number % 3]) for number in range(90)]


def test_samples_keep_order_and_depend_on_the_seed() -> None:
    sample = sample_documents(CORPUS, 20, seed=1)
    assert len(sample) == 20 == len(set(sample))
    assert sample == sorted(sample, key=lambda document: int(document.id))
    assert sample == sample_documents(CORPUS, 20, seed=1) != sample_documents(CORPUS, 20, seed=2)
    assert sample_documents(CORPUS, 500, seed=1) == CORPUS
    with pytest.raises(ConfigurationError):
        sample_documents(CORPUS, 1, seed=1)


def test_parts_are_disjoint_exhaustive_and_stratified() -> None:
    train, test = split_by_label(CORPUS, 0.3, seed=1)
    assert {document.id for document in train} | {document.id for document in test} == {d.id for d in CORPUS}
    assert Counter(document.label for document in test) == {"a": 9, "b": 9, "c": 9}
    with pytest.raises(DataError, match="1 of 91"):
        split_by_label([*CORPUS, Document("x", "text")], 0.3, seed=1)
    with pytest.raises(DataError, match="cannot be divided"):
        split_by_label([*CORPUS, Document("x", "text", "rare")], 0.3, seed=1)
