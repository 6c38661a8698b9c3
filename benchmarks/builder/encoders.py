"""Build the shipped encoders: a base that reads documents in pieces teaches a model to read them in one pass.

The teacher is the frozen base: a mean of its embeddings of short pieces, with more weight on the beginning, as in
:class:`~simlte_st.modules.PositionPooling`. The student starts from the base and learns the teacher's embedding
through low-rank adapters (EmbedDistill: Kim et al., 2023). On short texts both agree from the start; a short excerpt of
each document in the training data preserves this. Training uses no labels and does not contrast documents: the student
only learns to read, which carries over to other kinds of documents.
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
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch import Tensor

from benchmarks.builder.lora import add_lora
from simlte_st.data import Document
from simlte_st.errors import ModelError
from simlte_st.files import atomic_path, check_free, write_json
from simlte_st.models.loading import load_model
from simlte_st.models.names import base_of_own_models
from simlte_st.models.shipped import BUILD_FILE, DIFFERENCE_FILE, add_difference, linear_weights, make_untrained
from simlte_st.modules.position_pooling import FLAT, POWER
from simlte_st.training.batches import SeededBatchSampler
from simlte_st.training.prepare_model import set_dropout

RANK = 16
LEARNING_RATE = 5e-4
WARMUP = 0.05
BATCH_TOKENS = 8192

TEACHER_LENGTH = 4096
"""Maximum number of tokens that the teacher reads from a document."""

READ = {"simlte-bert": (512,), "simlte-longformer": (2048, 512)}
"""Tokens that the student reads from a document in training, one training row per length, longest first. It learns to
predict the rest."""

PIECE = 254
"""Tokens in each of the teacher's pieces: 256, the base's maximum, less special tokens. A word split between pieces can
have more tokens than the whole word; the teacher then misses the last ones."""

SHORT = (8, 64)
"""Minimum and maximum number of tokens in a short excerpt."""

MAX_ERROR = 1e-3
"""Maximum relative error of a weight change's low-rank factors; rounding to float16 accounts for a third of it."""


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
    """Build one of this package's encoders from documents and return a record of the run.

    The output folder also holds the record and the difference from the base; both ship with the package.
    """
    check_free(output, overwrite)
    base, dtype = base_of_own_models(), "bfloat16" if bf16 else "float32"
    began = time.perf_counter()
    table, sha256 = make_lessons(documents, load_model(base, dtype=torch.float32).model, READ[name], seed, bf16)
    finished_teaching = time.perf_counter()
    model = make_untrained(name, load_model(base, dtype=torch.float32, device="cpu").model)
    log, steps = train_student(model, table, name, max_steps, bf16, seed)
    build = {
        "name": name,
        "documents": len(set(table["id"])),
        "sha256": sha256,
        "tokens": sum(table["tokens"]),
        "steps": steps,
        "teaching_seconds": finished_teaching - began,
        "training_seconds": time.perf_counter() - finished_teaching,
        "device": model.device.type,
        "threads": torch.get_num_threads(),
        "dtype": dtype,
        "seed": seed,
        "distance": distances(log),
        "recipe": {
            "student_lengths": list(READ[name]), "teacher_length": TEACHER_LENGTH, "piece": PIECE, "power": POWER,
            "flat": FLAT, "rank": RANK, "learning_rate": LEARNING_RATE, "batch_tokens": BATCH_TOKENS,
        },
    }  # fmt: skip
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
    documents: Iterable[Document], teacher: SentenceTransformer, lengths: Sequence[int], seed: int, bf16: bool = False
) -> tuple[Dataset, str]:
    """Return the student's training data, and the SHA-256 of the documents' ids and texts.

    There is a row for each beginning of a document and one for a short excerpt: ``id``, ``text``, ``tokens`` (with
    special tokens) and ``label``, the teacher's embedding, float32, ``[dim]``. The label of a beginning is the
    embedding of the whole document, up to :data:`TEACHER_LENGTH` tokens.
    """
    rows: dict[str, list[Any]] = {"id": [], "text": [], "tokens": []}
    text_rows: dict[str, int] = {}
    labels, digest = [], hashlib.sha256()
    for document in documents:
        digest.update(f"{document.id}\n{document.text}\n".encode("utf-8", "surrogatepass"))
        for label, text, tokens in excerpts(teacher, document, lengths, Random(f"{seed} {document.id}")):
            rows["id"].append(document.id)
            rows["text"].append(text)
            rows["tokens"].append(tokens)
            labels.append(text_rows.setdefault(label, len(text_rows)))
    with torch.autocast(teacher.device.type, torch.bfloat16, enabled=bf16):
        rows["label"] = list(teach(teacher, list(text_rows))[labels])
    return Dataset(pa.table(rows)), digest.hexdigest()


def excerpts(
    teacher: SentenceTransformer, document: Document, limits: Sequence[int], rng: Random
) -> list[tuple[str, str, int]]:
    """Return the beginnings of a document and an excerpt: the teacher's text, the student's, and its token count."""
    spans = token_offsets(teacher, document.text)[: TEACHER_LENGTH - 2]
    count = len(spans)
    if count == 0:
        return []
    full_text = document.text[: spans[-1][1]]
    lengths = sorted({min(limit - 2, count) for limit in limits}, reverse=True)
    rows = [(full_text, document.text[: spans[length - 1][1]], length + 2) for length in lengths]
    length = rng.randint(*SHORT)
    if count > length:
        begin = rng.randint(0, count - length)
        short = document.text[spans[begin][0] : spans[begin + length - 1][1]]
        rows.append((short, short, length + 2))
    return rows


def token_offsets(model: SentenceTransformer, text: str) -> NDArray[np.int64]:
    """Return the character offsets of each token, ``[tokens, 2]``."""
    encoding = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return np.array(encoding["offset_mapping"], dtype=np.int64).reshape(-1, 2)


def teach(teacher: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the teacher's embeddings: normalised weighted means over pieces, ``[texts, dim]``, float32."""
    pieces: list[str] = []
    owners: list[int] = []
    weights: list[float] = []
    for row, text in enumerate(texts):
        spans = token_offsets(teacher, text)
        token_weights = np.maximum(1.0, np.arange(1, len(spans) + 1) / FLAT) ** -POWER
        for begin in range(0, len(spans), PIECE):
            pieces.append(text[spans[begin][0] : spans[min(begin + PIECE, len(spans)) - 1][1]])
            owners.append(row)
            weights.append(float(token_weights[begin : begin + PIECE].sum()))
    vectors = teacher.encode(pieces, batch_size=64, normalize_embeddings=True, show_progress_bar=False)
    sums = np.zeros((len(texts), vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, owners, np.asarray(weights)[:, None] * vectors)
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
    """Train adapters and merge them into the model; return the Trainer's log and the number of steps."""
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
    """Average the loss over the first and the last fifth of the log; single batches differ too much in length."""
    losses = [float(line["loss"]) for line in log if "loss" in line]
    fifth = math.ceil(len(losses) / 5)
    return sum(losses[:fifth]) / fifth, sum(losses[-fifth:]) / fifth


def take_difference(base_model: SentenceTransformer, model: SentenceTransformer, rank: int) -> dict[str, Tensor]:
    """Factorise the changes of an encoder's linear layers in training, with ``rank`` columns in float16."""
    before = base_model.state_dict()
    linear = {id(weight): name for name, weight in linear_weights(model).items()}
    factors = {}
    for name, weight in model.state_dict(keep_vars=True).items():
        initial = before[name].detach().float().cpu()
        change = weight.detach().float().cpu() - initial
        if not change.any():
            continue
        if id(weight) not in linear:
            raise ModelError(f"{name} changed, but a difference can store only the encoder's linear layers.")
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        scale = sizes[:rank].sqrt()
        left, right = (left[:, :rank] * scale).half(), (scale[:, None] * right[:rank]).half()
        error = (left.float() @ right.float() - change).norm()
        if error > MAX_ERROR * change.norm() + torch.finfo(torch.float32).eps * initial.norm():  # plus rounding
            raise ModelError(f"{name} changed by more than float16 factors of rank {rank} can represent.")
        factors[f"{linear[id(weight)]}.left"] = left.contiguous()
        factors[f"{linear[id(weight)]}.right"] = right.contiguous()
    return factors


def write_difference(path: str | os.PathLike[str], factors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write a difference to a file; equal differences give equal bytes."""
    values = json.dumps(dict(metadata), sort_keys=True)  # a single value, because safetensors shuffles several
    save_file(dict(factors), path, metadata={"simlte_st": values})
