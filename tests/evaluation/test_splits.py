from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from simlte_st.data import Document, read_documents
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.splits import draw_shots, few_shot_rows, sample_documents, sample_rows, split_by_label

LABELS = ["a"] * 20 + ["b"] * 8 + ["c"] * 2
CORPUS = [Document(str(number), "text", "abc"[number % 3]) for number in range(90)]


def test_samples_keep_order_and_depend_on_the_seed() -> None:
    sample = sample_documents(CORPUS, 20, seed=1)
    assert len(sample) == 20 == len(set(sample))
    assert sample == sorted(sample, key=lambda document: int(document.id))
    assert sample == sample_documents(CORPUS, 20, seed=1) != sample_documents(CORPUS, 20, seed=2)
    assert sample_documents(CORPUS, 500, seed=1) == CORPUS
    assert [int(document.id) for document in sample] == sample_rows(90, 20, seed=1)
    with pytest.raises(ConfigurationError):
        sample_rows(90, 1, seed=1)


def test_parts_are_disjoint_exhaustive_and_stratified() -> None:
    train, test = split_by_label(CORPUS, 0.3, seed=1)
    assert {document.id for document in train} | {document.id for document in test} == {d.id for d in CORPUS}
    assert len(train) + len(test) == len(CORPUS), "no document is in both"
    assert Counter(document.label for document in test) == {"a": 9, "b": 9, "c": 9}
    rows = [{"id": document.id, "text": document.text, "kind": document.label} for document in CORPUS]
    assert split_by_label(read_documents(iter(rows), label_column="kind"), 0.3, seed=1) == (train, test)
    with pytest.raises(DataError, match="1 of 91"):
        split_by_label([*CORPUS, Document("x", "text")], 0.3, seed=1)
    with pytest.raises(DataError, match=r"divided by class: 1 classes have one document only \('rare'\)"):
        split_by_label([*CORPUS, Document("x", "text", "rare")], 0.3, seed=1)


def test_shots_are_drawn_per_class_without_replacement() -> None:
    drawn = draw_shots(LABELS, 5, 0, 0)
    assert drawn == sorted(set(drawn))
    assert Counter(LABELS[index] for index in drawn) == {"a": 5, "b": 5, "c": 2}


def test_draws_are_determined_and_differ() -> None:
    assert draw_shots(LABELS, 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)
    draws = {tuple(draw_shots(LABELS, 5, draw, seed)) for draw in range(10) for seed in range(3)}
    assert len(draws) == 30
    numbers = [ord(label) for label in LABELS]
    assert draw_shots(numbers, 5, 3, 7) == draw_shots(np.array(LABELS), 5, 3, 7) == draw_shots(LABELS, 5, 3, 7)


def test_every_example_is_as_likely() -> None:
    count = Counter(index for draw in range(2000) for index in draw_shots(LABELS, 5, draw, 0))
    assert all(count[i] / 2000 == pytest.approx(0.25, abs=0.05) for i in range(20))
    assert all(count[i] / 2000 == pytest.approx(0.625, abs=0.05) for i in range(20, 28))
    assert count[28] == count[29] == 2000


@pytest.mark.parametrize("settings", [{"shots": 0}, {"draw": -1}, {"seed": -1}])
def test_draw_refuses(settings: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        draw_shots(LABELS, **({"shots": 5, "draw": 0, "seed": 0} | settings))
    with pytest.raises(DataError):
        draw_shots([], 5, 0, 0)


def test_short_classes_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    few_shot_rows(LABELS, 5, 4, 0)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == ["1 classes have fewer than 5 examples and give all they have at every draw: {'c': 2}"]
