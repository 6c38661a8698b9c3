from __future__ import annotations

import numpy as np
import pytest

from benchmarks.papers.mlp import epoch_count, fit_mlp
from simlte_st.evaluation import fit_probe


@pytest.mark.parametrize(("rows", "epochs"), [(10, 1000), (100, 154), (1600, 10), (9999, 10)])
def test_epoch_count(rows: int, epochs: int) -> None:
    assert epoch_count(rows) == epochs
    assert epochs * -(-rows // 8) >= 2000


def test_mlp_learns_a_nonlinear_boundary() -> None:
    generator = np.random.default_rng(0)
    x = generator.uniform(-3, 3, size=(400, 2)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int).tolist()
    mlp = fit_probe(x[:300], y[:300], x[300:], y[300:], fit=lambda x, y, seed: fit_mlp(x, y, seed, hidden=(64,)))
    assert mlp.accuracy > 0.8 > 0.7 > fit_probe(x[:300], y[:300], x[300:], y[300:]).accuracy
