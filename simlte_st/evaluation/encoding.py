"""Encoding texts at a chosen length with a model that was set up for another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simlte_st.compat import readable_tokens
from simlte_st.errors import ConfigurationError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@contextmanager
def reading_at_most(model: SentenceTransformer, max_seq_length: int | None) -> Iterator[None]:
    """Set ``model.max_seq_length`` for the length of a block and restore it, also when the block raises.

    Args:
        model: The model; set to the smaller of ``max_seq_length`` and :func:`readable_tokens`.
        max_seq_length: Tokens, special tokens included. None leaves the model as it is.

    Raises:
        ConfigurationError: ``max_seq_length`` is below 1.
    """
    if max_seq_length is not None and max_seq_length < 1:
        raise ConfigurationError(f"max_seq_length must be at least 1, got {max_seq_length}.")
    before = model.max_seq_length
    if max_seq_length is None or before is None:  # without a limit there is no tokenizer whose limit could be set
        yield
        return
    readable = readable_tokens(model)
    model.max_seq_length = max_seq_length if readable is None else min(max_seq_length, readable)
    try:
        yield
    finally:
        model.max_seq_length = before


def encode_texts(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    batch_size: int,
    max_seq_length: int | None,
    show_progress_bar: bool,
    truncate_dim: int | None,
) -> NDArray[np.float32]:
    """Encode with the frozen model, each text once; sentence-transformers sorts them by length itself.

    Returns:
        Embeddings, shape ``[len(texts), dim]``, float32, in the order of ``texts``.
    """
    with reading_at_most(model, max_seq_length):
        embeddings = model.encode(
            list(texts),
            batch_size=batch_size,
            show_progress_bar=show_progress_bar,
            convert_to_numpy=True,
            truncate_dim=truncate_dim,
        )
    return np.asarray(embeddings, dtype=np.float32)
