"""How this package's own models are made: the base, reading piece by piece, teaches one pass over the whole document.

The teacher is the frozen base: the mean of its embeddings of short pieces, in which the beginning weighs more, as in
:class:`~simlte_st.modules.PositionPooling`. The student begins as the base, and learns by low-rank adapters to have the
teacher's embedding after one pass (EmbedDistill: Kim et al., 2023). Of short texts both have the same from the start,
and a short excerpt of each document among the lessons keeps it so. No labels, and no document is told from another:
what is learned is to read, which holds on documents of other kinds.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss

from benchmarks.builder.account import Build
from benchmarks.builder.difference import take_difference, write_difference
from benchmarks.builder.lessons import PIECE, Lessons, make_lessons
from benchmarks.builder.lora import add_lora
from simlte_st.data.document import Document
from simlte_st.errors import ConfigurationError
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.base import load_model
from simlte_st.models.names import OWN_ENCODERS, base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, DIFFERENCE_FILE, add_difference, untrained
from simlte_st.modules.position_pooling import FLAT, POWER
from simlte_st.training.batching import SeededBatchSampler
from simlte_st.training.dropout import set_dropout

RANK = 16
LEARNING_RATE = 5e-4
WARMUP = 0.05
BATCH_TOKENS = 8192

TAUGHT = 4096
"""Tokens of a document that the teacher reads."""

READ = {"simlte-bert": (512,), "simlte-longformer": (2048, 512)}
"""Tokens of a document that the student sees in training, in a row for each; most first. What it does not see it
learns to predict from what it does."""


class TokenBatches(SeededBatchSampler):
    """Batches of at most :data:`BATCH_TOKENS` tokens, of lessons in random order."""

    def __init__(self, *arguments: Any, lengths: Sequence[int], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lengths = lengths

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the batches of the current epoch."""
        batch: list[int] = []
        tokens = 0
        for row in self.sampler:
            if batch and tokens + self.lengths[row] > BATCH_TOKENS:
                yield batch
                batch, tokens = [], 0
            batch.append(row)
            tokens += self.lengths[row]
        yield batch


def build_model(
    name: str,
    documents: Iterable[Document],
    output: str | os.PathLike[str],
    *,
    max_steps: int | None = None,
    seed: int = 0,
    bf16: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> Build:
    """Make one of this package's models from documents.

    Beside the model lie its difference from the base, its card and the account of the run: the three files that the
    package carries of it.
    """
    if name not in OWN_ENCODERS:
        raise ConfigurationError(
            f"{name!r} is none of {', '.join(OWN_ENCODERS)}. A model of another name is made with: "
            f"simlte train SOURCE --name {name}"
        )
    if max_steps is not None and max_steps < 1:
        raise ConfigurationError(f"max_steps={max_steps}: at least one step is needed.")
    check_free(Path(output), overwrite)
    dtype = "bfloat16" if bf16 else "float32"
    base = base_of_own_models()
    teacher = load_model(base, dtype=torch.float32).model
    lessons = make_lessons(
        documents, teacher, taught=TAUGHT, seen=READ[name], seed=seed, dtype=dtype, progress=progress
    )
    model = untrained(name, base)
    began = time.perf_counter()
    log, steps = _train(model, lessons, max(READ[name]), max_steps, bf16, seed, progress)
    build = Build(
        name=name,
        documents=lessons.documents,
        sha256=lessons.sha256,
        tokens=sum(lessons.table["tokens"]),
        steps=steps,
        teaching_seconds=lessons.seconds,
        training_seconds=time.perf_counter() - began,
        device=model.device.type,
        threads=torch.get_num_threads(),
        dtype=dtype,
        seed=seed,
        distance=_distances(log),
        recipe=recipe(name),
    )
    with atomic_path(output) as path:
        finished = untrained(name, base)
        path.mkdir()
        difference = take_difference(finished, model.to("cpu"), RANK)
        write_difference(path / DIFFERENCE_FILE, difference, {"name": name, "seed": seed, "steps": steps})
        add_difference(finished, path / DIFFERENCE_FILE)  # the model that users get, from the same numbers
        finished.save_pretrained(str(path), create_model_card=False)
        (path / CARD_FILE).write_text(build.card(), encoding="utf-8")
        write_json(path / BUILD_FILE, build.to_dict())
    return build


def recipe(name: str) -> dict[str, Any]:
    """Return the settings of the method for a model, by name."""
    return {
        "student_lengths": list(READ[name]),
        "teacher_length": TAUGHT,
        "piece": PIECE,
        "power": POWER,
        "flat": FLAT,
        "rank": RANK,
        "learning_rate": LEARNING_RATE,
        "batch_tokens": BATCH_TOKENS,
    }


def _train(
    model: SentenceTransformer,
    lessons: Lessons,
    length: int,
    max_steps: int | None,
    bf16: bool,
    seed: int,
    progress: bool,
) -> tuple[list[dict[str, Any]], int]:
    """Train adapters on the lessons and merge them, in place; give the Trainer's log and the number of steps."""
    adapters = add_lora(model, RANK, seed=seed)
    set_dropout(model, 0.0)
    model.max_seq_length = length
    sampler = partial(TokenBatches, lengths=lessons.table["tokens"])
    count = len(sampler(lessons.table, batch_size=1, drop_last=False, seed=seed))
    steps = max_steps or count
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            max_steps=steps,
            learning_rate=LEARNING_RATE,
            warmup_steps=math.ceil(steps * WARMUP),
            weight_decay=0.0,
            seed=seed,
            bf16=bf16,
            batch_sampler=sampler,
            logging_steps=max(1, min(50, steps // 20)),
            save_strategy="no",
            report_to="none",
            disable_tqdm=not progress,
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=lessons.table.select_columns(["text", "label"]),
            loss=EmbedDistillLoss(model, distance_metric="cosine"),
        )
        trainer.train()
    adapters.merge_and_unload(safe_merge=True)
    return trainer.state.log_history, trainer.state.global_step


def _distances(log: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Average the loss over the first fifth of the log and over the last: batches are of unlike lengths."""
    losses = [float(line["loss"]) for line in log if "loss" in line]
    part = math.ceil(len(losses) / 5)
    return (sum(losses[:part]) / part, sum(losses[-part:]) / part) if losses else (math.nan, math.nan)
