"""Encodes a corpus into a table of vectors: streamed, resumable, and plain about what was cut."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from sentence_transformers import SentenceTransformer

from simlte_st.compat import document_prompt
from simlte_st.config import configured
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, ResumeError, SimlteError
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
from simlte_st.models.config import EncodeConfig
from simlte_st.models.loading import check_encodes
from simlte_st.models.parts import DocumentParts, PartEncoder, part_files, weights_digest
from simlte_st.models.truncation import Truncation
from simlte_st.models.workers import Workers

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import EncodeOverrides


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
        """Return the summary."""
        return self.summary()

    def summary(self) -> str:
        """Say it in two sentences, and what to do where texts were cut."""
        text = f"Encoded {self.documents:,} documents into vectors of {self.dimension} dimensions."
        return f"{text} {self.truncation.summary()} {self.truncation.advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {"documents": self.documents, "dimension": self.dimension, "truncation": self.truncation.to_dict()}


@configured(EncodeConfig)
def encode_documents(
    model: SentenceTransformer,
    documents: str | os.PathLike[str] | Iterable[Any],
    output: str | os.PathLike[str],
    config: EncodeConfig | None = None,
    *,
    settings: dict[str, Any] | None = None,
    **overrides: Unpack[EncodeOverrides],
) -> EncodingReport:
    """Encode documents into a parquet file of ids and vectors.

    Memory holds one part at a time (of each actor). Finished parts wait in ``OUTPUT.parts`` and become the output in
    one rename. A run may be resumed on other devices and by the other engine: vectors are the same but for rounding.

    Args:
        model: The model.
        documents: What :func:`~simlte_st.data.read_documents` takes. Read once, in order; the same documents in the
            same order when a run is resumed.
        output: The parquet file: ``id`` (string) and ``vector`` (a fixed-size list of float32).
        config: How to encode. Several devices (``["cuda:0", "cuda:1"]``, or the CPU several times, whose cores they
            divide) share each part, in a process each; a script that is run by its name then needs
            ``if __name__ == "__main__":``. With ``engine="ray"`` each actor encodes parts of its own: documents and
            output have to be on a file system that all machines share.
        settings: What else decides the vectors (name of model and source), compared when a run is resumed.
        **overrides: Settings of :class:`~simlte_st.models.config.EncodeConfig`, in place of those of ``config``.

    Returns:
        What became of the documents.

    Raises:
        ConfigurationError: The model is not loaded, or a size is no whole number from 1. The output or parts exist, and
            neither ``resume`` nor ``overwrite``; the output's name does not end in .parquet; it would replace the
            documents, or what is no file; or another process is at work on it. There is no such device, engine or
            cluster, or it has not the room; or Ray cannot read the documents, which live in this process.
        ResumeError: There is nothing to resume, or the parts were made with other settings, documents or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or a process that encodes died.
        MissingExtraError: ``engine="ray"`` without the extra ``ray``.
    """
    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    config = EncodeConfig.make(config, overrides)
    check_encodes(model, Truncation.of(model).model or "in memory")
    workers = Workers(config)
    reader, output = read_documents(documents), Path(output)
    check_apart(reader, output)
    check_place(output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: the vectors are a parquet file: choose a name that ends in .parquet.")
    folder = output.with_name(f"{output.name}.parts")
    wanted = {**config.decisive(), "weights": weights_digest(model), **(settings or {})}
    lock = _open_parts(output, folder, wanted, resume=config.resume, overwrite=config.overwrite)
    try:
        parts = DocumentParts(reader, folder.absolute(), config.part_size)
        encoder = PartEncoder(model, config.batch_size, config.normalize)
        try:
            workers.make(parts, encoder, config.progress)
        except SimlteError:
            if not part_files(folder):  # nothing that the corrected command would have to go on with
                shutil.rmtree(folder)
            raise
        truncation = Truncation.of(model, prompt=document_prompt(model))
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(folder, output, report)
        return report
    finally:
        lock.release()


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
    for path in part_files(parts):
        path.unlink()
    write_json(account, settings)
    return lock


def _join_parts(parts: Path, output: Path, report: EncodingReport) -> None:
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        for path in part_files(parts):
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            report.documents += len(table)
            report.truncation.add(table["tokens"].to_numpy())
    discard(parts, output)
