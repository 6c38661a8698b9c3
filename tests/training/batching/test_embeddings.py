from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.training.batching.embeddings import DocumentEmbeddings


def updated(vectors: np.ndarray, epoch: int = 0) -> DocumentEmbeddings:
    embeddings = DocumentEmbeddings(len(vectors))
    embeddings.update(vectors, epoch)
    assert embeddings.codes is not None
    return embeddings


@pytest.mark.parametrize("dimensions", [1, 24, 384, 4096])
def test_products_are_cosines_of_the_centred_embeddings(dimensions: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(40, dimensions)) + 3
    embeddings = updated(vectors.astype(np.float32))
    centred = vectors - vectors.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    codes = embeddings.codes.astype(np.int64)
    np.testing.assert_allclose(codes @ codes.T / embeddings.scale**2, centred @ centred.T, atol=2e-3)
    assert embeddings.codes.dtype == np.int16


@pytest.mark.parametrize("dimensions", [1, 7, 384, 4096])
def test_products_are_exact_in_float32(dimensions: int) -> None:
    # The worst case: all coordinates the same, all rounded up; and in any order of the sum.
    rng = np.random.default_rng(1)
    vectors = np.concatenate([rng.normal(size=(30, dimensions)), np.ones((3, dimensions)), -np.ones((3, dimensions))])
    codes = updated(vectors).codes
    exact = codes.astype(np.int64) @ codes.astype(np.int64).T
    assert np.abs(exact).max() < 2**24
    order = rng.permutation(dimensions)
    for some in (codes, codes[:, order]):
        halves = some.astype(np.float32)
        assert (halves @ halves.T == exact).all()
        one_by_one = np.cumsum(halves[0] * halves[1], dtype=np.float32)
        assert one_by_one[-1] == exact[0, 1]


def test_any_float_and_any_length() -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float16)
    np.testing.assert_array_equal(updated(vectors).codes, updated(vectors.astype(np.float64)).codes)
    shifted = updated(vectors.astype(np.float64) * 8 + 100).codes
    np.testing.assert_allclose(shifted, updated(vectors.astype(np.float64)).codes, atol=1)


def test_an_embedding_at_the_mean_is_like_nothing() -> None:
    vectors = np.array([[1.0, 0], [-1, 0], [0, 0]])
    assert updated(vectors).codes[2].tolist() == [0, 0]
    assert updated(np.ones((5, 4))).codes.tolist() == [[0] * 4] * 5


def test_many_rows_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).normal(size=(40, 8))
    whole = updated(vectors).codes
    monkeypatch.setattr("simlte_st.training.batching.embeddings._CHUNK", 7)
    np.testing.assert_array_equal(updated(vectors).codes, whole)


def test_they_are_kept_in_a_file(tmp_path: Path) -> None:
    embeddings = updated(np.random.default_rng(0).normal(size=(40, 8)), epoch=3)
    embeddings.save(tmp_path / "e.safetensors")
    again = DocumentEmbeddings(40)
    assert (again.codes, again.epoch) == (None, None)
    again.load(tmp_path / "e.safetensors")
    np.testing.assert_array_equal(again.codes, embeddings.codes)
    assert (again.scale, again.epoch) == (embeddings.scale, 3)
    with pytest.raises(ResumeError, match="of 40 documents, and there are 39"):
        DocumentEmbeddings(39).load(tmp_path / "e.safetensors")
    with pytest.raises(ResumeError, match=r"none\.safetensors is missing"):
        again.load(tmp_path / "none.safetensors")


@pytest.mark.parametrize("shape", [(3, 8), (4,), (4, 8, 1), (4, 0)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="one row for each of 4 documents"):
        DocumentEmbeddings(4).update(np.zeros(shape))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    vectors = np.zeros((4, 2))
    vectors[1, 1] = value
    with pytest.raises(ConfigurationError, match="not finite"):
        DocumentEmbeddings(4).update(vectors)
