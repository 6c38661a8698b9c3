"""The rivals that have a loss and data of their own: the stock Trainer, set up as :func:`simlte_st.train` does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn
from transformers import TrainerCallback

from benchmarks.rivals.job import Outcome, RivalJob
from simlte_st.compat import forget_model_card_text
from simlte_st.data.views import Identity
from simlte_st.training.callbacks import ProgressBarCallback
from simlte_st.training.config import TrainConfig
from simlte_st.training.fit import make_trainer, training_arguments
from simlte_st.training.load_model import load_model
from simlte_st.training.run import TrainingRun

TEXT = Identity()
"""What a document's text is, where an objective takes one: as much of it as the model reads, another part each epoch.

The same that SimCSE-long gets.
"""


@dataclass(frozen=True)
class Prepared:
    """What a run begins with.

    Attributes:
        run: The model, as it will be saved, what draws its texts, and the tokens that it reads when it is finished.
        trained: The same modules without ``Normalize``: these objectives take embeddings of any length, which a base
            that scales them to 1 would bar them from.
        corpus: The segmented documents.
    """

    run: TrainingRun
    trained: SentenceTransformer
    corpus: Dataset


def prepare(job: RivalJob) -> Prepared:
    """Load the base with the preset's pooling, length and dropout, and segment the documents."""
    preset = job.preset.changed(view=TEXT, mlm_weight=0.0)
    run = TrainingRun(job.documents, job.path, TrainConfig(base=job.base, preset=preset, seed=job.seed))
    run.folder.base = job.work / "base"
    load_model(run)
    corpus = run.views.attach(job.documents, directory=job.work / "corpus", progress=job.progress)
    modules = [module for module in run.model if not isinstance(module, Normalize)]
    trained = SentenceTransformer(modules=modules, device=str(run.model.device))
    return Prepared(run, trained, corpus.with_format(None))


def run(
    job: RivalJob,
    prepared: Prepared,
    loss: nn.Module,
    dataset: Dataset,
    sampler: Callable[..., Any],
    *callbacks: TrainerCallback,
) -> Outcome:
    """Train and save."""
    preset, model = job.preset, prepared.run.model
    loss.train()  # the Trainer sees to the model only
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
    bar = [ProgressBarCallback(arguments.train_batch_size)] if job.progress else []
    trainer = make_trainer(prepared.trained, arguments, dataset, loss, [*callbacks, *bar])
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    model.eval()
    model.max_seq_length = prepared.run.reads
    forget_model_card_text(model)
    model.save_pretrained(str(job.path), create_model_card=False)
    return Outcome(len(prepared.corpus), seconds, trainer.state.log_history)
