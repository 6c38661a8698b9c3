"""Duplicates among documents, exact or near: found, as they would be false negatives of each other, and removed."""

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

from simlte_st.arguments import checked
from simlte_st.data.analyzer import normal, words_of
from simlte_st.data.document import Document
from simlte_st.data.documents import read_documents
from simlte_st.data.reader import ReadReport
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.files import atomic_path, check_apart, check_new, check_place
from simlte_st.progress import with_progress_bar

SUFFIXES = (".jsonl", ".ndjson")
"""Suffixes of the files that :func:`dedupe` writes."""

RUN = 5
"""Words that are compared together; a shorter document is one run."""

Similarity = Annotated[float, Interval(gt=0, le=1)]
"""The Jaccard similarity of two documents, between their sets of runs of words."""

_COUNTERS = 1 << 22  # runs are counted by the last bits of their hash
_PARITIES = 1 << 11  # of a set: how many of its elements are in each part of the range of hashes, odd or even
_TOGETHER = 1 << 14  # sets whose parities are compared at once
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class DuplicateReport:
    """How many of the documents are duplicates of earlier ones."""

    documents: int
    exact: int  # with the same words as an earlier document
    near: int  # others that belong to a group with an earlier document
    groups: int  # of two documents or more

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


@dataclass(frozen=True, slots=True)
class DedupeReport:
    """What :func:`dedupe` kept."""

    output: str  # the file of the documents that were kept
    removed: str  # the file that lists the others
    kept: int
    copies: DuplicateReport
    read: ReadReport  # what was read, and what could not be

    def summary(self) -> str:
        """Return the report in two sentences."""
        return (
            f"{self.copies.summary()}. {self.kept:,} documents are in {self.output}; the others are listed in "
            f"{self.removed}, each with the document that it duplicates."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "read": self.read.to_dict()}


@checked
def find_duplicates(
    texts: Iterable[str],
    *,
    near: bool = True,
    similarity: Similarity = 0.75,
    total: int | None = None,
    progress: bool = False,
) -> Duplicates:
    """Find texts that are duplicates of earlier ones.

    Exact duplicates have the same words: case, punctuation, invisible characters, vowel signs that are mostly not
    written and white space make no difference. A near-duplicate has a Jaccard similarity of ``similarity`` or more with
    the first text of its group, between their sets of five-word runs. That is computed, not estimated. Of a chain of
    drafts, each like the next one, the first is kept, and so is the first that is not similar to it.

    Args:
        texts: The texts of documents; read once, in order.
        near: Find near-duplicates too. That keeps 8 bytes a word in memory.
        similarity: Similarity from which on two texts are near-duplicates, above 0 and at most 1.
        total: Number of texts, for the progress bar of texts without a length.
        progress: Show progress bars.

    Returns:
        The group of each text, and counts.

    Raises:
        ConfigurationError: An argument is out of its range.

    References:
        Broder, "On the resemblance and containment of documents", 1997. Five words and 0.75 are the settings of
        FineWeb (Penedo et al., 2024).
    """
    seen: dict[bytes, int] = {}
    groups = array("q")
    numbers, runs = array("q"), []  # of the first text with each sequence of words
    shown = with_progress_bar(texts, "Reading documents", total or length_hint(texts, 0) or None, shown=progress)
    for number, text in enumerate(shown):
        words = words_of(text) or normal(text).split()  # a text of nothing but symbols is compared as it is
        digest = hashlib.blake2b("\x00".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
        groups.append(seen.setdefault(digest, number))
        if near and groups[-1] == number:
            numbers.append(number)
            runs.append(hash_runs(words))
    members = np.array(groups, dtype=np.int64)
    exact = int((members != np.arange(len(members))).sum())
    if near:
        found = with_progress_bar(similar_earlier(runs, similarity), "Finding duplicates", len(runs), shown=progress)
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
    )
    return Duplicates(members, report)


@checked
def dedupe(
    source: Any,
    output: str | os.PathLike[str],
    *,
    near: bool = True,
    similarity: Similarity = 0.75,
    overwrite: bool = False,
    progress: bool = True,
) -> DedupeReport:
    """Write documents without duplicates: the first document of each group is kept; see :func:`find_duplicates`.

    Args:
        source: Anything :func:`~simlte_st.data.read_documents` takes, or the reader it returned; read twice.
        output: The file of JSON lines to write: ``id``, ``text``, and the other columns of the source. Beside
            ``kept.jsonl``, ``kept.removed.jsonl`` lists the removed documents (``id``, ``copy_of``).
        near: Remove near-duplicates too, not only documents with exactly the same words.
        similarity: Share of runs of five words in common from which on two documents are near-duplicates; above 0 and
            at most 1.
        overwrite: Overwrite existing files.
        progress: Show progress bars.

    Raises:
        ConfigurationError: A file exists or cannot be written, is the source, or is not a file of JSON lines; or an
            argument is out of its range.
        DataError: The documents cannot be read, or only once.
    """
    place = Path(output)
    if place.suffix not in SUFFIXES:
        raise ConfigurationError(f"{place}: choose a name that ends in {' or '.join(SUFFIXES)}.")
    removed = place.with_name(f"{place.stem}.removed{place.suffix}")
    for path in (place, removed):
        check_apart(source, path)
        check_place(path)
        check_new(path, overwrite)
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
            raise DataError(f"{reader.report.source} changed while it was read: nothing was written. Run it again.")
    return DedupeReport(str(place), str(removed), len(firsts), found.report, reader.report)


def _row(document: Document, report: ReadReport) -> dict[str, Any]:
    """Return a document under the names that its columns have in the source."""
    own = {report.id_column or "id": document.id, report.text_column or "text": document.text}
    return {**own, **{name: value for name, value in (document.metadata or {}).items() if name not in own}}


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str) + "\n"


def hash_runs(words: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hashes of a document's different runs of words, ascending."""
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
    """Yield for each set the first kept one whose Jaccard similarity with it reaches the threshold; None if it is kept.

    A set is kept if no kept one is similar, so that whatever is left out is similar to one that is there. Pairs are
    found by prefix filtering (Chaudhuri et al., 2006): with all elements in one order, from the rarest on, two similar
    sets share one among their first few. Most of those pairs are ruled out by parities (Sandes et al., Bitmap-Xor,
    2019). Nothing is estimated. Documents of one template share their frequent runs, which come last and so are hardly
    looked at.
    """
    counts, parities = _count(sets), np.zeros((len(sets), _PARITIES // 64), dtype=np.uint64)
    sizes = np.array([len(elements) for elements in sets], dtype=np.int64)
    kept, beginning = (
        array("I"),
        defaultdict[int, "array[int]"](lambda: array("I")),
    )  # sets, and those by first elements

    def similar(elements: NDArray[np.uint64], own: NDArray[np.uint64], candidates: NDArray[np.uint32]) -> Iterator[int]:
        for begin in range(0, len(candidates), _TOGETHER):
            numbers = candidates[begin : begin + _TOGETHER]
            both = len(elements) + sizes[numbers]
            # What only one of two sets has makes a parity differ, or makes it the same again.
            apart = np.bitwise_count(parities[numbers] ^ own).sum(axis=1, dtype=np.int64)
            apart = np.maximum(apart, abs(len(elements) - sizes[numbers]))
            needed = 2 * threshold * both / (1 + threshold) - _ROUNDING
            for other in numbers[both - apart >= needed].tolist():
                common = len(np.intersect1d(elements, sets[other], assume_unique=True))
                if common >= threshold * (len(elements) + len(sets[other]) - common) - _ROUNDING:
                    yield other

    for number, elements in enumerate(sets):
        rarity = counts[elements & np.uint64(_COUNTERS - 1)]
        # Before the first element that two sets of this similarity share there are at most this many others.
        most = len(elements) - ceil(threshold * len(elements) - _ROUNDING)
        first = np.argsort(rarity, kind="stable")[: most + 1]
        places = elements[first[rarity[first] > 1]].tolist()  # nothing else has an element that was counted once
        if sum(len(beginning[element]) for element in places) > len(kept):  # to look at all of them costs less
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
