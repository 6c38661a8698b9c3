from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from simlte_st.data import Document, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation import splits
from simlte_st.evaluation.splits import TEST, TRAIN, draw_shots, sample_documents, split_by_label
from simlte_st.reading.document import text_key

LABELS = ["a"] * 20 + ["b"] * 8 + ["c"] * 2
CORPUS = [Document(str(number), f"text {number}", "abc"[number % 3]) for number in range(90)]


def test_samples_keep_order_and_depend_on_the_seed() -> None:
    sample = sample_documents(CORPUS, 20, seed=1)
    partly = [Document(each.id, each.text, each.label if row % 9 == 4 else None) for row, each in enumerate(CORPUS)]
    assert sum(document.label is not None for document in sample_documents(partly, 20, seed=1)) == 10
    assert sample == sample_documents(CORPUS, 20, seed=1) != sample_documents(CORPUS, 20, seed=2)
    assert sample_documents(CORPUS, 500, seed=1) == CORPUS
    assert [int(document.id) for document in sample] == splits.sample_rows(90, 20, seed=1)
    with pytest.raises(ConfigurationError):
        splits.sample_rows(90, 1, seed=1)


def test_sampling_holds_only_the_sample_in_memory() -> None:
    alive: weakref.WeakSet[Text] = weakref.WeakSet()
    most = 0

    class Text(str):
        pass

    class Rows:
        def __iter__(self) -> Iterator[dict[str, Any]]:
            nonlocal most
            for number in range(2000):
                text = Text(f"text {number}" if number % 10 else "")
                alive.add(text)
                yield {"id": number, "text": text}
                most = max(most, len(alive))

    assert len(sample_documents(read_documents(Rows()), 20, seed=1)) == 20
    assert most <= 200


def test_parts_are_disjoint_exhaustive_and_stratified() -> None:
    train, test = split_by_label(CORPUS, 0.3, seed=1)
    assert {document.id for document in train} | {document.id for document in test} == {d.id for d in CORPUS}
    assert len(train) + len(test) == len(CORPUS), "no document is in both"
    assert Counter(document.label for document in test) == {"a": 9, "b": 9, "c": 9}
    with pytest.raises(DataError, match="1 of 91"):
        split_by_label([*CORPUS, Document("x", "text")], 0.3, seed=1)
    with pytest.raises(DataError, match=r"one document \(rare\)"):
        split_by_label([*CORPUS, Document("x", "text", "rare")], 0.3, seed=1)


def test_duplicates_stay_on_one_side(caplog: pytest.LogCaptureFixture) -> None:
    copied = [Document(f"{document.id} again", document.text, document.label) for document in CORPUS]
    train, test = split_by_label([*CORPUS, *copied], 0.3, seed=1)
    texts, test_texts = ([document.text for document in part] for part in (train, test))
    assert len(train) + len(test) == 180
    assert not {*texts} & {*test_texts}
    assert Counter(document.label for document in test) == {"a": 18, "b": 18, "c": 18}
    splits.warn_of_duplicates(texts, test_texts)
    assert not caplog.records
    splits.warn_of_duplicates([*texts, test_texts[0]], test_texts)
    assert "2 of 54 test texts" in caplog.text
    same = [Document(str(number), "text", "ab"[number % 2]) for number in range(8)]
    with pytest.raises(DataError, match="are duplicates"):
        split_by_label(same, 0.5, seed=1)
    # a class with only duplicates stays in the training part, and the others are split
    train, test = split_by_label([*same[::2], *CORPUS[1::3]], 0.5, seed=1)
    assert {document.label for document in test} == {"b"}
    assert {document.label for document in train} == {"a", "b"}


def classes_and_keys(sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    keys = np.array([text_key(f"text {index}") for index in range(len(classes))], dtype=np.int64)
    return classes, keys


def test_split_is_stratified_by_class() -> None:
    sizes = [1000, 50, 10, 3, 2, 1]
    classes, keys = classes_and_keys(sizes)
    sides = splits.stratified_split(classes, keys, 0.2, seed=0)
    assert [int((sides[classes == label] == TEST).sum()) for label in range(len(sizes))] == [200, 10, 2, 1, 0, 0]
    assert set(sides.tolist()) == {TRAIN, TEST}
    # drawn at random: each half of the large class has about half of its test documents
    assert 70 <= (sides[:500] == TEST).sum() <= 130
    most = splits.stratified_split(classes, keys, 0.999, seed=0)
    assert [int((most[classes == label] == TRAIN).sum()) for label in range(len(sizes))] == [1, 1, 1, 1, 1, 1]


def test_shots_are_drawn_per_class_and_draws_differ() -> None:
    drawn = draw_shots(LABELS, 5, 0, 0)
    assert drawn == sorted(set(drawn))
    assert Counter(LABELS[index] for index in drawn) == {"a": 5, "b": 5, "c": 2}
    assert draw_shots(LABELS, 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)
    draws = {tuple(draw_shots(LABELS, 5, draw, seed)) for draw in range(10) for seed in range(3)}
    assert len(draws) == 30
    numbers = [ord(label) for label in LABELS]
    assert draw_shots(numbers, 5, 3, 7) == draw_shots(np.array(LABELS), 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)
