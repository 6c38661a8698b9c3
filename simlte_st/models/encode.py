"""Encode documents to a parquet file: streamed, resumable, on one device or many machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, ResumeError, SimlteError, format_count, keeping
from simlte_st.files import (
    SETTINGS_FILE,
    atomic_path,
    changes,
    check_apart,
    check_file,
    discard,
    hold,
    is_unused,
    read_json,
    write_json,
)
from simlte_st.models.device import Engine, check_devices, device_pool
from simlte_st.models.names import ModelSource
from simlte_st.models.parts import Part, PartEncoder, Parts, model_identity
from simlte_st.models.truncation import Truncation, warn_of_truncation
from simlte_st.progress import TextBar, complete, progress_bar
from simlte_st.reading.documents import DocumentSource, read_documents


@dataclass
class EncodingReport:
    """Result of an encoding.

    Attributes:
        documents: Number of encoded documents.
        dimension: Dimensions of the vectors.
        truncation: How much of the documents the model read.
    """

    documents: int
    dimension: int
    truncation: Truncation

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return a sentence with the numbers of documents, dimensions and truncated texts."""
        number = format_count(self.documents, "document")
        return f"Encoded {number} into vectors of {self.dimension} dimensions. {self.truncation.summary()}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {"documents": self.documents, "dimension": self.dimension, "truncation": self.truncation.to_dict()}


@check_arguments
def encode_documents(
    model: ModelSource,
    source: DocumentSource,
    output: str | os.PathLike[str],
    *,
    batch_size: Count = 32,
    normalize: bool = False,
    part_size: Count = 1024,
    device: str | Sequence[str] | None = None,
    engine: Literal["local", "ray"] = "local",
    actors: Count | None = None,
    address: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> EncodingReport:
    """Encode documents into a parquet file of ids and vectors.

    Only one part (per actor) is in memory at a time. Finished parts are kept in ``OUTPUT.parts`` and joined at the end.
    A run can be resumed on other devices and with the other engine; vectors are the same except for rounding. A script
    that encodes on several devices needs ``if __name__ == "__main__":``.

    Args:
        model: The loaded model.
        source: The documents: anything that :func:`~simlte_st.data.read_documents` takes. To resume a run, pass the
            same documents in the same order.
        output: Parquet file to write, with columns ``id`` (string) and ``vector`` (fixed-size list of float32).
        batch_size: Batch size for the longest texts; shorter ones get larger batches.
        normalize: Scale the vectors to length 1.
        part_size: Documents in each part of the output; an interruption loses at most one part.
        device: Where to compute: cpu, cuda, cuda:1 or mps. Several devices, such as ``cuda:0,cuda:1``, share the work,
            with one process each (default: a GPU, if there is one).
        engine: ``local`` encodes in this process, ``ray`` in Ray actors on one or many machines, which need the output
            on a shared file system.
        actors: Number of Ray actors, each with a CPU and, if there are any, a GPU (default: as many as fit).
        address: Address of the Ray cluster (default: a cluster on this machine, or a new one).
        resume: Continue an interrupted run from its finished parts.
        overwrite: Overwrite existing output, or the parts of an interrupted run.
        progress: Show a progress bar.

    Returns:
        The numbers of documents, dimensions and truncated texts.

    Raises:
        ConfigurationError: The model is not loaded, or an argument is out of range; the output or its parts exist, and
            neither ``resume`` nor ``overwrite`` is set; the output does not end in .parquet, would replace the
            documents, or is in use by another process; or the device or cluster is not available.
        ResumeError: There is nothing to resume, or the parts have different settings or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or an encoding process died.
        MissingExtraError: ``engine="ray"`` without the extra ``ray``.
        Interrupted: Ctrl-C, or SIGTERM at the command line; the message names the folder of finished parts.

    Example:
        ::

            model = SentenceTransformer("simlte-static")
            print(encode_documents(model, "my_documents", "vectors.parquet"))
    """
    where, reader, output = Engine(device, engine, actors, address), read_documents(source), Path(output)
    check_vectors(reader, output, resume=resume, overwrite=overwrite)

    from sentence_transformers import SentenceTransformer

    from simlte_st.models.loading import check_encodes

    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    check_encodes(model, "given")
    truncation = Truncation.of(model)
    check_devices(where)
    folder = parts_folder(output)
    identity = model_identity(model)
    settings = {"normalize": normalize, "part_size": part_size, **identity, "dtype": str(model.dtype)}
    lock = open_parts(output, settings, resume=resume)
    try:
        parts = Parts(reader, folder.absolute(), part_size)
        try:
            with keeping(
                lambda: f"Finished parts of {part_size:,} documents are in {folder}: continue with resume=True."
            ):
                paths = make_parts(parts, PartEncoder(model, batch_size, normalize), where, progress, warn=True)
        except SimlteError:
            if not any(folder.glob("part-*")):  # nothing to resume
                shutil.rmtree(folder)
            raise
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(paths, output, report)
        discard(folder, output)
        return report
    finally:
        lock.release()


def make_parts(parts: Parts, encoder: PartEncoder, engine: Engine, progress: bool, *, warn: bool = False) -> list[Path]:
    """Encode the missing parts in this process, in a process per device, or with Ray.

    Args:
        parts: The parts.
        encoder: Encodes a part.
        engine: Where to encode.
        progress: Whether to show a progress bar.
        warn: Whether to warn first if the model truncates much of the texts, in this process.

    Returns:
        The files of all parts, in order.
    """
    model, home, paths = encoder.model, encoder.model.device, []

    def record_paths() -> Iterator[Part]:
        for part in parts:
            paths.append(part.path)
            yield part

    if engine.engine == "ray":
        from simlte_st.models.encode_ray import encode_with_ray

        with progress_bar("Encoding", parts.total, show=progress) as documents:
            try:
                encode_with_ray(record_paths(), encoder, engine, documents)
            finally:
                model.to(home)
            complete(documents)
        return paths
    remaining = record_paths()
    first = list(islice(remaining, 1))  # raises errors of the source before the bar is shown
    if isinstance(engine.device, str):
        model.to(engine.device)
    if first and warn:
        warn_of_truncation(model, first[0].texts)
    with (
        device_pool(model, engine.several) if engine.several else nullcontext() as pool,
        TextBar(model, "Encoding", parts.total, show=progress) as bar,
    ):
        for part in chain(first, remaining):
            bar.documents = parts.total  # may only be known at the end of the source
            bar.begin(len(part.ids))
            if not part.path.exists():
                with bar.reading(part.texts):
                    encoder.make(part, pool)
    return paths


def _join_parts(paths: Sequence[Path], output: Path, report: EncodingReport) -> None:
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema, use_dictionary=False) as writer:
        for path in paths:
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            report.documents += len(table)
            report.truncation.add(table["tokens"].to_numpy())


# The folder of the parts.


def parts_folder(output: Path) -> Path:
    """Return the folder of the parts."""
    return output.with_name(f"{output.name}.parts")


def check_vectors(documents: DocumentSource, output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Check that the output can be written, and that there is a run to resume."""
    check_apart(documents, output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: choose a name that ends in .parquet, the format of the vectors.")
    check_file(output, overwrite or resume)
    parts = parts_folder(output)
    interrupted = (parts / SETTINGS_FILE).exists()
    if resume:
        if not interrupted:
            raise ResumeError(f"There is no interrupted run at {parts}.")
        return
    if interrupted and not overwrite:
        raise ConfigurationError(f"{parts} already exists: resume it (resume=True) or replace it (overwrite=True).")
    if parts.exists() and not interrupted and not is_unused(parts):
        raise ConfigurationError(f"{parts} was not written by this command: choose another output.")


def open_parts(output: Path, settings: dict[str, Any], *, resume: bool) -> FileLock:
    """Lock the folder of the parts, and empty it unless a run is resumed."""
    parts = parts_folder(output)
    lock, settings_path = hold(parts), parts / SETTINGS_FILE
    if resume:
        if differences := changes(read_json(settings_path), settings):
            lock.release()
            raise ResumeError(f"The run at {parts} has different settings ({'; '.join(differences.values())}).")
        return lock
    for path in parts.glob("part-*"):
        path.unlink()
    write_json(settings_path, settings)
    return lock
