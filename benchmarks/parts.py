"""Finished parts of a benchmark in a folder, so that an interrupted one goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.compat import readable_tokens
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.models.base import load_model


class Parts:
    """A folder of parts that were all made with the same settings."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder, self.settings = folder, settings
        path = folder / "settings.json"
        if not path.exists():
            write_json(path, settings)
        elif read_json(path) != settings:
            raise SystemExit(f"{folder} holds results of other settings: give another --work.")

    def finished(self, name: str) -> dict[str, Any] | None:
        """A part, if it is there."""
        path = self.folder / f"{name}.json"
        record: dict[str, Any] | None = read_json(path) if path.exists() else None
        return record

    def every(self) -> dict[str, dict[str, Any]]:
        """All parts that are there, by name."""
        return {path.stem: read_json(path) for path in sorted(self.folder.glob("*.json")) if path.stem != "settings"}

    def finish(self, name: str, make: Callable[[], dict[str, Any]]) -> None:
        """Make a part, unless it is there."""
        if self.finished(name) is None:
            print(name, flush=True)
            write_json(self.folder / f"{name}.json", make())

    def embed(self, name: str, model: SentenceTransformer, texts: Sequence[str], piece: int = 64) -> np.ndarray:
        """Encode texts, keeping every ``piece`` of them when it is done."""
        pieces = []
        for start in range(0, len(texts), piece):
            path = self.folder / f"{name}.embeddings" / f"{start:07d}.npy"
            if not path.exists():
                vectors = model.encode(list(texts[start : start + piece]), batch_size=16, convert_to_numpy=True)
                with atomic_path(path) as temporary:
                    np.save(temporary, np.asarray(vectors, dtype=np.float32))
                print(f"{name}: {min(start + piece, len(texts))} of {len(texts)} texts", flush=True)
            pieces.append(np.load(path))
        return np.concatenate(pieces)


def readers(
    base: str, models: Sequence[str], tokens: int, dtype: torch.dtype = torch.float32
) -> dict[str, Callable[[], SentenceTransformer]]:
    """The models of a benchmark by name: the base truncated, its chunk-mean, and others as long as they can read.

    Args:
        base: Name or folder of the base model, read as far as it is made for.
        models: Names or folders of other models.
        tokens: Tokens that chunk-mean and the others read of a text at most.
        dtype: What all of them compute in.
    """

    def other(name: str) -> SentenceTransformer:
        model = load_model(name, dtype=dtype).model
        model.max_seq_length = min(tokens, readable_tokens(model) or tokens)
        return model

    made: dict[str, Callable[[], SentenceTransformer]] = {
        f"{Path(base).name}, truncated": lambda: load_model(base, dtype=dtype).model,
        f"{Path(base).name}, chunk-mean": lambda: to_chunk_mean(load_model(base, dtype=dtype).model, max_length=tokens),
    }
    for name in models:
        if Path(name).name in made:
            raise SystemExit(f"Two models are called {Path(name).name!r}: rename a folder.")
        made[Path(name).name] = lambda name=name: other(name)  # type: ignore[misc]
    return made
