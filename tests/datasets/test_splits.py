from __future__ import annotations

import numpy as np
import pytest

from simlte_st.datasets.splits import NEITHER, TEST, TRAIN, split_strings, stratified_split, text_key
from simlte_st.errors import ConfigurationError


def sample(sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    classes = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    keys = np.array([text_key(f"text {index}") for index in range(len(classes))], dtype=np.int64)
    return classes, keys


def test_each_class_in_proportion() -> None:
    sizes = [1000, 50, 10, 3, 2, 1]
    classes, keys = sample(sizes)
    sides = stratified_split(classes, keys, 0.2, seed=0)
    assert [int((sides[classes == label] == TEST).sum()) for label in range(len(sizes))] == [200, 10, 2, 1, 0, 0]
    assert set(sides.tolist()) == {TRAIN, TEST}
    # drawn, not the first or the last ones: each half of the large class has about half of its test documents
    assert 70 <= (sides[:500] == TEST).sum() <= 130
    most = stratified_split(classes, keys, 0.999, seed=0)
    assert [int((most[classes == label] == TRAIN).sum()) for label in range(len(sizes))] == [1, 1, 1, 1, 1, 1]


def test_the_seed_decides_and_the_order_does_not() -> None:
    classes, keys = sample([300, 200])
    first = stratified_split(classes, keys, 0.3, seed=1)
    assert np.array_equal(first, stratified_split(classes, keys, 0.3, seed=1))
    other = stratified_split(classes, keys, 0.3, seed=2)
    # two draws of 30% agree on about 9% of the documents
    assert 25 <= ((first == TEST) & (other == TEST)).sum() <= 65
    order = np.random.default_rng(0).permutation(500)
    assert np.array_equal(stratified_split(classes[order], keys[order], 0.3, seed=1), first[order])
    # nor do the numbers of the classes
    assert np.array_equal(stratified_split(1 - classes, keys, 0.3, seed=1), first)


def test_documents_without_a_class_are_on_no_side() -> None:
    classes, keys = sample([40])
    classes[::4] = -1
    sides = stratified_split(classes, keys, 0.5, seed=0)
    assert (sides[::4] == NEITHER).all()
    assert (sides == TEST).sum() == (sides == TRAIN).sum() == 15
    assert stratified_split(classes[:0], keys[:0], 0.5, seed=0).tolist() == []
    assert stratified_split(classes[::4], keys[::4], 0.5, seed=0).tolist() == [NEITHER] * 10


@pytest.mark.parametrize("seed", range(5))
def test_copies_stay_together(seed: int) -> None:
    classes = np.zeros(60, dtype=np.int32)
    keys = np.repeat([text_key(str(number)) for number in range(12)], 5)
    sides = stratified_split(classes, keys, 0.3, seed)
    assert all(len(set(sides[keys == key].tolist())) == 1 for key in keys)
    assert (sides == TEST).sum() == 20  # 18 asked for; up to the end of the copies
    # moved down where moving up would leave nothing to train on
    keys = np.array([1] * 2 + [2] * 8, dtype=np.int64)
    assert (stratified_split(classes[:10], keys, 0.9, seed) == TRAIN).any()
    assert (stratified_split(classes[:10], np.ones(10, dtype=np.int64), 0.5, seed) == TRAIN).all()


def test_keys_are_of_the_text() -> None:
    assert text_key("a") == text_key("a") != text_key("b")
    assert text_key("é") == -3811523526868657873  # the same everywhere
    assert -(2**63) <= text_key("a") < 2**63


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5])
def test_shares(share: float) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and below 1"):
        stratified_split(*sample([4]), share, 0)


def test_names() -> None:
    assert split_strings(np.array([TRAIN, NEITHER, TEST], dtype=np.int8)).to_pylist() == ["train", None, "test"]
