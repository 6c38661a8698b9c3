"""Train objectives with their own loss and data in the stock Trainer, set up as in :func:`simlte_st.train`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn
from transformers import TrainerCallback

from simlte_st.data import Identity
from simlte_st.training import Preset
from simlte_st.training.fit import make_trainer, training_arguments
from simlte_st.training.prepare_model import TrainingSetup, prepare_model
from simlte_st.training.run import Run, RunFolder

TEXT = Identity()
"""The view for objectives on single texts, as in SimCSE-long: a part of a document that fits the model, drawn anew in
each epoch."""


@dataclass(frozen=True)
class RivalJob:
    """One training run.

    Attributes:
        documents: Anything that :func:`~simlte_st.data.read_documents` accepts.
        base: The model to start from.
        path: Output folder; objectives in this module use a temporary folder.
        preset: The common settings, with the rival's own changes.
        steps: Optimizer steps.
        seed: Seed of all random numbers.
        bf16: Compute in bfloat16.
    """

    documents: Any
    base: str | os.PathLike[str]
    path: Path
    preset: Preset
    steps: int
    seed: int
    bf16: bool

    @property
    def work(self) -> Path:
        """Folder for temporary files."""
        return self.path.with_name(f"{self.path.name}.work")


@dataclass(frozen=True)
class Prepared:
    """Inputs of a training run.

    Attributes:
        loaded: The model to save, its views and its maximum length.
        trained: The same modules without ``Normalize``; these objectives need unnormalised embeddings.
        corpus: The segmented documents.
    """

    loaded: TrainingSetup
    trained: SentenceTransformer
    corpus: Dataset


def prepare_rival(job: RivalJob) -> Prepared:
    """Load the base with the preset's pooling, length and dropout, and segment the documents."""
    preset = job.preset.changed(view=TEXT, mlm_weight=0.0)
    loaded = prepare_model(Run(RunFolder(job.work), seed=job.seed), os.fspath(job.base), preset, {})
    corpus = loaded.views.attach(job.documents, directory=job.work / "corpus")
    modules = [module for module in loaded.model if not isinstance(module, Normalize)]
    trained = SentenceTransformer(modules=modules, device=str(loaded.model.device))
    return Prepared(loaded, trained, corpus.with_format(None))


def train_and_save(
    job: RivalJob,
    prepared: Prepared,
    loss: nn.Module,
    dataset: Dataset,
    sampler: Callable[..., Any],
    *callbacks: TrainerCallback,
) -> None:
    """Train and save."""
    preset, model = job.preset, prepared.loaded.model
    loss.train()  # the Trainer switches only the model
    arguments = training_arguments(
        job.work / "checkpoints",
        batch_size=min(preset.batch_size, len(dataset)),
        epochs=preset.epochs,
        steps=job.steps,
        max_steps=job.steps,
        learning_rate=preset.learning_rate,
        warmup=preset.warmup,
        bf16=job.bf16,
        seed=job.seed,
        batch_sampler=sampler,
        save_strategy="no",
    )
    make_trainer(prepared.trained, arguments, dataset, loss, list(callbacks)).train()
    model.eval()
    model.max_seq_length = prepared.loaded.reads
    model._model_card_text = None  # so that it writes a new card
    model.save_pretrained(str(job.path), create_model_card=False)
