"""What a model that reads whole documents is taught: the embeddings that the base has of them, piece by piece."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.data.document import Document
from simlte_st.errors import DataError
from simlte_st.modules.position_pooling import FLAT, POWER

PIECE = 254
"""Tokens of a piece that the teacher reads at a time: with the special tokens 256, the length that the base has. A
word on a cut can have more tokens in two parts than as a whole; then the teacher does not see the last of them."""

SHORT = (8, 64)
"""Fewest and most tokens of a short excerpt."""


@dataclass(frozen=True)
class Lessons:
    """What the student learns from.

    Attributes:
        table: Rows for the beginning of each document and one for a short excerpt of it: ``id``, ``text``, ``tokens``
            (as the student will see, special tokens included) and ``label``, the teacher's embedding, float32,
            ``[dim]``: of a beginning that of the whole document, as far as it is taught.
        documents: Documents read.
        sha256: Of their ids and texts, in their order.
        seconds: Time that it took.
    """

    table: Dataset
    documents: int
    sha256: str
    seconds: float


def make_lessons(
    documents: Iterable[Document],
    teacher: SentenceTransformer,
    *,
    taught: int,
    seen: Sequence[int],
    seed: int = 0,
    dtype: str = "float32",
    progress: bool = True,
) -> Lessons:
    """Make what the student learns from."""
    began = time.perf_counter()
    rows: dict[str, list[Any]] = {"id": [], "text": [], "tokens": []}
    taught_texts: list[str] = []
    labels: list[int] = []
    digest = hashlib.sha256()
    for document in documents:
        digest.update(f"{document.id}\n{document.text}\n".encode("utf-8", "surrogatepass"))
        for label, text, tokens in _excerpts(teacher, document, taught, seen, Random(f"{seed} {document.id}")):
            if not taught_texts or taught_texts[-1] != label:
                taught_texts.append(label)
            rows["id"].append(document.id)
            rows["text"].append(text)
            rows["tokens"].append(tokens)
            labels.append(len(taught_texts) - 1)
    count = len(set(rows["id"]))
    if count < 2:
        raise DataError(f"{count} document{'s' * (count != 1)} to learn from: at least 2 are needed.")
    print(f"The teacher reads {count:,} documents.", flush=True)
    with torch.autocast(teacher.device.type, torch.bfloat16, enabled=dtype == "bfloat16"):
        rows["label"] = list(teach(teacher, taught_texts, progress)[labels])
    return Lessons(Dataset(pa.table(rows)), count, digest.hexdigest(), time.perf_counter() - began)


def _excerpts(
    teacher: SentenceTransformer, document: Document, taught: int, seen: Sequence[int], rng: Random
) -> list[tuple[str, str, int]]:
    """Cut the beginnings of a document, and a short piece from anywhere in it.

    Each with the text whose embedding is to be learned and with its number of tokens.
    """
    spans = _offsets(teacher, document.text)[: taught - 2]
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


def _offsets(model: SentenceTransformer, text: str) -> NDArray[np.int64]:
    """Return where each token begins and ends, ``[tokens, 2]``."""
    found = model.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    return np.array(found["offset_mapping"], dtype=np.int64).reshape(-1, 2)


def teach(teacher: SentenceTransformer, texts: Sequence[str], progress: bool = False) -> NDArray[np.float32]:
    """Compute the teacher's embeddings: weighted means over pieces, of length 1."""
    pieces: list[str] = []
    owner: list[int] = []
    weights: list[float] = []
    for number, text in enumerate(texts):
        spans = _offsets(teacher, text)
        weight = np.maximum(1.0, np.arange(1, len(spans) + 1) / FLAT) ** -POWER
        for begin in range(0, len(spans), PIECE):
            pieces.append(text[spans[begin][0] : spans[min(begin + PIECE, len(spans)) - 1][1]])
            owner.append(number)
            weights.append(float(weight[begin : begin + PIECE].sum()))
    found = teacher.encode(pieces, batch_size=64, normalize_embeddings=True, show_progress_bar=progress)
    sums = np.zeros((len(texts), found.shape[1]), dtype=np.float64)
    np.add.at(sums, owner, np.asarray(weights)[:, None] * found)
    unit: NDArray[np.float32] = (sums / np.linalg.norm(sums, axis=1, keepdims=True)).astype(np.float32)
    return unit
