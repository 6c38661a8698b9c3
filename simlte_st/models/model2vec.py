"""Static models in model2vec's format, which sentence-transformers loads too; written without model2vec."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

WEIGHTS, SETTINGS, TOKENIZER = "model.safetensors", "config.json", "tokenizer.json"
_STOCK, _MODEL2VEC = "embedding.weight", "embeddings"


def write_for_model2vec(folder: Path) -> None:
    """Make a saved static model one that model2vec loads as well, with the same embeddings of whole texts."""
    weights = load_file(folder / WEIGHTS)
    embeddings = weights.pop(_STOCK)
    save_file({_MODEL2VEC: embeddings, **weights}, folder / WEIGHTS)
    (folder / SETTINGS).write_text(settings(embeddings.shape[1], "float32"), encoding="utf-8")


def save_compressed(folder: Path, embeddings: NDArray[np.float32]) -> None:
    """Write embeddings of tokens in 8 bits, each with a scale of its own, which is model2vec's weight of a token."""
    largest = np.abs(embeddings).max(axis=1)
    scale = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    numbers = np.rint(embeddings / scale[:, None]).astype(np.int8)
    save_file({_MODEL2VEC: numbers, "weights": scale}, folder / WEIGHTS)
    (folder / SETTINGS).write_text(settings(embeddings.shape[1], "int8"), encoding="utf-8")


def settings(dimension: int, dtype: str) -> str:
    """Return model2vec's settings of a model whose embeddings have length 1."""
    found = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "hidden_dim": dimension,
        "normalize": True,
        "max_length": None,  # else model2vec reads the first 512 tokens
        "embedding_dtype": dtype,
    }
    return json.dumps(found, indent=2) + "\n"
