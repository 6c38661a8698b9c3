"""A data set on disk: read once from the form it comes in, then memory-mapped, however large it is."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, ReadReport
from simlte_st.datasets.splits import text_key
from simlte_st.files import atomic_path, home, read_json, write_json

logger = logging.getLogger(__name__)

DOCUMENTS = pa.schema(
    {"id": pa.string(), "text": pa.string(), "label": pa.string(), "split": pa.string(), "key": pa.int64()}
)
"""Columns of a stored data set; ``key`` is :func:`~simlte_st.datasets.splits.text_key`."""

PAIRS = pa.schema({"citing": pa.string(), "cited": pa.string(), "label": pa.int8(), "split": pa.string()})
"""Columns of stored pairs of papers."""

_FORMAT = 1
_BATCH = 1024  # rows in an Arrow record batch ...
_BATCH_CHARACTERS = 32_000_000  # ... or fewer, of long documents: one batch is held in memory


def store_folder(name: str, key: Any, root: str | os.PathLike[str] | None) -> Path:
    """Give the folder of one version of a data set.

    Args:
        name: The data set.
        key: What tells this version from another (JSON values): its files, how they are read.
        root: Folder of all stored data sets; ``benchmarks`` in the user's own place where not given.
    """
    text = json.dumps([_FORMAT, key], sort_keys=True, default=str)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return (Path(root) if root is not None else home() / "benchmarks") / f"{name}-{digest}"


def store_documents(reader: DocumentReader, folder: Path, progress: bool) -> None:
    """Read documents into ``folder`` (``documents.arrow`` and ``report.json``), unless they are there already."""
    if (folder / "report.json").exists():
        return
    with atomic_path(folder) as temporary:
        temporary.mkdir()
        write_documents(temporary / "documents.arrow", watched(reader, progress))
        write_json(temporary / "report.json", reader.report.to_dict())
    logger.info("Stored in %s", folder)


def write_documents(path: Path, documents: Iterable[Document]) -> None:
    """Write documents as an Arrow stream of :data:`DOCUMENTS`."""
    write_rows(
        path,
        DOCUMENTS,
        (
            {
                "id": document.id,
                "text": document.text,
                "label": document.label,
                "split": document.split,
                "key": text_key(document.text),
            }
            for document in documents
        ),
    )


def write_rows(path: Path, schema: pa.Schema, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as an Arrow stream, a bounded number at a time."""
    batch: list[Mapping[str, Any]] = []
    characters = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        for row in rows:
            batch.append(row)
            characters += len(row.get("text", ""))
            if len(batch) == _BATCH or characters >= _BATCH_CHARACTERS:
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                batch, characters = [], 0
        if batch:
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))


def stored(folder: Path, name: str = "documents") -> Dataset:
    """Open what was stored, memory-mapped."""
    return Dataset.from_file(str(folder / f"{name}.arrow"))


def stored_report(folder: Path) -> ReadReport:
    """Give the report of the reading that was stored."""
    return ReadReport(**read_json(folder / "report.json"))


def watched(documents: Iterable[Document], progress: bool) -> Iterator[Document]:
    """Give documents on, with a progress bar where one is wanted."""
    from tqdm.auto import tqdm

    yield from tqdm(documents, desc="Reading", unit="doc", disable=not progress)
