"""A pile without its copies, and a list of what went."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simlte_st.checks import check_number
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.duplicates import DuplicateReport, find_duplicates
from simlte_st.data.report import ReadReport
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.files import atomic_path, check_apart, check_new, check_place

KINDS = (".jsonl", ".ndjson")
"""What the names of the files end in."""


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """What was kept.

    Attributes:
        output: The file of the documents that were kept.
        removed: The file of the list of the others.
        kept: Documents that were kept.
        copies: The counts of what was looked at.
    """

    output: str
    removed: str
    kept: int
    copies: DuplicateReport

    def summary(self) -> str:
        """Say it in two sentences."""
        return (
            f"{self.copies.summary()}. {self.kept:,} documents are in {self.output}, and the others, with the document "
            f"that each is a copy of, in {self.removed}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def removed_path(output: str | os.PathLike[str]) -> Path:
    """Return the file of the list of what goes: ``kept.removed.jsonl`` beside ``kept.jsonl``."""
    path = Path(output)
    return path.with_name(f"{path.stem}.removed{path.suffix}")


def dedupe(
    documents: Any,
    output: str | os.PathLike[str],
    *,
    near: bool = True,
    similarity: float = 0.75,
    overwrite: bool = False,
    seed: int = 0,
    progress: bool = False,
) -> DedupeReport:
    """Write documents without copies: of each group the first document is kept.

    Memory holds what :func:`~simlte_st.data.duplicates.find_duplicates` does: 8 KB a document.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; read twice.
        output: A file of JSON lines: ``id``, ``text``, and the other columns that were read. The list of what went
            (:func:`removed_path`) has ``id`` and ``copy_of``.
        near: Remove near copies too, not only exact ones. Needs the extra ``dedupe``.
        similarity: Share of their five-word runs that two documents have in common, from which on they are copies.
        overwrite: Replace both files.
        seed: Decides the hash functions.
        progress: Show a progress bar.

    Raises:
        ConfigurationError: A file exists or cannot be written, is the source, or is no file of JSON lines; or the
            similarity is out of range.
        DataError: The documents cannot be read, or only once.
        MissingExtraError: ``near`` without the package datasketch.
    """
    place = Path(output)
    if place.suffix not in KINDS:
        raise ConfigurationError(f"{place} is no file of JSON lines: choose a name that ends in {' or '.join(KINDS)}.")
    removed = removed_path(place)
    for path in (place, removed):
        check_apart(documents, path)
        check_place(path)
        check_new(path, overwrite)
    check_number("similarity", similarity, above=0, most=1)
    reader = documents if isinstance(documents, DocumentReader) else read_documents(documents, metadata=True)
    copies = find_duplicates(reader, near=near, threshold=similarity, seed=seed, progress=progress)
    firsts: dict[int, str] = {}
    number = -1
    with (
        atomic_path(place) as kept_file,
        atomic_path(removed) as removed_file,
        kept_file.open("w", encoding="utf-8") as kept,
        removed_file.open("w", encoding="utf-8") as gone,
    ):
        for number, document in enumerate(reader):
            group = int(copies.groups[number]) if number < len(copies.groups) else -1
            if number == group:
                firsts[group] = document.id
                kept.write(_line(_row(document, reader.report)))
            elif group in firsts:
                gone.write(_line({"id": document.id, "copy_of": firsts[group]}))
        if number + 1 != len(copies.groups):
            raise DataError(f"{reader.report.source} changed while it was read: nothing was written. Run it again.")
    return DedupeReport(str(place), str(removed), len(firsts), copies.report)


def _row(document: Document, report: ReadReport) -> dict[str, Any]:
    """Return a document under the names that its columns have in the source."""
    own = {report.id_column or "id": document.id, report.text_column or "text": document.text}
    return {**own, **{name: value for name, value in (document.metadata or {}).items() if name not in own}}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"
