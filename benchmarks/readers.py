"""Readers of documents: word vectors, the base, its mean over chunks, and other models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sklearn.decomposition import TruncatedSVD

from simlte_st.compat import readable_tokens
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.files import atomic_path
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import DIMENSION
from simlte_st.models.word_vectors import scaling
from simlte_st.modules.chunk_mean import to_chunk_mean


def embed_in_pieces(
    folder: Path, encode: Callable[[int, int], Any], count: int, piece: int = 64
) -> NDArray[np.float32]:
    """Embed texts in pieces, saving each to a folder so that an interrupted run can resume."""
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
    """Return loaders by name: the truncated base, its chunk-mean, and other models up to ``tokens`` tokens."""

    def other(name: str) -> SentenceTransformer:
        model = load_model(name, dtype=dtype).model
        model.max_seq_length = min(tokens, readable_tokens(model) or tokens)
        return model

    made: dict[str, Callable[[], SentenceTransformer]] = {
        f"{Path(base).name}, truncated": lambda: load_model(base, dtype=dtype).model,
        f"{Path(base).name}, chunk-mean": lambda: to_chunk_mean(load_model(base, dtype=dtype).model, max_length=tokens),
    }
    for name in models:
        made[Path(name).name] = lambda name=name: other(name)  # type: ignore[misc]
    return made


def tfidf_rows(texts: Sequence[str]) -> np.ndarray:
    """Return TF-IDF vectors of texts, float32, rotated into as few dimensions as there are texts.

    A classifier with an L2 penalty depends only on inner products, which the rotation preserves, and so trains faster.
    """
    left, sizes, _ = np.linalg.svd(fit_tfidf(texts).transform(texts).toarray(), full_matrices=False)
    return np.asarray(left * sizes, dtype=np.float32)


def latent_rows(texts: Sequence[str], **settings: Any) -> np.ndarray:
    """Return a latent semantic analysis of texts by words, float32, scaled as in a model."""
    counts = fit_tfidf(texts, **settings).transform(texts)
    decomposition = TruncatedSVD(min(DIMENSION, len(texts) - 1), random_state=0).fit(counts)
    factors = scaling(decomposition.singular_values_, len(texts))
    return np.asarray(decomposition.transform(counts) * factors, dtype=np.float32)[:, factors > 0]
