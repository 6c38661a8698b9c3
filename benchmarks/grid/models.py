"""Train each system once per seed, and embed each data set with it once."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from benchmarks.grid.sets import TextSet, hash_columns
from benchmarks.grid.systems import Scale, System, step_count, system_preset
from benchmarks.grid.work import Work
from benchmarks.readers import embed_in_pieces
from benchmarks.rivals import train_rival
from simlte_st.compat import readable_tokens
from simlte_st.data import read_documents
from simlte_st.errors import DataError
from simlte_st.models.loading import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path

PIECE = 256
"""Texts per saved piece of embeddings."""


def identify_base(base: str) -> dict[str, Any]:
    """Identify a base by its name and weights, independently of its path."""
    folder = packaged_base_path() if base == PACKAGED_BASE else Path(base)
    weights = folder / "model.safetensors"
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()[:16] if weights.exists() else None
    return {"name": Path(base).name if folder.is_dir() else base, "sha256": sha256}


def draw_corpus(path: Path, limit: int | None) -> list[dict[str, str]]:
    """Draw the training documents of all systems."""
    reservoir: list[dict[str, str]] = []
    generator = random.Random(0)
    for number, document in enumerate(read_documents(path)):
        row = {"id": document.id, "text": document.text}
        if limit is None or number < limit:
            reservoir.append(row)
        elif (slot := generator.randrange(number + 1)) < limit:  # reservoir sampling (Vitter, 1985)
            reservoir[slot] = row
    return reservoir


class Models:
    """Encoders and embeddings of all systems, computed on first use."""

    def __init__(self, work: Work, scale: Scale, corpus: Path | None) -> None:
        self.work, self.scale, self.corpus = work, scale, corpus
        self._loaded: tuple[str, SentenceTransformer] | None = None

    @cached_property
    def documents(self) -> list[dict[str, str]]:
        """The training documents."""
        if self.corpus is None or not self.corpus.exists():
            raise DataError("There is no corpus to train on: pass --corpus.")
        return draw_corpus(self.corpus, self.scale.corpus_documents)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that affect the results in a work folder."""
        corpus = None
        if self.corpus is not None and self.corpus.exists():
            texts = (document["text"] for document in self.documents)
            corpus = {"name": self.corpus.name, "documents": len(self.documents), "sha256": hash_columns(texts)}
        omitted = ("name", "base", "seeds", "bf16")
        return {
            **{name: value for name, value in vars(self.scale).items() if name not in omitted},
            "ablation_data": list(self.scale.ablation_data),
            "scale": self.scale.name,
            "base": identify_base(self.scale.base),
            "corpus": corpus,
            "dtype": "bfloat16" if self.scale.bf16 else "float32",
        }

    def train(self, system: System, seed: int) -> Path:
        """Return the folder of a trained system; train it first if necessary."""
        name = f"models/{system.file_name(seed)}"
        folder = self.work.folder / name

        def make() -> Mapping[str, Any]:
            documents, scale, preset = self.documents, self.scale, system_preset(system, self.scale, seed)
            steps = step_count(system, scale, len(documents))
            if system.corpus_share is not None:
                budget = len(documents) if scale.steps is None else scale.steps * scale.batch_size
                documents = documents[: max(2, round(system.corpus_share * budget))]
            common: dict[str, Any] = {"steps": steps, "preset": preset, "seed": seed, "bf16": scale.bf16}
            train_rival(system.rival, documents, scale.base, folder, **common)
            return {"documents": len(documents), "steps": steps, "batch_size": preset.batch_size}

        self.work.finish(name, self.settings, make)
        return folder

    def encoder(self, system: System, seed: int) -> SentenceTransformer:
        """Return a system's encoder; only the last one stays loaded."""
        name = system.file_name(seed)
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # free its memory before loading the next one
            source = self.train(system, seed) if system.rival else system.repository or self.scale.base
            model = load_model(source, dtype=torch.float32).copy(system.pooling).model.eval()
            model.max_seq_length = min(self.scale.read, readable_tokens(model) or self.scale.read)
            self._loaded = (name, model)
        return self._loaded[1]

    def embeddings(self, system: System, seed: int, data: TextSet) -> np.ndarray:
        """Return a system's embeddings of a data set; compute them first if necessary."""
        name = f"embeddings/{data.name}/{system.file_name(seed)}"

        def encode(start: int, stop: int) -> np.ndarray:
            model = self.encoder(system, seed)
            with torch.autocast(model.device.type, torch.bfloat16, enabled=self.scale.bf16):
                return model.encode(data.texts(start, stop), prompt=system.prompt, show_progress_bar=False)

        def make() -> Mapping[str, Any]:
            embed_in_pieces(self.work.folder / name, encode, len(data), PIECE)
            return {"texts": len(data)}

        self.work.finish(name, {**self.settings, "data": data.identity}, make)
        return embed_in_pieces(self.work.folder / name, encode, len(data), PIECE)
