from __future__ import annotations

import numpy as np
import pytest

from simlte_st.exploration import layout
from simlte_st.exploration.layout import NEAREST, lay_out, nearest_documents


def vectors(count: int) -> np.ndarray:
    made = np.random.default_rng(0).normal(size=(count, 8)) + 4 * np.eye(8)[np.arange(count) % 4]
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def test_nearest_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    made = vectors(50)
    near, cosines = nearest_documents(made)
    assert near.shape == (50, NEAREST)
    full = made @ made.T
    np.fill_diagonal(full, -1)
    np.testing.assert_allclose(cosines, -np.sort(-full, axis=1)[:, :NEAREST], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(full, near, axis=1), cosines, atol=1e-6)
    assert nearest_documents(made[:4])[0].shape == (4, 3)


def test_map_keeps_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    made = vectors(80)
    one = lay_out(made, seed=2)
    assert one.places.shape == (80, 2)
    assert one.trustworthiness > 0.8
    np.testing.assert_array_equal(one.places, lay_out(made, seed=2).places)
    monkeypatch.setattr(layout, "MAX_TSNE_DOCUMENTS", 60)
    beside = lay_out(made, seed=2)
    assert np.isfinite(beside.places).all()
    assert beside.trustworthiness > 0.7
    assert np.isfinite(lay_out(vectors(10)).places).all()
