"""A corpus to a table of vectors: streamed, resumable, and plain about what was cut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm

from simlte_st.compat import view_budget
from simlte_st.data.document import Document
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.files import atomic_path, read_json, write_json

T = TypeVar("T")


@dataclass
class EncodingReport:
    """What became of the documents.

    Attributes:
        documents: Documents encoded, those of an interrupted run included.
        tokens: Their tokens, special tokens not counted.
        cut_documents: How many were longer than the model reads.
        cut_tokens: Tokens that the model did not read.
        dimension: Size of a vector.
    """

    documents: int = 0
    tokens: int = 0
    cut_documents: int = 0
    cut_tokens: int = 0
    dimension: int = 0

    def summary(self) -> str:
        """Say it in a sentence."""
        text = f"Encoded {self.documents:,} documents into vectors of {self.dimension} dimensions"
        if not self.cut_documents:
            return f"{text}; none was longer than the model reads."
        share = self.cut_tokens / max(1, self.tokens)
        return f"{text}; {self.cut_documents:,} were longer than the model reads: {share:.1%} of all tokens were cut."


def encode_documents(
    model: SentenceTransformer,
    documents: Iterable[Document],
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
        documents: Read once, in order; the same documents in the same order when a run is resumed.
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
        ConfigurationError: The output or parts exist, and neither ``resume`` nor ``overwrite``.
        ResumeError: There is nothing to resume, or the parts were made with other settings or documents.
    """
    output = Path(output)
    parts = output.with_name(f"{output.name}.parts")
    wanted = {"part_size": part_size, "normalize": normalize, **(settings or {})}
    _open_parts(output, parts, wanted, resume=resume, overwrite=overwrite)
    report = EncodingReport(dimension=int(model.get_embedding_dimension() or 0))
    budget = view_budget(model)
    count = tokenizer_counter(model.tokenizer)
    done_before = part_size * sum(1 for _ in parts.glob("part-*.json"))
    bar = tqdm(desc="Encoding", unit="doc", initial=done_before, disable=not progress)
    for number, batch in enumerate(_batches(documents, part_size)):
        path, notes = parts / f"part-{number:06d}.parquet", parts / f"part-{number:06d}.json"
        if notes.exists():
            _check_part(path, batch)
            done = EncodingReport(**read_json(notes))
        else:
            sizes = count([document.text for document in batch])
            over = [size - budget for size in sizes if budget is not None and size > budget]
            done = EncodingReport(len(batch), sum(sizes), len(over), sum(over))
            vectors = model.encode(
                [document.text for document in batch],
                batch_size=batch_size,
                normalize_embeddings=normalize,
                show_progress_bar=False,
            )
            _write_part(path, [document.id for document in batch], np.asarray(vectors, dtype=np.float32))
            write_json(notes, asdict(done))
            bar.update(len(batch))
        report = EncodingReport(
            report.documents + done.documents,
            report.tokens + done.tokens,
            report.cut_documents + done.cut_documents,
            report.cut_tokens + done.cut_tokens,
            report.dimension,
        )
    bar.close()
    _join_parts(parts, output, report)
    return report


def _open_parts(output: Path, parts: Path, settings: dict[str, Any], *, resume: bool, overwrite: bool) -> None:
    account = parts / "settings.json"
    if resume:
        if not account.exists():
            raise ResumeError(f"There is no interrupted run at {parts}.")
        saved = read_json(account)
        if saved != settings:
            raise ResumeError(f"The interrupted run at {parts} has other settings: {saved}, not {settings}.")
        return
    for path in (output, parts):
        if path.exists() and not overwrite:
            how = "go on with it (--resume) or " if path == parts else ""
            raise ConfigurationError(f"{path} exists already: {how}replace it (--overwrite).")
    if parts.exists():
        shutil.rmtree(parts)
    write_json(account, settings)


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _check_part(path: Path, batch: list[Document]) -> None:
    ids = pq.read_table(path, columns=["id"])["id"].to_pylist()
    if ids != [document.id for document in batch]:
        raise ResumeError(f"{path} holds other documents than the source has now: start anew (--overwrite).")


def _write_part(path: Path, ids: list[str], vectors: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    size = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), type=pa.float32()), size)
    with atomic_path(path) as temporary:
        pq.write_table(pa.table({"id": pa.array(ids, type=pa.string()), "vector": column}), temporary)


def _join_parts(parts: Path, output: Path, report: EncodingReport) -> None:
    paths = sorted(parts.glob("part-*.parquet"))
    # The column is always there, of the right type, also when there is no document.
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for path in paths:
            writer.write_table(pq.read_table(path).cast(schema))
    shutil.rmtree(parts)
