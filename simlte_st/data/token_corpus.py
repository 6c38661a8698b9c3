"""A corpus of token ids on disk, memory-mapped, however large it is."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Collection, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from simlte_st.data.corpus import CorpusReport, Coverage, check_size
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.token_parts import Part
from simlte_st.data.tokenized_document import TokenizedDocument
from simlte_st.data.views import View, count_seen, draw_sides
from simlte_st.errors import DataError
from simlte_st.files import read_json

ROW = "row"
"""The only column of the data sets that stand for a corpus: numbers of its documents."""


class TokenCorpus:
    """The documents of a corpus as token ids; made by :func:`~simlte_st.data.tokenize_corpus`.

    Nothing is read before it is used, and a copy sent to another process maps the same files.

    Args:
        path: The corpus' list of parts.

    Attributes:
        path: The same.

    Raises:
        DataError: There is no such corpus (any more).
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            parts = read_json(self.path)["parts"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{self.path} is no corpus of token ids ({error}): build it again.") from error
        self._files = [self.path.parent.parent / "parts" / f"{part['digest']}.arrow" for part in parts]
        self._ends: list[int] = list(accumulate(part["documents"] for part in parts))
        self._parts: list[Part | None] = [None] * len(parts)
        for file in self._files:
            if not file.exists():
                raise DataError(f"{file}, a part of {self.path}, is missing: build the corpus again.")

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, row: int) -> TokenizedDocument:
        """Give a document by its number, from 0."""
        number = int(row)
        if not 0 <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        part = bisect_right(self._ends, number)
        return self._part(part)[number - (self._ends[part - 1] if part else 0)]

    def __iter__(self) -> Iterator[TokenizedDocument]:
        """Give all documents in order."""
        for part in map(self._part, range(len(self._files))):
            for index in range(len(part)):
                yield part[index]

    def _part(self, number: int) -> Part:
        part = self._parts[number]
        if part is None:
            part = self._parts[number] = Part(self._files[number])
        return part

    def __getstate__(self) -> dict[str, Any]:
        """Take along the files' names only: another process maps them itself."""
        return {**self.__dict__, "_parts": [None] * len(self._files)}

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Tokens of each document, special tokens not counted: ``(documents,)``, int64."""
        return np.concatenate([self._part(number).sizes for number in range(len(self._files))]).astype(np.int64)

    def usable(self, view: View, without: Collection[str] = ()) -> tuple[NDArray[np.int64], CorpusReport]:
        """Find the documents that a view can use.

        Args:
            view: Decides (:meth:`~simlte_st.data.views.View.accepts`).
            without: Ids of documents to leave out silently: those held out.

        Returns:
            Their rows, ascending, int64; and what became of the documents.

        Raises:
            EmptyCorpusError: Fewer than two documents can be used: in-batch negatives need two.
        """
        held_out = frozenset(without)
        rows: list[int] = []
        report = CorpusReport()
        for row, document in enumerate(self):
            if document.id not in held_out and report.add(document, view):
                rows.append(row)
        check_size(report)
        return np.array(rows, dtype=np.int64), report

    def dataset(self, rows: NDArray[np.int64] | None = None) -> Dataset:
        """Make a data set for a Trainer.

        Args:
            rows: The documents in it; all where not given.

        Returns:
            A data set with the one column ``row``, for a :class:`~simlte_st.data.TokenCollator` over this corpus.
        """
        return Dataset(pa.table({ROW: pa.array(np.arange(len(self)) if rows is None else rows, pa.int64())}))


def measure_token_coverage(
    corpus: TokenCorpus, drawer: PairDrawer, rows: NDArray[np.int64] | None = None, most: int = 2_000
) -> Coverage:
    """Draw the first epoch's views of up to ``most`` documents, spread evenly over ``rows``, and count tokens.

    Args:
        corpus: The corpus.
        drawer: Its view, seed and budget are used.
        rows: The documents trained on; all where not given.
        most: Look at no more documents.
    """
    chosen = np.arange(len(corpus)) if rows is None else rows
    counts = []
    for row in chosen[:: max(1, -(-len(chosen) // most))]:
        document = corpus[row]
        sides = draw_sides(document, drawer.view, seed=drawer.seed, budget=drawer.budget)
        if sides is not None:
            counts.append((sum(document.tokens), count_seen(document, sides, drawer.budget)))
    return Coverage.of(counts)
