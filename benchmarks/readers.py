"""Readers of documents: words, the base, its mean over chunks, and other models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import TruncatedSVD

from simlte_st.compat import readable_tokens
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.files import atomic_path
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import DIMENSION, scaling
from simlte_st.modules import to_chunk_mean


def embed_in_pieces(folder: Path, encode: Callable[[int, int], Any], count: int, piece: int = 64) -> np.ndarray:
    """Embed texts in pieces, and save each to a folder so that an interrupted run can resume."""
    pieces = []
    for start in range(0, count, piece):
        path = folder / f"{start:09d}.npy"
        if not path.exists():
            vectors = encode(start, min(count, start + piece))
            with atomic_path(path) as temporary, temporary.open("wb") as file:
                np.save(file, np.asarray(vectors, dtype=np.float32))
        pieces.append(np.load(path))
    return np.concatenate(pieces)


def reader_loaders(
    base: str, models: Sequence[str], tokens: int, dtype: torch.dtype = torch.float32
) -> dict[str, Callable[[], SentenceTransformer]]:
    """Return loaders by name: of the truncated base, its chunk-mean, and other models with up to ``tokens`` tokens."""

    def load_base() -> SentenceTransformer:
        return load_model(base, dtype=dtype).model

    def load_other(name: str) -> SentenceTransformer:
        model = load_model(name, dtype=dtype).model
        model.max_seq_length = min(tokens, readable_tokens(model) or tokens)
        return model

    return {
        f"{Path(base).name}, truncated": load_base,
        f"{Path(base).name}, chunk-mean": lambda: to_chunk_mean(load_base(), max_length=tokens),
        **{Path(name).name: partial(load_other, name) for name in models},
    }


def tfidf_rows(texts: Sequence[str]) -> np.ndarray:
    """Return float32 TF-IDF vectors of texts, rotated into as many dimensions as there are texts.

    The rotation preserves inner products, on which alone a classifier with an L2 penalty depends, and speeds it up.
    """
    left, sizes, _ = np.linalg.svd(fit_tfidf(texts).transform(texts).toarray(), full_matrices=False)
    return np.asarray(left * sizes, dtype=np.float32)


def latent_rows(texts: Sequence[str], **settings: Any) -> np.ndarray:
    """Return a latent semantic analysis of texts by words in float32, scaled as in a model."""
    counts = fit_tfidf(texts, **settings).transform(texts)
    decomposition = TruncatedSVD(min(DIMENSION, len(texts) - 1), random_state=0).fit(counts)
    factors = scaling(decomposition.singular_values_, len(texts))
    return np.asarray(decomposition.transform(counts) * factors, dtype=np.float32)[:, factors > 0]
