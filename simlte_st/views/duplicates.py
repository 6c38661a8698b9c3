"""Find and remove exact and near-duplicates, which would be false negatives of each other in training."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from operator import length_hint
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from simlte_st.arguments import check_arguments
from simlte_st.errors import ConfigurationError, DataError, format_count
from simlte_st.files import atomic_path, check_apart, check_file
from simlte_st.progress import with_progress_bar
from simlte_st.reading.document import Document
from simlte_st.reading.documents import read_documents
from simlte_st.reading.reader import ReadReport
from simlte_st.words.analyzer import normal, split_words

SUFFIXES = (".jsonl", ".ndjson")
"""Suffixes of the files that :func:`dedupe` writes."""

SIMILARITY = 0.75
"""Minimum similarity of near-duplicates by default."""

RUN = 5
"""Words in a run; a shorter document is one run."""

Similarity = Annotated[float, Interval(gt=0, le=1)]
"""Jaccard similarity between the sets of word runs of two documents."""

_COUNTERS = 1 << 22  # run counters, indexed by the last bits of the hash
_PARITIES = 1 << 11  # bits of a set: the parity of the number of its hashes in each range
_TOGETHER = 1 << 14  # sets whose parities are compared at a time
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """Numbers of duplicates of earlier documents."""

    documents: int
    exact: int  # with the same words as an earlier document
    near: int  # others that belong to a group with an earlier document
    groups: int  # of two documents or more

    def summary(self) -> str:
        """Return the counts in a sentence."""
        return (
            f"Duplicates: {self.exact + self.near:,} of {format_count(self.documents, 'document')} ({self.exact:,} "
            f"exact, {self.near:,} near), in {format_count(self.groups, 'group')}"
        )


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Groups of duplicates.

    Attributes:
        groups: The group of each document: the index of the group's first document, which the others duplicate.
            Shape (documents,), int64.
        report: The counts.
    """

    groups: NDArray[np.int64]
    report: DuplicateReport


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """The result of :func:`dedupe`."""

    output: str  # file of the kept documents
    removed: str  # file that lists the removed documents
    kept: int
    copies: DuplicateReport
    read: ReadReport  # what was read and skipped

    def summary(self) -> str:
        """Return the report in two sentences."""
        return (
            f"{self.copies.summary()}. {format_count(self.kept, 'document')} kept in {self.output}; the others are "
            f"listed in {self.removed}, each with the document that it duplicates."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "read": self.read.to_dict()}


@check_arguments
def find_duplicates(
    texts: Iterable[str],
    *,
    near: bool = True,
    similarity: Similarity = SIMILARITY,
    total: int | None = None,
    progress: bool = False,
) -> Duplicates:
    """Find texts that are duplicates of earlier ones.

    Exact duplicates have the same words: case, punctuation, invisible characters, optional vowel signs and white space
    are ignored. A near-duplicate has a Jaccard similarity of ``similarity`` or more with the first text of its group,
    between their sets of five-word runs. The similarity is exact, not estimated. In a chain of similar drafts, the
    first draft is kept, and so is the next one that is not similar to any kept draft.

    Args:
        texts: The texts; read once, in order.
        near: Find near-duplicates too, which takes about 75 bytes of memory per word.
        similarity: Minimum similarity of near-duplicates, above 0 and at most 1.
        total: Number of texts, for the progress bar; for iterators without a length.
        progress: Show progress bars.

    Returns:
        The group of each text, and the counts.

    Raises:
        ConfigurationError: An argument is out of range, or ``similarity=`` is given for exact duplicates.

    Example:
        ::

            find_duplicates(["One text.", "Another text.", "one text"]).groups  # array([0, 1, 0])

    References:
        Broder, "On the resemblance and containment of documents", 1997. Five words and 0.75 are the settings of
        FineWeb (Penedo et al., 2024).
    """
    if not near and similarity != SIMILARITY:
        raise ConfigurationError("similarity= cannot be combined with near=False, which compares whole texts.")
    seen: dict[bytes, int] = {}
    groups = array("q")
    numbers, runs = array("q"), []  # of the first text of each group
    shown = with_progress_bar(texts, "Reading documents", total or length_hint(texts, 0) or None, show=progress)
    for number, text in enumerate(shown):
        words = split_words(text) or normal(text).split()  # a text of symbols only has no words
        digest = hashlib.blake2b("\x00".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        groups.append(seen.setdefault(digest, number))
        if near and groups[-1] == number:
            numbers.append(number)
            runs.append(hash_runs(words))
    members = np.array(groups, dtype=np.int64)
    exact = int((members != np.arange(len(members))).sum())
    if near:
        found = with_progress_bar(similar_earlier(runs, similarity), "Finding duplicates", len(runs), show=progress)
        first = np.arange(len(members))
        for number, other in zip(numbers, found, strict=True):
            if other is not None:
                first[number] = numbers[other]
        members = first[members]
    sizes = np.unique(members, return_counts=True)[1]
    report = DuplicateReport(
        documents=len(members), exact=exact, near=len(members) - len(sizes) - exact, groups=int((sizes > 1).sum())
    )
    return Duplicates(members, report)


@check_arguments
def dedupe(
    source: Any,
    output: str | os.PathLike[str],
    *,
    near: bool = True,
    similarity: Similarity = SIMILARITY,
    overwrite: bool = False,
    progress: bool = True,
) -> DedupeReport:
    """Write the first document of each group of duplicates to a file; see :func:`find_duplicates`.

    Args:
        source: Anything :func:`~simlte_st.data.read_documents` accepts, or the reader that it returned; read twice.
        output: JSON lines file to write, with ``id``, ``text`` and the source's other columns. Beside ``kept.jsonl``,
            ``kept.removed.jsonl`` lists the removed documents (``id``, ``copy_of``).
        near: Remove near-duplicates too, not only documents with exactly the same words.
        similarity: Minimum share of common five-word runs in near-duplicates, above 0 and at most 1.
        overwrite: Overwrite existing files.
        progress: Show progress bars.

    Raises:
        ConfigurationError: An output file exists, cannot be written, is the source or does not end in .jsonl; or an
            argument is out of range.
        DataError: The documents cannot be read, or cannot be read twice.

    Example:
        ::

            report = dedupe("articles.jsonl", "kept.jsonl")
            print(report.summary())
    """
    place = Path(output)
    if place.suffix not in SUFFIXES:
        raise ConfigurationError(f"{place}: choose a name that ends in {' or '.join(SUFFIXES)}.")
    removed = place.with_name(f"{place.stem}.removed{place.suffix}")
    for path in (place, removed):
        check_apart(source, path)
        check_file(path, overwrite)
    reader = read_documents(source).with_options(metadata=True)
    texts, total = (document.text for document in reader), length_hint(reader, 0)
    found = find_duplicates(texts, near=near, similarity=similarity, total=total, progress=progress)
    checksum, firsts = reader.checksum, dict[int, str]()
    with (
        atomic_path(place, removed) as path,
        path.open("w", encoding="utf-8") as kept,
        path.with_name(removed.name).open("w", encoding="utf-8") as gone,
    ):
        for number, (document, group) in enumerate(zip(reader, found.groups.tolist(), strict=False)):
            if number == group:
                firsts[number] = document.id
                kept.write(_line(_row(document, reader.report)))
            else:
                gone.write(_line({"id": document.id, "copy_of": firsts.get(group)}))
        if reader.checksum != checksum:
            raise DataError(
                f"{reader.report.source} changed while it was being read. Nothing was written; run it again."
            )
    return DedupeReport(str(place), str(removed), len(firsts), found.report, reader.report)


def _row(document: Document, report: ReadReport) -> dict[str, Any]:
    """Return a document as a row with the source's column names."""
    own = {report.id_column or "id": document.id, report.text_column or "text": document.text}
    return {**own, **{name: value for name, value in (document.metadata or {}).items() if name not in own}}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def hash_runs(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the sorted, distinct hashes of a document's word runs."""
    hashes = np.array([_hash(word) for word in words] or [0], dtype=np.uint64)
    run = min(RUN, len(hashes))
    mixed = np.full(len(hashes) - run + 1, run, dtype=np.uint64)
    for place in range(run):
        mixed = (mixed ^ hashes[place : place + len(mixed)]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.unique(mixed)


@functools.lru_cache(1 << 18)
def _hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def similar_earlier(sets: Sequence[NDArray[np.uint64]], threshold: float) -> Iterator[int | None]:
    """Yield for each set the index of the first similar kept set; None if the set itself is kept.

    Sets are similar if their Jaccard similarity reaches the threshold. A set is kept if no kept set is similar. Pairs
    are found by prefix filtering (Chaudhuri et al., 2006): with elements ordered from the rarest, two similar sets
    share one of their first few. Parities rule out most of these pairs (Sandes et al., Bitmap-Xor, 2019). The result is
    exact. Documents of one template share frequent runs, which come last and are rarely compared.
    """
    counts, parities = _count(sets), np.zeros((len(sets), _PARITIES // 64), dtype=np.uint64)
    sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
    # The kept sets, and those by their first elements.
    kept, beginning = array("I"), defaultdict[int, "array[int]"](lambda: array("I"))

    def similar(elements: NDArray[np.uint64], own: NDArray[np.uint64], candidates: NDArray[np.uint32]) -> Iterator[int]:
        for begin in range(0, len(candidates), _TOGETHER):
            numbers = candidates[begin : begin + _TOGETHER]
            both = len(elements) + sizes[numbers]
            # An element of only one set flips a parity; two can cancel out.
            apart = np.bitwise_count(parities[numbers] ^ own).sum(axis=1, dtype=np.int64)
            apart = np.maximum(apart, abs(len(elements) - sizes[numbers]))
            needed = 2 * threshold * both / (1 + threshold) - _ROUNDING
            for other in numbers[both - apart >= needed].tolist():
                common = len(np.intersect1d(elements, sets[other], assume_unique=True))
                if common >= threshold * (len(elements) + len(sets[other]) - common) - _ROUNDING:
                    yield other

    for number, elements in enumerate(sets):
        rarity = counts[elements & np.uint64(_COUNTERS - 1)]
        # At most this many elements come before the first common one of two similar sets.
        most = len(elements) - ceil(threshold * len(elements) - _ROUNDING)
        first = np.argsort(rarity, kind="stable")[: most + 1]
        places = elements[first[rarity[first] > 1]].tolist()  # an element that was counted once is not shared
        if sum(len(beginning[element]) for element in places) > len(kept):  # comparing all kept sets costs less
            candidates = np.array(kept, dtype=np.uint32)
        else:
            found_by = [np.array(beginning[element], dtype=np.uint32) for element in places]
            candidates = np.unique(np.concatenate([np.zeros(0, dtype=np.uint32), *found_by]))
        own = _parities(elements)
        found = next(similar(elements, own, candidates), None)
        if found is None:
            kept.append(number)
            parities[number] = own
            for element in places:
                beginning[element].append(number)
        yield found


def _count(sets: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    counts = np.zeros(_COUNTERS, dtype=np.uint32)
    for elements in sets:
        np.add.at(counts, elements & np.uint64(_COUNTERS - 1), 1)
    return counts


def _parities(elements: NDArray[np.uint64]) -> NDArray[np.uint64]:
    parts = (elements >> np.uint64(65 - _PARITIES.bit_length())).astype(np.int64)
    odd = np.bincount(parts, minlength=_PARITIES).astype(np.uint8) & 1
    return np.packbits(odd).view(np.uint64)
