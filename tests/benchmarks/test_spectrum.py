from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bank.spectrum import alpha_req
from simlte_st.errors import DataError


def rows(alpha: float, directions: int = 20) -> np.ndarray:
    """Embeddings whose variances fall as ``rank ** -alpha``."""
    decay = np.diag(np.arange(1, directions + 1.0) ** (-alpha / 2))
    return np.concatenate([decay, -decay])


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.5])
def test_the_distance_from_one_by_hand(alpha: float) -> None:
    assert alpha_req(rows(alpha)) == pytest.approx(-abs(alpha - 1), abs=1e-6)
    assert alpha_req(3 + 2 * rows(alpha)) == pytest.approx(-abs(alpha - 1), abs=1e-6), "centred; of any length"


def test_only_the_largest_variances_count() -> None:
    bent = np.concatenate([rows(1.0, 100), np.zeros((200, 20))], axis=1)
    tail = np.concatenate([np.zeros((40, 100)), 1e-4 * rows(0.0, 20)], axis=1)
    assert alpha_req(np.concatenate([bent, tail])) == pytest.approx(0.0, abs=1e-4)


def test_a_space_of_one_direction_is_the_worst() -> None:
    assert alpha_req(np.ones((10, 4))) == alpha_req(np.outer([1.0, -1.0, 2.0], [1.0, 0.0])) == -np.inf
    with pytest.raises(DataError, match="not finite"):
        alpha_req([[np.nan, 1.0], [0.0, 1.0]])
