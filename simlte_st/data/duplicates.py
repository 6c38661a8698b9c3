"""Duplicates among documents, exact or near: found, as they would be false negatives of each other, and removed."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from operator import length_hint
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.config import check_number, configured
from simlte_st.data.analyzer import normal, words_of
from simlte_st.data.config import DedupeConfig
from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.near_duplicates import hash_runs, similar_earlier
from simlte_st.data.report import ReadReport
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.files import atomic_path, check_apart, check_new, check_place
from simlte_st.progress import with_progress_bar

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from simlte_st.overrides import DedupeOverrides

SUFFIXES = (".jsonl", ".ndjson")
"""Suffixes of the files that :func:`dedupe` writes."""


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """How many of the documents are duplicates of earlier ones."""

    documents: int
    exact: int  # with the same words as an earlier document
    near: int  # others that belong to a group with an earlier document
    groups: int  # of two documents or more
    largest: int  # documents in the largest group

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """Return the counts in a sentence."""
        return (
            f"{self.exact + self.near:,} of {self.documents:,} documents are duplicates of others ({self.exact:,} "
            f"exact, {self.near:,} near), in {self.groups:,} groups"
        )


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Which documents are duplicates of each other.

    Attributes:
        groups: The group of each document: the number of its first document, from 0, of which all others are
            duplicates. Shape (documents,), int64.
        report: The counts.
    """

    groups: NDArray[np.int64]
    report: DuplicateReport


def find_duplicates(
    documents: Any, *, near: bool = True, threshold: float = 0.75, progress: bool = False
) -> Duplicates:
    """Find documents that are duplicates of earlier ones.

    Exact duplicates have the same words: case, punctuation, invisible characters, vowel signs
    that are mostly not written and white space make no difference. A
    near-duplicate has a Jaccard similarity of ``threshold`` or more with the first document of its group, between their
    sets of five-word runs. That is computed, not estimated. Of a chain of drafts, each like the next one, the first is
    kept, and so is the first that is not similar to it.

    Args:
        documents: Read once, in order: a list of texts, or anything :func:`~simlte_st.data.read_documents` takes, of
            which skipped documents do not count.
        near: Find near-duplicates too. That keeps 8 bytes a word in memory.
        threshold: Similarity from which on two documents are duplicates, above 0 and at most 1.
        progress: Show a progress bar.

    Returns:
        The group of each document, and counts.

    Raises:
        ConfigurationError: A setting out of its range.
        DataError: The documents cannot be read.

    References:
        Broder, "On the resemblance and containment of documents", 1997. Five words and 0.75 are the settings of
        FineWeb (Penedo et al., 2024).
    """
    check_number("threshold", threshold, above=0, most=1)
    texts: Iterable[str]
    if isinstance(documents, (list, tuple)) and all(isinstance(text, str) for text in documents):
        texts, total = documents, len(documents)
    else:
        reader = read_documents(documents)
        texts, total = (document.text for document in reader), length_hint(reader, 0)
    seen: dict[bytes, int] = {}
    groups = array("q")
    numbers, runs = array("q"), []  # of the first document with each sequence of words
    for number, text in enumerate(with_progress_bar(texts, "Reading documents", total or None, shown=progress)):
        words = words_of(text) or normal(text).split()  # a text of nothing but symbols is compared as it is
        digest = hashlib.blake2b("\x00".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        groups.append(seen.setdefault(digest, number))
        if near and groups[-1] == number:
            numbers.append(number)
            runs.append(hash_runs(words))
    members = np.array(groups, dtype=np.int64)
    exact = int((members != np.arange(len(members))).sum())
    if near:
        found = with_progress_bar(similar_earlier(runs, threshold), "Finding duplicates", len(runs), shown=progress)
        first = np.arange(len(members))
        for number, other in zip(numbers, found, strict=True):
            if other is not None:
                first[number] = numbers[other]
        members = first[members]
    sizes = np.unique(members, return_counts=True)[1]
    report = DuplicateReport(
        documents=len(members),
        exact=exact,
        near=len(members) - len(sizes) - exact,
        groups=int((sizes > 1).sum()),
        largest=int(sizes.max(initial=0)),
    )
    return Duplicates(members, report)


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """What :func:`dedupe` kept."""

    output: str  # the file of the documents that were kept
    removed: str  # the file that lists the others
    kept: int
    copies: DuplicateReport

    def summary(self) -> str:
        """Return the report in two sentences."""
        return (
            f"{self.copies.summary()}. {self.kept:,} documents are in {self.output}; the others are listed in "
            f"{self.removed}, each with the document that it duplicates."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


@configured(DedupeConfig)
def dedupe(
    documents: Any,
    output: str | os.PathLike[str],
    config: DedupeConfig | None = None,
    **overrides: Unpack[DedupeOverrides],
) -> DedupeReport:
    """Write documents without duplicates: the first document of each group is kept; see :func:`find_duplicates`.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes; read twice.
        output: A file of JSON lines: ``id``, ``text``, and the other columns that were read. Beside ``kept.jsonl``,
            ``kept.removed.jsonl`` lists the documents that were removed (``id``, ``copy_of``).
        config: Which documents count as duplicates.
        **overrides: Settings of :class:`~simlte_st.data.config.DedupeConfig`, in place of those of ``config``.

    Raises:
        ConfigurationError: A file exists or cannot be written, is the source, or is not a file of JSON lines; or a
            setting is out of its range.
        DataError: The documents cannot be read, or only once.
    """
    config = DedupeConfig.make(config, overrides)
    place = Path(output)
    if place.suffix not in SUFFIXES:
        raise ConfigurationError(
            f"{place} is not a file of JSON lines: choose a name that ends in {' or '.join(SUFFIXES)}."
        )
    removed = place.with_name(f"{place.stem}.removed{place.suffix}")
    for path in (place, removed):
        check_apart(documents, path)
        check_place(path)
        check_new(path, config.overwrite)
    reader = documents if isinstance(documents, DocumentReader) else read_documents(documents, metadata=True)
    duplicates = find_duplicates(reader, near=config.near, threshold=config.similarity, progress=config.progress)
    checksum, firsts = reader.checksum, dict[int, str]()
    with (
        atomic_path(place, removed) as path,
        path.open("w", encoding="utf-8") as kept,
        path.with_name(removed.name).open("w", encoding="utf-8") as gone,
    ):
        for number, document in enumerate(reader):
            group = int(duplicates.groups[number]) if number < len(duplicates.groups) else -1
            if number == group:
                firsts[group] = document.id
                kept.write(_line(_row(document, reader.report)))
            elif group in firsts:
                gone.write(_line({"id": document.id, "copy_of": firsts[group]}))
        if reader.checksum != checksum:
            raise DataError(f"{reader.report.source} changed while it was read: nothing was written. Run it again.")
    return DedupeReport(str(place), str(removed), len(firsts), duplicates.report)


def _row(document: Document, report: ReadReport) -> dict[str, Any]:
    """Return a document under the names that its columns have in the source."""
    own = {report.id_column or "id": document.id, report.text_column or "text": document.text}
    return {**own, **{name: value for name, value in (document.metadata or {}).items() if name not in own}}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"
