"""The rivals that have a loss and data of their own: the stock Trainer, set up as :func:`simlte_st.train` does."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import nn
from transformers import (
    PrinterCallback,
    TrainerCallback,
    set_seed,
)

from benchmarks.rivals.job import Outcome, RivalJob
from simlte_st.compat import forget_model_card_text, readable_tokens, view_budget
from simlte_st.data.corpus import write_corpus
from simlte_st.data.documents import read_documents
from simlte_st.data.rival_views import Identity
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.models.base import load_model
from simlte_st.training.callbacks import ProgressBarCallback
from simlte_st.training.dropout import set_attention_dropout, set_dropout
from simlte_st.training.model import make_backbone
from simlte_st.training.presets import Preset
from simlte_st.training.run import RunFolder, bf16_available

TEXT = Identity()
"""What a document's text is, where an objective takes one: as much of it as the model reads, another part each epoch.

The same that SimCSE-long gets.
"""


@dataclass(frozen=True)
class Prepared:
    """What a run begins with.

    Attributes:
        model: The model, as it will be saved.
        trained: The same modules without ``Normalize``: these objectives take embeddings of any length, which a base
            that scales them to 1 would bar them from.
        reads: Tokens that the finished model reads.
        corpus: The segmented documents.
        budget: Tokens of a document that fit a text; None for no bound.
    """

    model: SentenceTransformer
    trained: SentenceTransformer
    reads: int | None
    corpus: Dataset
    budget: int | None


def prepare(job: RivalJob) -> Prepared:
    """Load the base with the preset's pooling and length, and segment the documents.

    Raises:
        DataError: The documents cannot be read, or fewer than two can be used.
        ModelError: The base cannot be loaded.
        ConfigurationError: It has no positions for ``max_seq_length`` tokens.
    """
    set_seed(job.seed)
    preset = job.preset
    loaded = load_model(os.fspath(job.base), dtype=torch.float32)
    backbone = make_backbone(loaded, preset, RunFolder(job.path, job.work))
    model = backbone.model(preset.max_seq_length)
    modules = [module for module in model if not isinstance(module, Normalize)]
    corpus, _ = write_corpus(
        read_documents(job.documents),
        job.work / "corpus",
        view=TEXT,
        segmenter=job.segmenter,
        count_tokens=tokenizer_counter(model.tokenizer),
        progress=job.progress,
    )
    return Prepared(
        model=model,
        trained=SentenceTransformer(modules=modules, device=str(model.device)),
        reads=loaded.model.max_seq_length if backbone.name == loaded.name else readable_tokens(model),
        corpus=corpus,
        budget=view_budget(model),
    )


def set_dropouts(module: nn.Module, preset: Preset) -> None:
    """Set the preset's dropouts."""
    if preset.dropout is not None:
        set_dropout(module, preset.dropout)
    if preset.attention_dropout is not None:
        set_attention_dropout(module, preset.attention_dropout)


def run(
    job: RivalJob,
    prepared: Prepared,
    loss: nn.Module,
    rows: int,
    collator: SentenceTransformerDataCollator,
    sampler: Callable[..., Any],
    *callbacks: TrainerCallback,
) -> Outcome:
    """Train and save.

    Args:
        job: The job.
        prepared: The model and its corpus.
        loss: The loss around ``prepared.trained``; it is put into training mode, all of it.
        rows: Rows of the data set that the collator knows how to read.
        collator: Makes a batch of row numbers.
        sampler: For ``batch_sampler=`` of the training arguments.
        *callbacks: What else the Trainer must tell.
    """
    preset = job.preset
    loss.train()  # the Trainer sees to the model only
    size = min(preset.batch_size, rows)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(job.work / "checkpoints"),
        per_device_train_batch_size=size,
        max_steps=job.steps,
        learning_rate=preset.learning_rate,
        warmup_steps=math.ceil(job.steps * preset.warmup),
        weight_decay=0.0,
        seed=job.seed,
        bf16=bf16_available() if job.bf16 is None else job.bf16,
        use_cpu=not has_accelerator(),
        batch_sampler=sampler,
        dataloader_pin_memory=has_accelerator(),
        save_strategy="no",
        logging_steps=max(1, min(50, job.steps // 20)),
        report_to="none",
        disable_tqdm=True,
    )
    # Without these the Trainer would look for some in the documents.
    example: dict[str, Any] = {"source_sentence": "A document ...", "sentences": ["Another ..."]}
    prepared.trained.model_card_data.widget = [example]
    bar = [ProgressBarCallback(size)] if job.progress else []
    trainer = SentenceTransformerTrainer(
        model=prepared.trained,
        args=arguments,
        train_dataset=Dataset(pa.table({ROW: pa.array(np.arange(rows), pa.int64())})),
        loss=loss,
        data_collator=collator,
        callbacks=[*callbacks, *bar],
    )
    trainer.remove_callback(PrinterCallback)
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    prepared.model.eval()
    prepared.model.max_seq_length = prepared.reads
    forget_model_card_text(prepared.model)
    prepared.model.save_pretrained(str(job.path), create_model_card=False)
    return Outcome(len(prepared.corpus), seconds, trainer.state.log_history)
