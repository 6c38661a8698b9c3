from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from simlte_st.errors import DataError
from simlte_st.models.vectors import check_embeddings, row_blocks, unit_rows


def test_unit_rows_keep_zeros() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float16))
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, 0.0]])


@pytest.mark.parametrize("wrong", [{}, np.ones(3), np.ones((0, 3)), np.array([[np.nan]]), csr_array([[np.inf, 0.0]])])
def test_invalid_embeddings_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"\[n, dim\]|NaN or infinity"):
        check_embeddings(wrong)


def test_blocks_cover_all_rows_in_order() -> None:
    blocks = row_blocks(10, 1_500_000)
    assert [row for block in blocks for row in range(10)[block]] == list(range(10))
    assert max(block.stop - block.start for block in blocks) == 2, "no more than 4 million values"
