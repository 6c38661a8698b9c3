"""Encode documents to a parquet file: streamed, resumable, on one device or several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, format_count, keeping
from simlte_st.files import WorkFolder, atomic_path, check_apart, check_file
from simlte_st.models.limits import Truncation, warn_of_truncation
from simlte_st.models.names import ModelSource
from simlte_st.models.parts import Part, PartEncoder, Parts, model_identity
from simlte_st.progress import TextBar
from simlte_st.reading.documents import DocumentSource, read_documents

PARTS = ".parts"
"""Suffix of the folder that holds the parts of an output."""

Device: TypeAlias = str | Sequence[str] | None
"""A device, several that share the work, or None for a GPU if available, otherwise the CPU."""


def several_devices(device: Device) -> list[str]:
    """Return the devices if several share the work, each with its own process; otherwise an empty list."""
    return [] if device is None or isinstance(device, str) else list(device)


def loading_device(device: Device) -> str | None:
    """Return the device on which to load the model, which decides its dtype; other processes get copies via the CPU."""
    if device is None or isinstance(device, str):
        return device
    return next((name for name in device if name.split(":")[0] == "cpu"), device[0])


@dataclass
class EncodingReport:
    """Result of an encoding.

    Attributes:
        documents: Number of encoded documents.
        dimension: Dimension of the vectors.
        truncation: Counts of truncated texts and tokens.
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
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
) -> EncodingReport:
    """Encode documents into a parquet file of ids and vectors.

    Only one part is in memory at a time. Finished parts are kept in ``OUTPUT.parts`` and joined at the end.
    A run can be resumed on other devices; vectors then differ only by rounding. A script that encodes on several
    devices needs ``if __name__ == "__main__":``.

    Args:
        model: The loaded model.
        source: The documents: anything that :func:`~simlte_st.data.read_documents` takes. To resume a run, pass the
            same documents in the same order.
        output: Parquet file to write, with columns ``id`` (string) and ``vector`` (fixed-size list of float32).
        batch_size: Batch size for the longest texts; shorter ones get larger batches.
        normalize: Scale the vectors to length 1.
        part_size: Documents in each part of the output; an interruption loses at most one part.
        device: Device to compute on: cpu, cuda, cuda:1 or mps (default: a GPU if available). Several devices, such as
            ``cuda:0,cuda:1``, share the work, with one process each.
        resume: Continue an interrupted run from its finished parts.
        overwrite: Overwrite existing output, or the parts of an interrupted run.
        progress: Show a progress bar.

    Returns:
        The numbers of documents, dimensions and truncated texts.

    Raises:
        ConfigurationError: The model is not loaded, or an argument is out of range; the output or its parts exist, and
            neither ``resume`` nor ``overwrite`` is set; the output does not end in .parquet, would replace the
            documents, or is in use by another process; or the device is not available.
        ResumeError: There is nothing to resume, or the parts have different settings or weights.
        DataError: The documents cannot be read.
        ModelError: A vector is not finite, or an encoding process died.
        Interrupted: Ctrl-C, or SIGTERM at the command line; the message names the folder of finished parts.

    Example:
        ::

            model = SentenceTransformer("simlte-static")
            print(encode_documents(model, "my_documents", "vectors.parquet"))
    """
    reader, output = read_documents(source), Path(output)
    check_vectors(reader, output, resume=resume, overwrite=overwrite)

    from sentence_transformers import SentenceTransformer

    from simlte_st.models.device import check_device
    from simlte_st.models.loading import check_encodes

    if not isinstance(model, SentenceTransformer):
        raise ConfigurationError(f"model={model!r}: load it first, with simlte_st.SentenceTransformer(...).")
    check_encodes(model, "given")
    truncation = Truncation.of(model)
    check_device(device)
    work = WorkFolder(output, PARTS, resume=resume)
    settings = {"normalize": normalize, "part_size": part_size, **model_identity(model), "dtype": str(model.dtype)}
    with work.tidying("part-*"):
        work.open(settings, overwrite=overwrite)
        parts = Parts(reader, work.path.absolute(), part_size)
        advice = f"Finished parts of {part_size:,} documents are in {work.path}: continue with resume=True."
        with keeping(lambda: advice):
            paths = make_parts(parts, PartEncoder(model, batch_size, normalize), device, progress, warn=True)
        report = EncodingReport(0, int(model.get_embedding_dimension() or 0), truncation)
        _join_parts(paths, output, report)
        work.close()
        return report


def make_parts(parts: Parts, encoder: PartEncoder, device: Device, progress: bool, *, warn: bool = False) -> list[Path]:
    """Encode the missing parts in this process, or in a process per device.

    Args:
        parts: The parts.
        encoder: Encoder of the parts.
        device: The device, or several.
        progress: Whether to show a progress bar.
        warn: Whether to warn first if the model will truncate much of the text.

    Returns:
        The files of all parts, in order.
    """
    from simlte_st.models.device import device_pool

    model, paths = encoder.model, list[Path]()

    def record_paths() -> Iterator[Part]:
        for part in parts:
            paths.append(part.path)
            yield part

    remaining = record_paths()
    first = list(islice(remaining, 1))  # raises the source's errors before the bar is shown
    if isinstance(device, str):
        model.to(device)
    if first and warn:
        warn_of_truncation(model, first[0].texts)
    devices = several_devices(device)
    processes = device_pool(model, devices) if devices else nullcontext()
    with processes as pool, TextBar("Encoding", parts.total, show=progress) as bar:
        for part in chain(first, remaining):
            bar.documents = parts.total  # may only be known at the end of the source
            bar.begin(len(part.ids))
            if not part.path.exists():
                with bar.reading(part.texts, model):
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


def check_vectors(documents: DocumentSource, output: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Check that the output can be written, and that there is a run to resume."""
    check_apart(documents, output)
    if output.suffix.lower() != ".parquet":
        raise ConfigurationError(f"{output}: choose a name that ends in .parquet, the format of the vectors.")
    check_file(output, overwrite or resume)
    WorkFolder(output, PARTS, resume=resume).check(overwrite=overwrite)
