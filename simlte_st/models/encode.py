"""Documents to a table of vectors: streamed, resumable, on one device or many machines."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sentence_transformers import SentenceTransformer

from simlte_st.config import configured
from simlte_st.data.documents import read_documents
from simlte_st.errors import ConfigurationError, SimlteError, keeping
from simlte_st.files import atomic_path, discard
from simlte_st.models.config import EncodeConfig, EngineConfig
from simlte_st.models.device import check_devices, device_pool
from simlte_st.models.encode_ray import encode_with_ray
from simlte_st.models.loading import check_encodes
from simlte_st.models.pace import TextBar
from simlte_st.models.parts import DocumentParts, PartEncoder, Parts, weights_digest
from simlte_st.models.parts_folder import check_vectors, open_parts, part_files, parts_folder
from simlte_st.models.routes import side_of
from simlte_st.models.truncation import Truncation, warn_of_truncation
from simlte_st.progress import complete, progress_bar

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import EncodeOverrides

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

    Memory holds one part at a time (per actor). Finished parts are kept in ``OUTPUT.parts`` and joined at the end. A
    run may be resumed on other devices and with the other engine: vectors are the same except for rounding.

    Args:
        model: The model.
        documents: Anything that :func:`~simlte_st.data.read_documents` takes; the same documents in the same order when
            a run is resumed.
        output: The parquet file: ``id`` (string) and ``vector`` (a fixed-size list of float32).
        config: How to encode. Several devices (``["cuda:0", "cuda:1"]``, or the CPU several times) share each part, in
            a process each; a script then needs ``if __name__ == "__main__":``. With ``engine="ray"`` each actor
            encodes parts of its own: documents and output have to be on a file system that all machines share.
        settings: What else decides the vectors (name of model and source), compared when a run is resumed.
        **overrides: Settings of :class:`~simlte_st.models.config.EncodeConfig`, in place of those of ``config``.

    Returns:
        What became of the documents.

    Raises:
        ConfigurationError: The model is not loaded, or a setting is out of its range. The output or parts exist, and
            neither ``resume`` nor ``overwrite`` is set; the output does not end in .parquet, would replace the
            documents, or is being written by another process. The device or cluster is not available; or Ray cannot
            read the documents, which are in this process only.
        ResumeError: There is nothing to resume, or the parts have other settings, documents or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or a process that encodes died.
        MissingExtraError: ``engine="ray"`` without the extra ``ray``.
        Interrupted: Ctrl-C, or SIGTERM at the command line; the message says which parts are kept.
    """
    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    config = EncodeConfig.make(config, overrides)
    model = side_of(model, "document")
    check_encodes(model, Truncation.of(model).model or "in memory")
    check_devices(config)
    reader, output = read_documents(documents), Path(output)
    check_vectors(reader, output, config)
    folder = parts_folder(output)
    wanted = {**config.decisive(), "weights": weights_digest(model), "dtype": str(model.dtype), **(settings or {})}
    lock = open_parts(output, wanted, resume=config.resume)
    try:
        parts = DocumentParts(reader, folder.absolute(), config.part_size)
        try:
            with keeping(lambda: _kept(folder, config.part_size)):
                encoder = PartEncoder(model, config.batch_size, config.normalize)
                make_parts(parts, encoder, config, config.progress, REMEDY)
        except SimlteError:
            if not part_files(folder):  # nothing to resume
                shutil.rmtree(folder)
            raise
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), Truncation.of(model))
        _join_parts(folder, output, report)
        return report
    finally:
        lock.release()


def make_parts(parts: Parts, encoder: PartEncoder, config: EngineConfig, progress: bool, remedy: str = "") -> None:
    """Make the missing part files: in this process, in one on each of several devices, or with Ray.

    With a ``remedy`` it is said first if this process finds that the model truncates much.
    """
    model, before = encoder.model, encoder.model.device
    if config.engine == "ray":
        with progress_bar("Encoding", parts.total, initial=parts.done, shown=progress) as documents:
            try:
                encode_with_ray(parts, encoder, config, documents)
            finally:
                model.to(before)
            complete(documents)
        return
    local = iter(parts)
    first = list(islice(local, 1))  # errors of the source are raised before a bar is shown
    if isinstance(config.device, str):
        model.to(config.device)
    if first and remedy:
        warn_of_truncation(model, first[0].texts, remedy)
    with (
        device_pool(model, config.several) if config.several else nullcontext() as pool,
        TextBar(model, "Encoding", parts.total, shown=progress) as bar,
    ):
        for part in chain(first, local):
            bar.documents = parts.total  # known once the source has been read to its end
            if part.path.exists():
                bar.skip(len(part.texts))
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
