"""Making the systems: training each once a seed, and embedding each data set once with it."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.grid.scales import Scale
from benchmarks.grid.sets import Texts, digest
from benchmarks.grid.systems import System, preset_of, steps_of
from benchmarks.grid.work import Unavailable, Work
from benchmarks.readers import embed
from benchmarks.rivals import HUB_MODELS, ModelEncoder, load_encoder, train_rival
from simlte_st.compat import readable_tokens
from simlte_st.data import read_documents
from simlte_st.errors import DataError, ModelError, SimlteError
from simlte_st.models.base import load_model
from simlte_st.models.names import PACKAGED_BASE, packaged_base_path

PIECE = 256
"""Texts that are embedded and kept at once."""


class Base:
    """The model that everything begins with, known by its weights."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what identifies the model, without its place on this machine."""
        folder = packaged_base_path() if self.name == PACKAGED_BASE else Path(self.name)
        weights = folder / "model.safetensors"
        if folder.is_dir() and not weights.exists():
            raise ModelError(f"{folder} holds no model.safetensors.")
        sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()[:16] if weights.exists() else None
        return {"name": Path(self.name).name if folder.is_dir() else self.name, "sha256": sha256}


class Corpus:
    """The documents that systems are trained on, drawn once for all of them."""

    def __init__(self, path: Path, most: int | None) -> None:
        self.path, self.most = path, most

    @cached_property
    def documents(self) -> list[dict[str, str]]:
        """The documents."""
        chosen: list[dict[str, str]] = []
        generator = random.Random(0)
        for number, document in enumerate(read_documents(os.fspath(self.path))):
            row = {"id": document.id, "text": document.text}
            if self.most is None or number < self.most:
                chosen.append(row)
            elif (place := generator.randrange(number + 1)) < self.most:  # reservoir sampling (Vitter, 1985)
                chosen[place] = row
        return chosen

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Return what identifies the documents."""
        texts = (document["text"] for document in self.documents)
        return {"name": self.path.name, "documents": len(self.documents), "sha256": digest(texts)}


class Models:
    """Encoders and embeddings of all systems, made when they are first needed."""

    def __init__(
        self, work: Work, scale: Scale, base: Base, corpus: Corpus | None, trust_remote_code: bool = False
    ) -> None:
        self.work, self.scale, self.base, self.corpus = work, scale, base, corpus
        self.trust_remote_code = trust_remote_code
        self._loaded: tuple[str, ModelEncoder] | None = None

    def settings(self, system: System, seed: int) -> dict[str, Any]:
        """Return all that decides a system's weights, or what an untrained one is."""
        if not system.rival:
            settings: dict[str, Any] = {"encoder": system.name}
            if system.group == "hub":
                return {**settings, "repository": HUB_MODELS[system.name].repository}
            if not system.embeds:
                return settings
            chunks = {"chunk_tokens": self.scale.chunk_tokens} if system.name == "chunk-mean" else {}
            return {**settings, "base": self.base.identity, **chunks}
        if self.corpus is None:
            raise DataError("there is no corpus to train on: give --corpus, or a --shared folder that holds one.")
        preset = preset_of(system, self.scale, seed)
        return {
            "rival": system.rival,
            "base": self.base.identity,
            "corpus": self.corpus.identity,
            "documents": self._documents(system),
            "preset": self.scale.preset,
            "steps": self._steps(system),
            "batch_size": preset.batch_size,
            "tokens": preset.max_view_length,
            "learning_rate": preset.learning_rate,
            "pooling": preset.pooling,
            "changes": {name: plain(getattr(preset, name)) for name in sorted(system.changes)},
            "dtype": self.scale.dtype,
            "seed": seed,
        }

    def _steps(self, system: System) -> int:
        assert self.corpus is not None
        return steps_of(system, self.scale, self.corpus.identity["documents"])

    def _documents(self, system: System) -> int:
        """Count the documents that a system meets."""
        assert self.corpus is not None
        number: int = self.corpus.identity["documents"]
        if system.corpus_share is None:
            return number
        budget = number if self.scale.steps is None else self.scale.steps * self.scale.batch_size
        return max(2, min(number, round(system.corpus_share * budget)))

    def train(self, system: System, seed: int) -> Path:
        """Train a system, or find it trained."""
        name = f"models/{run_name(system, seed)}"
        settings = self.settings(system, seed)
        folder = self.work.folder / name

        def make() -> Mapping[str, Any]:
            assert self.corpus is not None
            print(f"Training {system.title}, seed {seed}", flush=True)
            record = train_rival(
                system.rival,
                self.corpus.documents[: settings["documents"]],
                self.base.name,
                folder,
                steps=settings["steps"],
                batch_size=settings["batch_size"],
                max_view_length=settings["tokens"],
                preset=preset_of(system, self.scale, seed),
                seed=seed,
                bf16=self.scale.bf16,
                overwrite=True,
                progress=True,
            ).to_dict()
            kept = ("documents", "encoder_tokens", "decoder_tokens", "passes", "seconds")
            return {name: record[name] for name in kept} | {"losses": _losses(record["log"])}

        self.work.finish(name, settings, make)
        if not folder.exists():
            raise ModelError(f"{folder} is gone: remove {self.work.path(name)}, and it is trained again.")
        return folder

    def encoder(self, system: System, seed: int) -> ModelEncoder:
        """Return a system ready to encode; the last one is kept."""
        name = run_name(system, seed)
        if self._loaded is None or self._loaded[0] != name:
            self._loaded = None  # before the next one is there
            try:
                self._loaded = (name, self._load(system, seed))
            except SimlteError as error:
                raise Unavailable(str(error)) from error
        return self._loaded[1]

    def _load(self, system: System, seed: int) -> ModelEncoder:
        if system.rival:
            model = load_model(self.train(system, seed), dtype=torch.float32).model
            model.max_seq_length = min(self.scale.read, readable_tokens(model) or self.scale.read)
            return ModelEncoder(model.eval())
        return load_encoder(
            system.name,
            base=self.base.name,
            max_seq_length=self.scale.read,
            chunk_mean_length=self.scale.chunk_tokens,
            trust_remote_code=self.trust_remote_code,
        )

    def embedding_settings(self, system: System, seed: int, data: Texts) -> dict[str, Any]:
        """Return all that decides a system's embeddings of a data set."""
        read = {} if system.name == "chunk-mean" else {"read": self.scale.read}
        dtype = {"dtype": self.scale.dtype} if self.scale.bf16 else {}
        return {"system": self.settings(system, seed), "data": data.identity, **read, **dtype}

    def embeddings(self, system: System, seed: int, data: Texts) -> np.ndarray:
        """Embed a data set with a system, or find it embedded."""
        name = f"embeddings/{data.name}/{run_name(system, seed)}"
        settings = self.embedding_settings(system, seed, data)
        # Pieces of an interrupted run with other settings are not to be taken for these.
        folder = self.work.folder / name / digest([json.dumps(settings, sort_keys=True)])

        def encode(start: int, stop: int) -> np.ndarray:
            encoder = self.encoder(system, seed)
            with torch.autocast(encoder.model.device.type, torch.bfloat16, enabled=self.scale.bf16):
                return encoder.encode(data.texts(start, stop), data.task)

        def make() -> Mapping[str, Any]:
            read = self.encoder(system, seed).model.max_seq_length
            began = time.perf_counter()
            embed(folder, encode, len(data), PIECE)
            seconds = round(time.perf_counter() - began, 2)  # of what was left to do
            return {"texts": len(data), "tokens_read": read, "encoding_seconds": seconds}

        self.work.finish(name, settings, make)
        return embed(folder, encode, len(data), PIECE)


def run_name(system: System, seed: int) -> str:
    """Name a system's files: what is trained has a seed."""
    return f"{system.name}-{seed}" if system.rival else system.name


def plain(value: Any) -> Any:
    """Return a setting as JSON has it; a view by its repr."""
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)


def _losses(log: list[dict[str, Any]]) -> list[float]:
    return [line["loss"] for line in log if "loss" in line]
