"""Build the shipped encoders: a base that reads in pieces teaches a model to read the whole document in one pass.

The teacher is the frozen base: a mean of its embeddings of short pieces that weights the beginning more, as in
:class:`~simlte_st.modules.PositionPooling`. The student starts from the base and learns the teacher's embedding
through low-rank adapters (EmbedDistill: Kim et al., 2023). On short texts both agree from the start; each batch
includes a short excerpt of every document to keep it so. Training uses no labels and contrasts no documents: the
student only learns to read, which carries over to other kinds of documents.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray
from safetensors.torch import save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch import Tensor

from benchmarks.builder.lora import add_lora
from simlte_st.errors import ModelError
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, DIFFERENCE_FILE, add_difference, linear_weights, make_untrained
from simlte_st.modules.position_pooling import FLAT, POWER
from simlte_st.reading.document import Document
from simlte_st.training.batches import SeededBatchSampler
from simlte_st.training.prepare_model import set_dropout

RANK = 16
LEARNING_RATE = 5e-4
WARMUP = 0.05
BATCH_TOKENS = 8192

TAUGHT = 4096
"""Maximum number of tokens of a document that the teacher reads."""

READ = {"simlte-bert": (512,), "simlte-longformer": (2048, 512)}
"""Tokens of a document that the student sees in training, one training row per length, longest first. It learns to
predict the part that it does not see."""

PIECE = 254
"""Tokens of one of the teacher's pieces: 256, the base's maximum, with special tokens. A word on a boundary can have
more tokens in two parts than as a whole; the teacher then misses the last ones."""

SHORT = (8, 64)
"""Minimum and maximum tokens of a short excerpt."""

LOST = 1e-3
"""Largest relative error of the factors of a weight change; rounding to float16 causes a third of it."""


def build_encoder(
    name: str,
    documents: Iterable[Document],
    output: Path,
    *,
    max_steps: int | None = None,
    seed: int = 0,
    bf16: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Build one of this package's encoders from documents and return the record of the run.

    The output folder also holds the difference from the base and the record, which ship with the package.
    """
    check_free(output, overwrite)
    base, dtype = base_of_own_models(), "bfloat16" if bf16 else "float32"
    began = time.perf_counter()
    table, sha256 = make_lessons(documents, load_model(base, dtype=torch.float32).model, READ[name], seed, bf16)
    taught = time.perf_counter()
    model = make_untrained(name, load_model(base, dtype=torch.float32, device="cpu").model)
    log, steps = train_student(model, table, name, max_steps, bf16, seed)
    build = {
        "name": name,
        "documents": len(set(table["id"])),
        "sha256": sha256,
        "tokens": sum(table["tokens"]),
        "steps": steps,
        "teaching_seconds": taught - began,
        "training_seconds": time.perf_counter() - taught,
        "device": model.device.type,
        "threads": torch.get_num_threads(),
        "dtype": dtype,
        "seed": seed,
        "distance": distances(log),
        "recipe": {
            "student_lengths": list(READ[name]),
            "teacher_length": TAUGHT,
            "piece": PIECE,
            "power": POWER,
            "flat": FLAT,
            "rank": RANK,
            "learning_rate": LEARNING_RATE,
            "batch_tokens": BATCH_TOKENS,
        },
    }
    with atomic_path(output) as path:
        finished = make_untrained(name, load_model(base, dtype=torch.float32, device="cpu").model)
        path.mkdir()
        difference = take_difference(finished, model.to("cpu"), RANK)
        write_difference(path / DIFFERENCE_FILE, difference, {"name": name, "seed": seed, "steps": steps})
        add_difference(finished, path / DIFFERENCE_FILE)  # save the model that users load
        finished.save_pretrained(str(path), create_model_card=False)
        write_json(path / BUILD_FILE, build)
    return build


def make_lessons(
    documents: Iterable[Document], teacher: SentenceTransformer, seen: Sequence[int], seed: int = 0, bf16: bool = False
) -> tuple[Dataset, str]:
    """Make the student's training data, and the SHA-256 of the documents' ids and texts.

    The data has rows for the beginnings of each document and one for a short excerpt: ``id``, ``text``, ``tokens``
    (special tokens included) and ``label``, the teacher's embedding, float32, ``[dim]``. The label of a beginning is
    the embedding of the whole document, up to :data:`TAUGHT` tokens.
    """
    rows: dict[str, list[Any]] = {"id": [], "text": [], "tokens": []}
    taught: dict[str, int] = {}
    labels, digest = [], hashlib.sha256()
    for document in documents:
        digest.update(f"{document.id}\n{document.text}\n".encode("utf-8", "surrogatepass"))
        for label, text, tokens in excerpts(teacher, document, seen, Random(f"{seed} {document.id}")):
            rows["id"].append(document.id)
            rows["text"].append(text)
            rows["tokens"].append(tokens)
            labels.append(taught.setdefault(label, len(taught)))
    with torch.autocast(teacher.device.type, torch.bfloat16, enabled=bf16):
        rows["label"] = list(teach(teacher, list(taught))[labels])
    return Dataset(pa.table(rows)), digest.hexdigest()


def excerpts(
    teacher: SentenceTransformer, document: Document, seen: Sequence[int], rng: Random
) -> list[tuple[str, str, int]]:
    """Return the beginnings of a document and a short excerpt, each as taught text, text and number of tokens."""
    spans = token_offsets(teacher, document.text)[: TAUGHT - 2]
    count = len(spans)
    if count == 0:
        return []
    whole = document.text[: spans[-1][1]]
    lengths = sorted({min(length - 2, count) for length in seen}, reverse=True)
    rows = [(whole, document.text[: spans[length - 1][1]], length + 2) for length in lengths]
    length = rng.randint(*SHORT)
    if count > length:
        begin = rng.randint(0, count - length)
        short = document.text[spans[begin][0] : spans[begin + length - 1][1]]
        rows.append((short, short, length + 2))
    return rows


def token_offsets(model: SentenceTransformer, text: str) -> NDArray[np.int64]:
    """Return the character offsets of each token, ``[tokens, 2]``."""
    found = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)


def teach(teacher: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
    """Compute the teacher's embeddings: weighted means over pieces, normalised."""
    pieces: list[str] = []
    owner: list[int] = []
    weights: list[float] = []
    for number, text in enumerate(texts):
        spans = token_offsets(teacher, text)
        weight = np.maximum(1.0, np.arange(1, len(spans) + 1) / FLAT) ** -POWER
        for begin in range(0, len(spans), PIECE):
            pieces.append(text[spans[begin][0] : spans[min(begin + PIECE, len(spans)) - 1][1]])
            owner.append(number)
            weights.append(float(weight[begin : begin + PIECE].sum()))
    found = teacher.encode(pieces, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
    sums = np.zeros((len(texts), found.shape[1]), dtype=np.float64)
    np.add.at(sums, owner, np.asarray(weights)[:, None] * found)
    unit: NDArray[np.float32] = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)
    return unit


class TokenBatches(SeededBatchSampler):
    """Batches of at most :data:`BATCH_TOKENS` tokens, in random order."""

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


def train_student(
    model: SentenceTransformer, lessons: Dataset, name: str, max_steps: int | None, bf16: bool, seed: int
) -> tuple[list[dict[str, Any]], int]:
    """Train adapters and merge them in place; return the Trainer's log and the number of steps."""
    adapters = add_lora(model, RANK, seed=seed)
    set_dropout(model, 0.0)
    model.max_seq_length = max(READ[name])
    sampler = partial(TokenBatches, lengths=lessons["tokens"][:])
    steps = max_steps or len(sampler(lessons, batch_size=1, drop_last=False, seed=seed))
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
        )
        trainer = SentenceTransformerTrainer(
            model=model,
            args=arguments,
            train_dataset=lessons.select_columns(["text", "label"]),
            loss=EmbedDistillLoss(model, distance_metric="cosine"),
        )
        trainer.train()
    adapters.merge_and_unload(safe_merge=True)
    return trainer.state.log_history, trainer.state.global_step


def distances(log: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Average the loss over the first and the last fifth of the log, because batches vary in length."""
    losses = [float(line["loss"]) for line in log if "loss" in line]
    part = math.ceil(len(losses) / 5)
    return sum(losses[:part]) / part, sum(losses[-part:]) / part


def take_difference(base_model: SentenceTransformer, model: SentenceTransformer, rank: int) -> dict[str, Tensor]:
    """Return low-rank factors of the change that training made to an encoder's linear layers."""
    before = base_model.state_dict()
    linear = {id(weight): name for name, weight in linear_weights(model).items()}
    factors = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        old = before[name].detach().float().cpu()
        change = weight.detach().float().cpu() - old
        if not change.any():
            continue
        if id(weight) not in linear:
            raise ModelError(f"{name} changed, but a difference can only hold weights of the encoder's linear layers.")
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        scale = sizes[:rank].sqrt()
        left, right = (left[:, :rank] * scale).half(), (scale[:, None] * right[:rank]).half()
        lost = (left.float() @ right.float() - change).norm()
        if lost > LOST * change.norm() + torch.finfo(torch.float32).eps * old.norm():  # plus rounding
            raise ModelError(f"{name} changed by more than float16 factors of rank {rank} can hold.")
        factors[f"{linear[id(weight)]}.left"] = left.contiguous()
        factors[f"{linear[id(weight)]}.right"] = right.contiguous()
    return factors


def write_difference(path: str | os.PathLike[str], factors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write a difference; equal differences give equal bytes."""
    values = json.dumps(dict(metadata), sort_keys=True)  # one value, because the library shuffles several
    save_file(dict(factors), path, metadata={"simlte_st": values})
