"""A stream of documents in random order, and as the rows of a data set that the Trainer can begin anywhere."""

from __future__ import annotations

import bisect
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch.utils.data
from datasets import Dataset

from simlte_st.data.corpus import EXACT_COPY, TOO_SHORT
from simlte_st.data.document import Document, SegmentedDocument, text_key
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import TokenCounter, segment_document
from simlte_st.data.shards import Reading, Shards
from simlte_st.data.views import View, draw_views, view_rng
from simlte_st.distributed import is_main
from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.files import read_json, write_json

logger = logging.getLogger(__name__)

BUFFER = 10_000
"""Documents that are held in memory, and shuffled ..."""

BUFFER_CHARACTERS = 200_000_000
"""... or as many as have so many characters, if those are fewer."""

_BEGINNING = 200  # characters of a text that show whether it has two words


@dataclass(frozen=True)
class Mark:
    """Where a buffer begins: enough to go on from there without reading what comes before.

    Attributes:
        row: Number of its first document, from 0, over all passes.
        epoch: The pass over the source, from 0.
        shard: Shards of the pass that are read.
        line: Rows of the next one that are read.
        used: Documents of the pass before this one.
        skipped: Rows of the first pass that gave no document, by reason.
        left_out: Documents of the first pass that are not trained on, by reason.
    """

    row: int = 0
    epoch: int = 0
    shard: int = 0
    line: int = 0
    used: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)


def shard_order(shards: int, seed: int, epoch: int) -> list[int]:
    """Return the order in which a pass reads the shards: it depends on (seed, epoch) only."""
    order = list(range(shards))
    view_rng(seed, epoch, "order of the shards").shuffle(order)
    return order


class DocumentStream:
    """The documents of shards in an order that depends on the seed only: a sequence without end, read forwards.

    Each pass reads the shards in another order, fills a buffer, shuffles it, gives its documents and fills it anew. So
    which document comes when does not depend on who reads, how many do, or where they begin. A buffer is so many whole
    batches, so that no batch holds a document twice; what is left at the end of a pass, less than a batch, does not
    come in it.
    """

    def __init__(
        self,
        shards: Shards,
        *,
        seed: int,
        usable: Callable[[Document], bool],
        without: Collection[int] = (),
        batch_size: int,
        path: Path | None = None,
    ) -> None:
        self._shards, self._seed, self._usable, self._batch_size = shards, seed, usable, batch_size
        self._without, self._path = frozenset(without), path
        self._buffer: tuple[Mark, list[Document]] = (Mark(), [])
        self._marks = [Mark()]

    def __getitem__(self, row: int) -> tuple[Document, int]:
        """Return the document of a row, and in which pass it comes.

        One of the buffer, and the next one, cost nothing more than reading; others are looked for from the nearest
        mark before them.
        """
        mark, documents = self._buffer
        while not mark.row <= row < mark.row + len(documents):
            marks = self._marks if row < self._marks[-1].row else self._known_marks()
            number = bisect.bisect_right(marks, row, key=lambda mark: mark.row) - 1
            mark, documents, self._buffer = marks[number], [], (Mark(), [])  # no two buffers at once
            documents, after = self._fill(mark)
            if number + 1 == len(marks):
                self._add(after)
            self._buffer = mark, documents
        return documents[row - mark.row], mark.epoch

    def _known_marks(self) -> list[Mark]:
        """Return the marks, those included that another process, or a run before, has come to."""
        if self._path is not None and self._path.exists():
            read = [Mark(**mark) for mark in read_json(self._path)]
            self._marks = max(self._marks, read, key=len)
        return self._marks

    def _fill(self, mark: Mark) -> tuple[list[Document], Mark]:
        """Read a buffer; give it, and the mark after it."""
        order = shard_order(len(self._shards.names), self._seed, mark.epoch)
        reading = Reading(self._shards, order, mark.shard, mark.line)
        documents: list[Document] = []
        left_out: Counter[str] = Counter()
        texts: set[int] = set()
        room, ended = BUFFER_CHARACTERS, False
        for document in reading:
            key = text_key(document.text)
            if key in self._without:
                continue
            if key in texts:
                left_out[EXACT_COPY] += 1
            elif not self._usable(document):
                left_out[TOO_SHORT] += 1
            else:
                texts.add(key)
                documents.append(document)
                room -= len(document.text)
            if (len(documents) >= BUFFER or room <= 0) and len(documents) % self._batch_size == 0:
                break
        else:
            ended = True
        view_rng(self._seed, mark.epoch, f"buffer at {mark.row}").shuffle(documents)
        del documents[len(documents) - len(documents) % self._batch_size :]
        used = mark.used + len(documents)
        after = replace(mark, row=mark.row + len(documents), shard=reading.shard, line=reading.row, used=used)
        if mark.epoch == 0:
            counts = (Counter(mark.skipped) + Counter(reading.report.skipped), Counter(mark.left_out) + left_out)
            after = replace(after, skipped=dict(counts[0]), left_out=dict(counts[1]))
        if ended:
            if not used:
                raise EmptyCorpusError(
                    f"{self._shards.name} has fewer documents to train on than the {self._batch_size:,} of a batch."
                )
            after = replace(after, epoch=mark.epoch + 1, shard=0, line=0, used=0)
        return documents, after

    def _add(self, mark: Mark) -> None:
        last = self._marks[-1]
        self._marks.append(mark)
        # Of all that read the same, one tells and writes.
        worker = torch.utils.data.get_worker_info()
        if not is_main() or (worker is not None and worker.id > 0):
            return
        if mark.epoch > last.epoch == 0:
            logger.info("The stream ended after %s documents: they come again, in other views.", f"{mark.row:,}")
        if self._path is not None:
            write_json(self._path, [asdict(each) for each in self._marks])

    def account(self, rows: int) -> Account:
        """Tell what the first rows were; another process may have read them."""
        marks = self._known_marks()
        ended = next((mark for mark in marks if mark.epoch), None)
        number = next((number for number, mark in enumerate(marks) if mark.row >= rows), len(marks) - 1)
        different = rows if ended is None else min(rows, ended.row)
        last = marks[number] if ended is None or marks[number].row <= ended.row else ended
        return Account(different, rows / different, dict(last.skipped), dict(last.left_out))


@dataclass(frozen=True)
class Account:
    """What was taken from a stream.

    Attributes:
        documents: Different ones.
        passes: How many times they were taken, on average.
        skipped: Rows that gave no document, by reason, in the first pass and up to the end of the last buffer.
        left_out: Documents that were left out, likewise.
    """

    documents: int
    passes: float
    skipped: dict[str, int]
    left_out: dict[str, int]


class StreamedViews:
    """The views of the documents of a stream, as the rows of a data set without documents in it.

    The Trainer's samplers, its processes, its workers and its way to resume are those of any data set: a row is a
    number, and only who takes it cuts the document into sentences. The price is eight bytes a row.
    """

    def __init__(
        self,
        stream: DocumentStream,
        view: View,
        *,
        seed: int,
        budget: int | None,
        segmenter: Segmenter,
        count_tokens: TokenCounter,
    ) -> None:
        self.stream, self._view, self._seed, self._budget = stream, view, seed, budget
        self._segmenter, self._count = segmenter, count_tokens

    def __deepcopy__(self, memo: dict[int, Any]) -> StreamedViews:
        return self  # data sets are copied to change their format; the buffer is held once

    def rows(self, number: int) -> Dataset:
        """Make the data set of the first rows, which read as ``{"anchor": str, "positive": str}``."""
        return Dataset.from_dict({"row": np.arange(number)}).with_transform(self)

    def ids(self, rows: Sequence[int]) -> list[str]:
        """Tell the ids of the documents of rows."""
        return [self.stream[row][0].id for row in rows]

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
        """Draw the views of rows."""
        views: dict[str, list[str]] = {"anchor": [], "positive": []}
        for document, epoch in (self.stream[int(row)] for row in batch["row"]):
            segmented = segment_document(document, self._segmenter, self._count)
            pair = draw_views(segmented, self._view, seed=self._seed, epoch=epoch, budget=self._budget)
            if pair is None:
                raise DataError(
                    f"{self._view!r} accepts the beginning of {document.id!r} and not all of it: a stream needs a view "
                    "that accepts what is longer."
                )
            views["anchor"].append(pair.anchor)
            views["positive"].append(pair.positive)
        return views


def usable_by(view: View, segmenter: Segmenter) -> Callable[[Document], bool]:
    """Make a test whether a view can use a document; most need not be cut into sentences for it."""

    def usable(document: Document) -> bool:
        beginning = SegmentedDocument(document.id, (document.text.lstrip()[:_BEGINNING],), (0,), (1,))
        return view.accepts(beginning) or view.accepts(segment_document(document, segmenter))

    return usable
