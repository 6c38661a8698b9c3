"""Encodes a corpus into a table of vectors: streamed, resumable, and plain about what was cut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer
from tqdm.auto import tqdm

from simlte_st.compat import view_budget
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import ConfigurationError, DataError, ResumeError
from simlte_st.files import atomic_path, read_json, write_json


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
        ConfigurationError: The output or parts exist, and neither ``resume`` nor ``overwrite``.
        ResumeError: There is nothing to resume, or the parts were made with other settings or documents.
        DataError: The documents cannot be read.
    """
    reader, output = read_documents(documents), Path(output)
    parts = output.with_name(f"{output.name}.parts")
    wanted = {"part_size": part_size, "normalize": normalize, **(settings or {})}
    _open_parts(output, parts, wanted, resume=resume, overwrite=overwrite)
    count = tokenizer_counter(model.tokenizer)
    done_before = part_size * sum(1 for _ in parts.glob("part-*.parquet"))
    bar = tqdm(desc="Encoding", unit="doc", initial=done_before, disable=not progress)
    number = 0
    for number, batch in enumerate(_read_batches(reader, part_size, parts), start=1):
        path, ids, texts = _part(parts, number), [one.id for one in batch], [one.text for one in batch]
        if path.exists():
            if pq.read_table(path, columns=["id"])["id"].to_pylist() != ids:
                raise ResumeError(f"{path} holds other documents than the source has now: start anew (--overwrite).")
            continue
        vectors = model.encode(texts, batch_size=batch_size, normalize_embeddings=normalize, show_progress_bar=False)
        flat = pa.array(np.asarray(vectors, dtype=np.float32).reshape(-1))
        columns = {
            "id": pa.array(ids, type=pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(flat, len(vectors[0])),
            "tokens": pa.array(count(texts), type=pa.int64()),
        }
        with atomic_path(path) as temporary:
            pq.write_table(pa.table(columns), temporary)
        bar.update(len(batch))
    bar.close()
    if _part(parts, number + 1).exists():
        raise ResumeError(f"{parts} holds more documents than the source has now: start anew (--overwrite).")
    return _join_parts(parts, output, int(model.get_embedding_dimension() or 0), view_budget(model))


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


def _join_parts(parts: Path, output: Path, dimension: int, budget: int | None) -> EncodingReport:
    report = EncodingReport(dimension=dimension)
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for path in sorted(parts.glob("part-*.parquet")):
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            tokens = table["tokens"].to_numpy()
            over = tokens[tokens > budget] - budget if budget is not None else tokens[:0]
            report.documents += len(tokens)
            report.tokens += int(tokens.sum())
            report.cut_documents += len(over)
            report.cut_tokens += int(over.sum())
    shutil.rmtree(parts)
    return report
