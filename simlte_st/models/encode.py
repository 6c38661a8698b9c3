"""Documents to a table of vectors: streamed, resumable, on one device or many machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from simlte_st.arguments import Count, checked
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, SimlteError, keeping
from simlte_st.files import atomic_path, discard
from simlte_st.models.engine import Engine
from simlte_st.models.parts import (
    DocumentParts,
    PartEncoder,
    Parts,
    check_vectors,
    open_parts,
    part_files,
    parts_folder,
    weights_digest,
)
from simlte_st.progress import complete, progress_bar

if TYPE_CHECKING:
    from simlte_st.models.truncation import Truncation

REMEDY = "simlte convert {name} makes a model that reads documents whole, and simlte index finds them by passages."


@dataclass
class EncodingReport:
    """What became of the documents."""

    documents: int
    dimension: int
    truncation: Truncation

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Return two sentences, and what to do about truncated texts."""
        text = f"Encoded {self.documents:,} documents into vectors of {self.dimension} dimensions."
        return f"{text} {self.truncation.summary()} {self.truncation.advice}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {"documents": self.documents, "dimension": self.dimension, "truncation": self.truncation.to_dict()}


@checked
def encode_documents(
    model: Any,
    source: Any,
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

    Memory holds one part at a time (per actor). Finished parts are kept in ``OUTPUT.parts`` and joined at the end. A
    run may be resumed on other devices and with the other engine: vectors are the same except for rounding. A script
    that encodes on several devices needs ``if __name__ == "__main__":``.

    Args:
        model: The model, loaded.
        source: The documents: anything that :func:`~simlte_st.data.read_documents` takes; the same documents in the
            same order when a run is resumed.
        output: The parquet file to write: ``id`` (string) and ``vector`` (a fixed-size list of float32).
        batch_size: Batch size for the longest texts; shorter ones get larger batches.
        normalize: Scale the vectors to length 1.
        part_size: Documents in each part of the output; an interruption loses at most one part.
        device: Where to compute: cpu, cuda, cuda:1 or mps. Several, such as ``cuda:0,cuda:1``, share the work, each in
            a process of its own (default: a GPU, if there is one).
        engine: What computes: this process (``local``), or Ray actors on one machine or many (``ray``), which need the
            output on a shared file system.
        actors: Number of Ray actors, each with a CPU and, if there are any, a GPU (default: as many as fit).
        address: Address of the Ray cluster (default: one that runs on this machine, else a new one).
        resume: Continue an interrupted run from its finished parts.
        overwrite: Overwrite existing output, or the parts of an interrupted run.
        progress: Show a progress bar.

    Returns:
        What became of the documents.

    Raises:
        ConfigurationError: The model is not loaded, or an argument is out of its range. The output or parts exist, and
            neither ``resume`` nor ``overwrite`` is set; the output does not end in .parquet, would replace the
            documents, or is being written by another process. The device or cluster is not available.
        ResumeError: There is nothing to resume, or the parts have other settings, documents or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or a process that encodes died.
        MissingExtraError: ``engine="ray"`` without the extra ``ray``.
        Interrupted: Ctrl-C, or SIGTERM at the command line; the message says which parts are kept.
    """
    where, reader, output = Engine(device, engine, actors, address), read_documents(source), Path(output)
    check_vectors(reader, output, resume=resume, overwrite=overwrite)

    from sentence_transformers import SentenceTransformer

    from simlte_st.models.device import check_devices
    from simlte_st.models.loading import check_encodes, side_of
    from simlte_st.models.truncation import Truncation

    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    model = side_of(model, "document")
    truncation = Truncation.of(model)
    check_encodes(model, truncation.model or "in memory")
    check_devices(where)
    folder = parts_folder(output)
    wanted = {
        "normalize": normalize,
        "part_size": part_size,
        "weights": weights_digest(model),
        "dtype": str(model.dtype),
    }
    lock = open_parts(output, wanted, resume=resume)
    try:
        parts = DocumentParts(reader, folder.absolute(), part_size)
        try:
            with keeping(lambda: _kept(folder, part_size)):
                make_parts(parts, PartEncoder(model, batch_size, normalize), where, progress, REMEDY)
        except SimlteError:
            if not part_files(folder):  # nothing to resume
                shutil.rmtree(folder)
            raise
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(folder, output, report)
        return report
    finally:
        lock.release()


def make_parts(parts: Parts, encoder: PartEncoder, engine: Engine, progress: bool, remedy: str = "") -> None:
    """Make the missing part files: in this process, in one on each of several devices, or with Ray.

    With a ``remedy`` it is said first if this process finds that the model truncates much.
    """
    from simlte_st.models.device import device_pool
    from simlte_st.models.encode_ray import encode_with_ray
    from simlte_st.models.pace import TextBar
    from simlte_st.models.truncation import warn_of_truncation

    model, before = encoder.model, encoder.model.device
    if engine.engine == "ray":
        with progress_bar("Encoding", parts.total, shown=progress) as documents:
            try:
                encode_with_ray(parts, encoder, engine, documents)
            finally:
                model.to(before)
            complete(documents)
        return
    local = iter(parts)
    first = list(islice(local, 1))  # errors of the source are raised before a bar is shown
    if isinstance(engine.device, str):
        model.to(engine.device)
    if first and remedy:
        warn_of_truncation(model, first[0].texts, remedy)
    with (
        device_pool(model, engine.several) if engine.several else nullcontext() as pool,
        TextBar(model, "Encoding", parts.total, shown=progress) as bar,
    ):
        for part in chain(first, local):
            bar.documents = parts.total  # known once the source has been read to its end
            if part.path.exists():
                bar.begin(len(part.ids))
            else:
                bar.begin(len(part.ids))
                with bar.reading(part.texts):
                    encoder.make(part, pool)


def _kept(folder: Path, size: int) -> str:
    count = len(part_files(folder))
    if not count:
        return f"Nothing is kept: no part of {size:,} documents was finished (part_size= makes them smaller)."
    return f"{count:,} finished part{'s' * (count > 1)} of {size:,} documents in {folder}: resume=True goes on."


def _join_parts(parts: Path, output: Path, report: EncodingReport) -> None:
    schema = pa.schema({"id": pa.string(), "vector": pa.list_(pa.float32(), report.dimension)})
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, schema, use_dictionary=False) as writer:
        for path in part_files(parts):
            table = pq.read_table(path)
            writer.write_table(table.select(schema.names).cast(schema))
            report.documents += len(table)
            report.truncation.add(table["tokens"].to_numpy())
    discard(parts, output)
