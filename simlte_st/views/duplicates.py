"""Find and remove exact and near-duplicates, which would be false negatives of each other in training."""

from __future__ import annotations

import functools
import hashlib
import os
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from operator import length_hint
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from simlte_st.arguments import PositiveShare, check_arguments
from simlte_st.errors import ConfigurationError, DataError, format_count
from simlte_st.files import atomic_path, check_apart, check_file, to_json
from simlte_st.progress import with_progress_bar
from simlte_st.reading.documents import Document, DocumentSource, ReadReport, read_documents
from simlte_st.words.analyzer import normal, split_words

SUFFIXES = (".jsonl", ".ndjson")
"""Suffixes of the files that :func:`dedupe` writes."""

SIMILARITY = 0.75
"""Default minimum similarity of near-duplicates."""

RUN = 5
"""Number of words in a run; a document with fewer words is a single run."""

Hashes = NDArray[np.uint64]

_COUNTERS = 1 << 22  # number of run counters, indexed by the last bits of a hash
_PARITY_BITS = 1 << 11  # bits per set; each is the parity of the number of hashes in a range
_BLOCK = 1 << 14  # number of sets whose parities are compared at a time
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """Counts of documents that duplicate an earlier document."""

    documents: int
    exact: int  # documents with the same words as an earlier document
    near: int  # other documents grouped with an earlier document
    groups: int  # groups of two or more documents

    def summary(self) -> str:
        """Return the counts as a sentence."""
        return (
            f"Duplicates: {self.exact + self.near:,} of {format_count(self.documents, 'document')} ({self.exact:,} "
            f"exact, {self.near:,} near), in {format_count(self.groups, 'group')}"
        )


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of duplicates.

    Attributes:
        groups: Group of each document (shape ``(documents,)``, int64): the index of the group's first document, which
            the others duplicate.
        report: Counts of duplicates and groups.
    """

    groups: NDArray[np.int64]
    report: DuplicateReport


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """Result of :func:`dedupe`."""

    output: str  # path of the file with the kept documents
    removed: str  # path of the file with the ids of the removed documents
    kept: int  # number of documents kept
    copies: DuplicateReport
    read: ReadReport  # counts of documents read and skipped

    def summary(self) -> str:
        """Return the report as two sentences."""
        listing = f"{self.removed} lists each removed document with the one it duplicates."
        return f"{self.copies.summary()}. {format_count(self.kept, 'document')} kept in {self.output}; {listing}"

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {**asdict(self), "read": self.read.to_dict()}


@check_arguments
def find_duplicates(
    texts: Iterable[str],
    *,
    near: bool = True,
    similarity: PositiveShare = SIMILARITY,
    total: int | None = None,
    progress: bool = False,
) -> Duplicates:
    """Find texts that duplicate an earlier text, exactly or nearly.

    Exact duplicates have the same words, ignoring case, punctuation, invisible characters, optional vowel signs and
    white space. A near-duplicate and the first text of its group have sets of five-word runs whose Jaccard similarity,
    computed exactly, is at least ``similarity``. In a chain of drafts, each similar to the one before, the first draft
    is kept, and so is every later draft that is not similar to a kept one.

    Args:
        texts: Texts to compare; read once, in order.
        near: Also find near-duplicates, which takes about 75 bytes of memory per word.
        similarity: Minimum similarity of near-duplicates, above 0 and at most 1.
        total: Number of texts, for the progress bar, if ``texts`` has no length.
        progress: Show progress bars.

    Returns:
        The group of each text, and the counts.

    Raises:
        ConfigurationError: An argument is out of range, or ``similarity=`` is combined with ``near=False``.

    Example:
        ::

            find_duplicates(["One text.", "Another text.", "one text"]).groups  # array([0, 1, 0])

    References:
        Broder, "On the resemblance and containment of documents", 1997. Runs of five words and a similarity of 0.75
        are the settings of FineWeb (Penedo et al., 2024).
    """
    if not near and similarity != SIMILARITY:
        raise ConfigurationError("similarity= cannot be combined with near=False, which compares whole texts.")
    row_by_digest: dict[bytes, int] = {}
    first_rows = array("q")  # first row with the same words, for each text
    distinct_rows, run_sets = array("q"), list[Hashes]()
    for row, text in enumerate(with_progress_bar(texts, "Reading documents", total, show=progress)):
        words = split_words(text) or normal(text).split()  # a text of only symbols has no words
        digest = hashlib.blake2b("\x00".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        first_rows.append(row_by_digest.setdefault(digest, row))
        if near and first_rows[-1] == row:
            distinct_rows.append(row)
            run_sets.append(hash_runs(words))
    groups, representatives = np.array(first_rows, dtype=np.int64), np.arange(len(first_rows))
    exact = int((groups != representatives).sum())
    if near:
        matches = find_earlier_similar(run_sets, similarity)
        matches = with_progress_bar(matches, "Finding duplicates", len(run_sets), show=progress)
        for row, match in zip(distinct_rows, matches, strict=True):
            if match is not None:
                representatives[row] = distinct_rows[match]
        groups = representatives[groups]
    sizes = np.unique(groups, return_counts=True)[1]
    near_count = len(groups) - len(sizes) - exact
    return Duplicates(groups, DuplicateReport(len(groups), exact, near_count, int((sizes > 1).sum())))


@check_arguments
def dedupe(
    source: DocumentSource,
    output: str | os.PathLike[str],
    *,
    near: bool = True,
    similarity: PositiveShare = SIMILARITY,
    overwrite: bool = False,
    progress: bool = True,
) -> DedupeReport:
    """Remove duplicates: write only the first document of each group to a file; see :func:`find_duplicates`.

    Args:
        source: Anything :func:`~simlte_st.data.read_documents` accepts, or the reader it returns; read twice.
        output: JSON Lines file to write, with ``id``, ``text`` and the source's other columns. For ``kept.jsonl``, a
            second file, ``kept.removed.jsonl``, lists the removed documents (``id``, ``copy_of``).
        near: Also remove near-duplicates, not only documents with exactly the same words.
        similarity: Minimum share of five-word runs that near-duplicates have in common, above 0 and at most 1.
        overwrite: Overwrite existing files.
        progress: Show progress bars.

    Raises:
        ConfigurationError: An output file exists, cannot be written, is the source or does not end in .jsonl or
            .ndjson; or an argument is out of range.
        DataError: The documents cannot be read, or cannot be read twice.

    Example:
        ::

            report = dedupe("articles.jsonl", "kept.jsonl")
            print(report.summary())
    """
    output = Path(output)
    if output.suffix not in SUFFIXES:
        raise ConfigurationError(f"{output}: the output name must end in {' or '.join(SUFFIXES)}.")
    removed = output.with_name(f"{output.stem}.removed{output.suffix}")
    for path in (output, removed):
        check_apart(source, path)
        check_file(path, overwrite)
    reader = read_documents(source).with_options(metadata=True)
    texts, total = (document.text for document in reader), length_hint(reader, 0)
    duplicates = find_duplicates(texts, near=near, similarity=similarity, total=total, progress=progress)
    checksum, kept_ids = reader.checksum, dict[int, str]()
    with (
        atomic_path(output, removed) as path,
        path.open("w", encoding="utf-8") as kept_file,
        path.with_name(removed.name).open("w", encoding="utf-8") as removed_file,
    ):
        for row, (document, group) in enumerate(zip(reader, duplicates.groups.tolist(), strict=False)):
            if row == group:
                kept_ids[row] = document.id
                kept_file.write(_to_json_line(_to_columns(document, reader.report)))
            else:
                removed_file.write(_to_json_line({"id": document.id, "copy_of": kept_ids.get(group)}))
        if reader.checksum != checksum:
            raise DataError(f"{reader.report.source} changed while it was being read. Nothing was written; try again.")
    return DedupeReport(str(output), str(removed), len(kept_ids), duplicates.report, reader.report)


def _to_columns(document: Document, report: ReadReport) -> dict[str, object]:
    """Return a document's values, keyed by the source's column names."""
    names = {report.id_column or "id": document.id, report.text_column or "text": document.text}
    return names | {name: value for name, value in (document.metadata or {}).items() if name not in names}


def _to_json_line(row: Mapping[str, object]) -> str:
    return to_json(row, indent=None, default=str) + "\n"


def run_similarity(first: str, second: str) -> float:
    """Return the Jaccard similarity of the sets of five-word runs of two texts."""
    runs, other_runs = (hash_runs(split_words(text) or normal(text).split()) for text in (first, second))
    overlap = len(np.intersect1d(runs, other_runs, assume_unique=True))
    return overlap / (len(runs) + len(other_runs) - overlap)


def hash_runs(words: Sequence[str]) -> Hashes:
    """Return the distinct hashes of a document's word runs, sorted."""
    hashes = np.array([_hash(word) for word in words] or [0], dtype=np.uint64)
    length = min(RUN, len(hashes))
    runs = np.full(len(hashes) - length + 1, length, dtype=np.uint64)
    for offset in range(length):
        runs = (runs ^ hashes[offset : offset + len(runs)]) * np.uint64(0x9E3779B97F4A7C15)
        runs ^= runs >> np.uint64(29)
    return np.unique(runs)


@functools.lru_cache(1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def find_earlier_similar(sets: Sequence[Hashes], threshold: float) -> Iterator[int | None]:
    """For each set, yield the index of the first kept set similar to it, or None if the set itself is kept.

    Sets are similar if their Jaccard similarity reaches the threshold. A set is kept if it is similar to no kept set.
    Prefix filtering (Chaudhuri et al., 2006) finds candidate pairs: if elements are sorted from rarest to most
    frequent, two similar sets have an element of their prefixes in common. Parities rule out most of these candidates
    (Sandes et al., Bitmap-Xor, 2019). The result is exact. Runs shared by documents made from one template are
    frequent, so they come last and are rarely compared.
    """
    counts, parities = np.zeros(_COUNTERS, dtype=np.uint32), np.zeros((len(sets), _PARITY_BITS // 64), dtype=np.uint64)
    for elements in sets:
        np.add.at(counts, elements & np.uint64(_COUNTERS - 1), 1)
    sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
    # Indices of the kept sets, in one array and grouped by the elements of their prefixes.
    kept_sets, postings = array("I"), defaultdict[int, "array[int]"](lambda: array("I"))

    def find_similar(elements: Hashes, parity: Hashes, candidates: NDArray[np.uint32]) -> Iterator[int]:
        for start in range(0, len(candidates), _BLOCK):
            block = candidates[start : start + _BLOCK]
            size_sums = len(elements) + sizes[block]
            # An element found in only one set flips a parity bit; two flips can cancel out, so this is a lower bound.
            differences = np.bitwise_count(parities[block] ^ parity).sum(axis=1, dtype=np.int64)
            differences = np.maximum(differences, abs(len(elements) - sizes[block]))
            twice_overlap = 2 * threshold * size_sums / (1 + threshold) - _ROUNDING
            for candidate in block[size_sums - differences >= twice_overlap].tolist():
                overlap = len(np.intersect1d(elements, sets[candidate], assume_unique=True))
                if overlap >= threshold * (len(elements) + len(sets[candidate]) - overlap) - _ROUNDING:
                    yield candidate

    for index, elements in enumerate(sets):
        frequencies = counts[elements & np.uint64(_COUNTERS - 1)]
        # Similar sets share at least ceil(threshold * size) elements, hence at least one of the prefix_size rarest.
        prefix_size = 1 + len(elements) - ceil(threshold * len(elements) - _ROUNDING)
        rarest = np.argsort(frequencies, kind="stable")[:prefix_size]
        prefix = elements[rarest[frequencies[rarest] > 1]].tolist()  # the others are unique
        if sum(len(postings[element]) for element in prefix) > len(kept_sets):  # comparing all kept sets is cheaper
            candidates = np.array(kept_sets, dtype=np.uint32)
        else:
            lists = [np.array(postings[element], dtype=np.uint32) for element in prefix]
            candidates = np.unique(np.concatenate([np.zeros(0, dtype=np.uint32), *lists]))
        parity = _pack_parities(elements)
        match = next(find_similar(elements, parity, candidates), None)
        if match is None:
            kept_sets.append(index)
            parities[index] = parity
            for element in prefix:
                postings[element].append(index)
        yield match


def _pack_parities(elements: Hashes) -> Hashes:
    ranges = (elements >> np.uint64(65 - _PARITY_BITS.bit_length())).astype(np.int64)
    odd = np.bincount(ranges, minlength=_PARITY_BITS).astype(np.uint8) & 1
    return np.packbits(odd).view(np.uint64)
