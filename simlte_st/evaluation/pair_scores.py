"""How alike two texts are: all that retrieval and similarity need to know of a model or of a bag of words."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from simlte_st.models.vectors import unit_rows


class PairScores(Protocol):
    """Scores of pairs out of one list of texts; the higher, the more alike.

    Attributes:
        size: Number of texts.
        tolerance: Two scores that differ by no more than this are the same: matrix products round the same dot product
            differently at different places.
    """

    size: int
    tolerance: float

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[Any]:
        """Score every query ``[q]`` against every other text ``[n]``: shape ``[q, n]``."""
        ...

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[Any]:
        """Score pairs ``[n, 2]`` one by one: shape ``[n]``."""
        ...


class CosineScores:
    """Cosine similarity of embeddings.

    Args:
        embeddings: Shape ``[size, dim]``, any float dtype.

    Raises:
        DataError: Not two-dimensional, empty, or a value that is not finite.
    """

    # Far below any difference that float32 embeddings express.
    tolerance = 1e-9

    def __init__(self, embeddings: ArrayLike) -> None:
        self._set_rows(unit_rows(embeddings))

    def _set_rows(self, rows: Any) -> None:
        """Take rows of length 1, as an array or as a SciPy sparse matrix."""
        self._rows = rows
        self.size: int = rows.shape[0]

    def rows(self, queries: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score every query against every other text."""
        scores = self._rows[queries] @ self._rows[others].T
        return np.asarray(scores.toarray() if issparse(scores) else scores)

    def pairs(self, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Score pairs one by one."""
        first, second = self._rows[pairs[:, 0]], self._rows[pairs[:, 1]]
        products = first.multiply(second) if issparse(first) else first * second
        return np.asarray(products.sum(axis=1), dtype=np.float64).reshape(-1)
