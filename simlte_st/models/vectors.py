"""Embeddings as arrays: checked, of length 1, and compared block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError

# Bounds the scratch memory of a step of what is computed block by block: 4 million float64 values are 32 MB.
_SCRATCH_VALUES = 4_000_000


def row_blocks(rows: int, columns: int) -> list[slice]:
    """Divide the rows of a table that is too large to be held whole."""
    size = max(1, _SCRATCH_VALUES // columns)
    return [slice(start, min(start + size, rows)) for start in range(0, rows, size)]


def unit_rows(x: ArrayLike) -> NDArray[np.float64]:
    """L2-normalise rows in float64."""
    data = check_embeddings(x, np.float64)
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    unit: NDArray[np.float64] = data / np.where(norms == 0.0, 1.0, norms)
    return unit


def check_embeddings(x: Any, dtype: Any = None) -> Any:
    """Bring embeddings to an array ``[n, dim]`` of ``dtype``, or of their own; a SciPy sparse matrix stays as it is."""
    sparse = not isinstance(x, np.ndarray) and _is_sparse(x)
    data = x if sparse else np.asarray(x, dtype=dtype)
    if data.ndim != 2 or 0 in data.shape:
        raise DataError(f"Embeddings must form a non-empty array [n, dim], got shape {data.shape}.")
    if not np.isfinite(data.data if sparse else data).all():
        raise DataError("The embeddings hold values that are not finite (NaN or infinity): the model has diverged.")
    return data


def _is_sparse(x: Any) -> bool:
    from scipy.sparse import issparse  # a fifth of a second that a search need not wait for

    return bool(issparse(x))
