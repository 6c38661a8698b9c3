"""How this package's own models are made: the base, reading piece by piece, teaches one pass over the whole document.

The teacher is the frozen base: the mean of its embeddings of short pieces, in which the beginning weighs more, as in
:class:`~simlte_st.modules.PositionPooling`. The student begins as the base, and learns by low-rank adapters to have the
teacher's embedding after one pass (EmbedDistill: Kim et al., 2023). Of short texts both have the same from the start,
and a short excerpt of each document among the lessons keeps it so. No labels, and no document is told from another:
what is learned is to read, which holds on documents of other kinds.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from transformers import set_seed

from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError
from simlte_st.extras import require
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.models.base import load_model
from simlte_st.models.device import check_device
from simlte_st.models.difference import DIFFERENCE_FILE, add_difference, take_difference, write_difference
from simlte_st.models.names import OWN_MODELS, base_of_own_models, model_path
from simlte_st.models.shipped import BUILD_FILE, CARD_FILE, DIGEST_FILE, untrained
from simlte_st.modules.position_pooling import FLAT, POWER
from simlte_st.training.batching import ConfiguredBatchSampler, TokenBudgetBatchSampler
from simlte_st.training.build import Build
from simlte_st.training.callbacks import CompleteCallback, InterruptCallback, ProgressBarCallback
from simlte_st.training.divergence import DivergenceCallback, check_weights
from simlte_st.training.dropout import set_dropout
from simlte_st.training.fit import Batches, Fitting, documents_of_step, fit, make_trainer, training_arguments
from simlte_st.training.lessons import ACCOUNT_FILE, PIECE, lessons
from simlte_st.training.lora import LoraStateCallback, add_lora, merge_lora
from simlte_st.training.run import RunFolder, bf16_available, described, several_processes
from simlte_st.training.step_time import StepTimeCallback

logger = logging.getLogger(__name__)

RANK = 16
LEARNING_RATE = 5e-4
WARMUP = 0.05
BATCH_TOKENS = 8192

TAUGHT = 4096
"""Tokens of a document that the teacher reads."""

READ = {"simlte-bert": (512,), "simlte-longformer": (2048, 512)}
"""Tokens of a document that the student sees in training, in a row for each; most first. What it does not see it
learns to tell from what it does."""


def build_model(
    name: str,
    source: Any,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    encoding: str = "utf-8",
    limit: int | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    bf16: bool | None = None,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> Build:
    """Make one of this package's models from documents, into the user's model folder.

    Beside the model lies its difference from the base, which is all that the package carries of it.

    Args:
        name: ``"simlte-longformer"`` or ``"simlte-bert"``.
        source: The documents; anything :func:`~simlte_st.data.read_documents` takes.
        text_column: As for :func:`~simlte_st.training.train`, as are all that follow.
        id_column: See there.
        encoding: See there.
        limit: See there.
        max_steps: Stop after so many steps instead of one pass.
        seed: See there.
        bf16: See there.
        device: See there.
        resume: See there.
        overwrite: See there.
        progress: See there.

    Returns:
        What was done.

    Raises:
        ConfigurationError: Another name; a setting out of its range; or there is a model of that name already.
        DataError: The documents cannot be read, or there are fewer than two.
        MissingExtraError: ``peft`` is not installed.
        ModelError: The base is not to be had.
        TrainingInterrupted: Ctrl-C; go on with ``resume=True``.
    """
    if name not in OWN_MODELS:
        raise ConfigurationError(
            f"{name!r} is none of {', '.join(OWN_MODELS)}. A model of another name is made with: "
            f"simlte train SOURCE --name {name}"
        )
    if max_steps is not None and max_steps < 1:
        raise ConfigurationError(f"max_steps={max_steps}: at least one step is needed.")
    if several_processes():
        raise ConfigurationError("simlte_st's own models are made in one process: start it without torchrun.")
    check_device(device)
    require("peft", "lora", "making this model")
    dtype = "bfloat16" if (bf16_available(device) if bf16 is None else bf16) else "float32"
    reading = {"text_column": text_column, "id_column": id_column, "encoding": encoding, "limit": limit}
    told = {"build": name, "source": described(source), **reading, "max_steps": max_steps, "seed": seed, "dtype": dtype}
    target = model_path(name)
    copied = (target / DIGEST_FILE).is_file()  # the one that comes with the package
    folder = RunFolder.open(target, told, resume=resume, overwrite=overwrite, replaces=copied)
    set_seed(seed)
    try:
        with folder.beginning():
            base = str(base_of_own_models())
            reader = read_documents(source, **reading)  # type: ignore[arg-type]
            lesson: dict[str, Any] = {"seed": seed, "dtype": dtype, "device": device, "progress": progress}
            table = lessons(reader, base, folder.path, taught=TAUGHT, seen=READ[name], **lesson)
            if not folder.base.exists():
                with atomic_path(folder.base) as path:
                    untrained(name, base).save_pretrained(str(path), create_model_card=False)
            model = load_model(folder.base, dtype=torch.float32, device=device).model
            fitting = _set_up(name, model, table, folder, max_steps, dtype, device, seed, progress)
        fitted = fit(fitting, folder)
        merge_lora(model)
        check_weights(model, "at the end")
        account = read_json(folder.path / ACCOUNT_FILE)
        build = Build(
            output=folder.output,
            name=name,
            documents=account["documents"],
            sha256=account["sha256"],
            tokens=account["tokens"],
            steps=fitted.steps,
            teaching_seconds=account["seconds"],
            training_seconds=fitted.seconds,
            device=model.device.type,
            threads=torch.get_num_threads(),
            dtype=dtype,
            seed=seed,
            distance=_distances(fitted.log),
            recipe=_recipe(name),
        )
        with atomic_path(folder.output) as path:
            finished = untrained(name, base)
            path.mkdir()
            difference = take_difference(finished, model.to("cpu"), RANK)
            write_difference(path / DIFFERENCE_FILE, difference, {"name": name, "seed": seed, "steps": build.steps})
            add_difference(finished, path / DIFFERENCE_FILE)  # the model that users get, from the same numbers
            finished.save_pretrained(str(path), create_model_card=False)
            (path / CARD_FILE).write_text(build.card(), encoding="utf-8")
            write_json(path / BUILD_FILE, build.to_dict())
        folder.close()
        return build
    finally:
        folder.release()


def _recipe(name: str) -> dict[str, Any]:
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


def _set_up(
    name: str,
    model: SentenceTransformer,
    table: Dataset,
    folder: RunFolder,
    max_steps: int | None,
    dtype: str,
    device: str | None,
    seed: int,
    progress: bool,
) -> Fitting:
    """Make the Trainer."""
    add_lora(model, RANK, seed=seed)
    set_dropout(model, 0.0)
    model.max_seq_length = max(READ[name])
    loss = EmbedDistillLoss(model, distance_metric="cosine")
    lengths = np.array(table["tokens"], dtype=np.int64)[:, None]
    sampler = ConfiguredBatchSampler(
        TokenBudgetBatchSampler, lengths=lengths, batch_tokens=BATCH_TOKENS, packed=name == "simlte-longformer"
    )
    count = len(sampler(table, batch_size=1, drop_last=False, seed=seed))
    batches = Batches(sampler, max(1, round(len(table) / count)), count)
    steps = max_steps or count
    logger.info("%s steps planned.", f"{steps:,}")
    arguments = training_arguments(
        folder.checkpoints,
        batch_size=batches.size,
        epochs=math.ceil(steps / count),
        steps=steps,
        max_steps=steps,
        learning_rate=LEARNING_RATE,
        warmup=WARMUP,
        bf16=dtype == "bfloat16",
        device=device,
        seed=seed,
        batch_sampler=sampler,
        save_strategy="steps",
        save_steps=max(10, steps // 10),
        save_total_limit=2,
    )
    adapters = LoraStateCallback(model)
    interrupt = InterruptCallback()
    divergence = DivergenceCallback(model, loss, lambda step: documents_of_step(arguments, batches, table, step))
    callbacks = [
        *([ProgressBarCallback(batches.size)] if progress else []),
        adapters,
        divergence,
        StepTimeCallback(loss),
        CompleteCallback(),
        interrupt,
    ]
    trainer = make_trainer(model, arguments, table.select_columns(["text", "label"]), loss, callbacks)
    return Fitting(trainer, interrupt, divergence, adapters)


def _distances(log: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Average the loss over the first fifth of the log and over the last: batches are of unlike lengths."""
    losses = [float(line["loss"]) for line in log if "loss" in line]
    part = math.ceil(len(losses) / 5)
    return (sum(losses[:part]) / part, sum(losses[-part:]) / part) if losses else (math.nan, math.nan)
