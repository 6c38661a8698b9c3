"""Encodes a corpus into a table of vectors: streamed, resumable, and plain about what was cut."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from filelock import FileLock
from sentence_transformers import SentenceTransformer

from simlte_st.bars import complete, counting_texts, progress_bar
from simlte_st.compat import document_prompt
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.errors import ConfigurationError, DataError, ModelError, ResumeError
from simlte_st.files import (
    SETTINGS_FILE,
    atomic_path,
    changes,
    check_apart,
    check_place,
    discard,
    hold,
    is_unused,
    read_json,
    sweep,
    write_json,
)
from simlte_st.models.loading import check_encodes
from simlte_st.models.truncation import Truncation, text_lengths

DOCUMENTS = b"documents"
"""Metadata of a part: digest of the ids and texts of its documents."""


@dataclass
class EncodingReport:
    """What became of the documents.

    Attributes:
        documents: Documents encoded, those of an interrupted run included.
        dimension: Size of a vector.
        truncation: How much of them the model read.
    """

    documents: int
    dimension: int
    truncation: Truncation

    def __str__(self) -> str:
        """Give the summary."""
        return self.summary()

    def summary(self) -> str:
        """Say it in two sentences, and what to do where texts were cut."""
        text = f"Encoded {self.documents:,} documents into vectors of {self.dimension} dimensions."
        return f"{text} {self.truncation.summary()} {self.truncation.advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON values."""
        return {"documents": self.documents, "dimension": self.dimension, "truncation": self.truncation.to_dict()}


def encode_documents(
    model: SentenceTransformer,
    documents: str | os.PathLike[str] | Iterable[Any],
    output: str | os.PathLike[str],
    *,
    batch_size: int = 32,
    part_size: int = 1024,
    normalize: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    settings: dict[str, Any] | None = None,
    progress: bool = False,
) -> EncodingReport:
    """Encode documents into a parquet file of ids and vectors.

    Memory holds one part at a time. Finished parts wait in ``OUTPUT.parts`` and become the output in one rename.

    Args:
        model: The model.
        documents: What :func:`~simlte_st.data.read_documents` takes. Read once, in order; the same documents in the
            same order when a run is resumed.
        output: The parquet file: ``id`` (string) and ``vector`` (a fixed-size list of float32).
        batch_size: Texts encoded at once.
        part_size: Documents in a part: what an interruption can lose.
        normalize: Scale vectors to length 1.
        resume: Go on after the parts of an interrupted run.
        overwrite: Replace the output, and drop the parts of an interrupted run.
        settings: What else decides the vectors (name of model and source), compared when a run is resumed.
        progress: Show a progress bar.

    Returns:
        What became of the documents.

    Raises:
        ConfigurationError: The output or parts exist, and neither ``resume`` nor ``overwrite``; the output would
            replace the documents, or what is no file; or another process is at work on it.
        ResumeError: There is nothing to resume, or the parts were made with other settings, documents or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite.
    """
    check_encodes(model, Truncation.of(model).model or "in memory")
    reader, output = read_documents(documents), Path(output)
    check_apart(documents, output)
    check_place(output)
    parts = output.with_name(f"{output.name}.parts")
    wanted = {"part_size": part_size, "normalize": normalize, "weights": weights_digest(model), **(settings or {})}
    lock = _open_parts(output, parts, wanted, resume=resume, overwrite=overwrite)
    try:
        number = _encode_parts(model, reader, parts, part_size, batch_size, normalize, progress)
        truncation = Truncation.of(model, prompt=document_prompt(model))
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(parts, number, output, report)
        return report
    finally:
        lock.release()


def _encode_parts(
    model: SentenceTransformer,
    reader: DocumentReader,
    parts: Path,
    part_size: int,
    batch_size: int,
    normalize: bool,
    progress: bool,
) -> int:
    """Make the parts that are missing; give their number."""
    done_before = part_size * sum(1 for _ in parts.glob("part-*.parquet"))
    batches = _read_batches(reader, part_size, parts)
    first = list(islice(batches, 1))  # what is wrong with the source shows before a bar does
    number = 0
    with progress_bar("Encoding", length_hint(reader, 0) or None, initial=done_before, shown=progress) as bar:
        for number, batch in enumerate(itertools.chain(first, batches), start=1):
            bar.total = length_hint(reader, 0) or None  # what was read to its end is known by now
            path, ids, texts = _part(parts, number), [one.id for one in batch], [one.text for one in batch]
            digest = _digest(part.encode("utf-8") for one in batch for part in (one.id, one.text))
            if path.exists():
                if (pq.read_schema(path).metadata or {}).get(DOCUMENTS) != digest.encode("ascii"):
                    raise ResumeError(
                        f"{path} holds other documents than the source has now: start anew with overwrite=True."
                    )
                continue
            with counting_texts(model, bar):
                vectors = model.encode_document(
                    texts,
                    prompt=document_prompt(model),
                    batch_size=batch_size,
                    normalize_embeddings=normalize,
                    show_progress_bar=False,
                )
            _check_finite(vectors, ids)
            flat = pa.array(np.asarray(vectors, dtype=np.float32).reshape(-1))
            columns = {
                "id": pa.array(ids, type=pa.string()),
                "vector": pa.FixedSizeListArray.from_arrays(flat, len(vectors[0])),
                "tokens": pa.array(text_lengths(model, texts, document_prompt(model)), type=pa.int64()),
            }
            with atomic_path(path) as temporary:
                pq.write_table(pa.table(columns).replace_schema_metadata({DOCUMENTS: digest}), temporary)
            _give_back()
        complete(bar)
    if _part(parts, number + 1).exists():
        raise ResumeError(f"{parts} holds more documents than the source has now: start anew with overwrite=True.")
    return number


def _give_back() -> None:
    """Give the system the memory that is free, where the C library is glibc.

    It would keep it by itself, in pieces that fit no other length of text: on texts of mixed lengths a process grew by
    1.4 GiB an hour, and by 0.3 since (``benchmarks/results/soak.md``).
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)


def _check_finite(vectors: np.ndarray, ids: list[str]) -> None:
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(broken):
        raise ModelError(
            f"The vectors of {len(broken)} of {len(ids)} documents are not finite (first: {ids[broken[0]]!r}): the "
            "model computes numbers beyond its dtype. Load it in float32."
        )


def weights_digest(model: SentenceTransformer) -> str:
    """Digest what a model computes with: the names and values of its weights, and how many tokens it reads."""
    state = sorted(model.state_dict().items())
    values = (tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy() for _, tensor in state)
    names = f"{[name for name, _ in state]} {model.max_seq_length}".encode()
    return _digest(itertools.chain([names], values))


def _digest(pieces: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        data = memoryview(piece)
        digest.update(data.nbytes.to_bytes(8, "big"))  # or a text's end could be the next one's beginning
        digest.update(data)
    return digest.hexdigest()


def _open_parts(output: Path, parts: Path, settings: dict[str, Any], *, resume: bool, overwrite: bool) -> FileLock:
    account = parts / SETTINGS_FILE
    if resume:
        if not account.exists():
            sweep(output)
            raise ResumeError(f"There is no interrupted run at {parts}.")
        lock = hold(parts)
        different = changes(read_json(account), settings)
        if different:
            lock.release()
            changed = "; ".join(different.values())
            raise ResumeError(f"The interrupted run at {parts} has other settings ({changed}).")
        return lock
    unused = parts.is_dir() and is_unused(parts)
    for path, ours in ((output, output.is_file()), *([] if unused else [(parts, account.exists())])):
        if path.exists() and not overwrite:
            how = "go on with it (resume=True) or " if path == parts else ""
            raise ConfigurationError(f"{path} exists already: {how}replace it (overwrite=True).")
        if path.exists() and not ours:
            raise ConfigurationError(f"{path} is not what this command writes, and not replaced: choose another.")
    lock = hold(parts)
    for path in parts.glob("part-*.parquet"):
        path.unlink()
    write_json(account, settings)
    return lock


def _part(parts: Path, number: int) -> Path:
    return parts / f"part-{number:06d}.parquet"


def _read_batches(documents: Iterable[Document], size: int, parts: Path) -> Iterator[list[Document]]:
    iterator = iter(documents)
    try:
        while batch := list(islice(iterator, size)):
            yield batch
    except DataError:
        if not any(parts.glob("part-*.parquet")):  # nothing that the corrected command would have to go on with
            shutil.rmtree(parts)
        raise


def _join_parts(parts: Path, number: int, output: Path, report: EncodingReport) -> None:
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for path in (_part(parts, each) for each in range(1, number + 1)):
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            report.documents += len(table)
            report.truncation.add(table["tokens"].to_numpy())
    discard(parts, output)
