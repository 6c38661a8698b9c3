"""Stream documents in random order, and their views as a data set that the Trainer can resume at any row."""

from __future__ import annotations

import bisect
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch.utils.data
from datasets import Dataset

from simlte_st.distributed import is_main
from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.files import read_json, write_json
from simlte_st.reading.document import Document, SegmentedDocument, text_key
from simlte_st.reading.documents import ShardReader, Shards
from simlte_st.views.views import View, draw_views, view_rng
from simlte_st.words.sentences import Segmenter, TokenCounter, segment_document

logger = logging.getLogger(__name__)

BUFFER = 10_000
"""Maximum number of documents held in memory and shuffled together."""

BUFFER_CHARACTERS = 200_000_000
"""Maximum number of characters held in memory."""

_BEGINNING = 200  # characters, usually enough to see that a text has two words


@dataclass(frozen=True)
class Cursor:
    """The position of a buffer, from which reading can resume without rereading the documents before it."""

    row: int = 0  # row of its first document, over all passes
    epoch: int = 0  # the pass over the source
    shard: int = 0  # shards read in this pass
    line: int = 0  # rows read in the next shard
    used: int = 0  # documents used earlier in this pass


class StreamUsage(NamedTuple):
    """Documents that training used from a stream."""

    documents: int  # distinct documents
    passes: float  # mean number of uses of a document


def shard_order(shards: int, seed: int, epoch: int) -> list[int]:
    """Return the order in which a pass reads the shards; it depends only on the seed and the epoch."""
    order = list(range(shards))
    view_rng(seed, epoch, "order of the shards").shuffle(order)
    return order


class DocumentStream:
    """An endless sequence of the documents in shards, in an order that depends only on the seed.

    Each pass reads the shards in a new order, and repeatedly fills a buffer, shuffles it and returns its documents. The
    order does not depend on the number of processes or on where they start. A buffer holds whole batches, so that no
    batch contains a document twice; the incomplete batch at the end of a pass is dropped.
    """

    def __init__(
        self, shards: Shards, *, seed: int, usable: Callable[[Document], bool], batch_size: int,
        excluded_keys: Collection[int] = (), path: Path | None = None,
    ) -> None:  # fmt: skip
        self._shards, self._seed, self._usable, self._batch_size = shards, seed, usable, batch_size
        self._excluded_keys, self._path = frozenset(excluded_keys), path
        self._buffer: tuple[Cursor, list[Document]] = (Cursor(), [])
        self._cursors = [Cursor()]

    def __getitem__(self, row: int) -> tuple[Document, int]:
        """Return the document of a row and its pass.

        Rows in the current or the next buffer need no seeking; others are read from the nearest cursor before them.
        """
        cursor, documents = self._buffer
        while not cursor.row <= row < cursor.row + len(documents):
            cursors = self._cursors if row < self._cursors[-1].row else self._all_cursors()
            number = bisect.bisect_right(cursors, row, key=lambda cursor: cursor.row) - 1
            cursor, documents = cursors[number], []
            self._buffer = Cursor(), documents  # free the old buffer before filling the new one
            documents, next_cursor = self._fill(cursor)
            if number + 1 == len(cursors):
                self._add(next_cursor)
            self._buffer = cursor, documents
        return documents[row - cursor.row], cursor.epoch

    def _all_cursors(self) -> list[Cursor]:
        """Return the cursors, including those of other processes and of a resumed run."""
        if self._path is not None and self._path.exists():
            saved_cursors = [Cursor(**cursor) for cursor in read_json(self._path)]
            self._cursors = max(self._cursors, saved_cursors, key=len)
        return self._cursors

    def _fill(self, cursor: Cursor) -> tuple[list[Document], Cursor]:
        """Return the buffer at a cursor, and the next cursor."""
        order = shard_order(len(self._shards.names), self._seed, cursor.epoch)
        reader = ShardReader(self._shards, order, cursor.shard, cursor.line)
        documents: list[Document] = []
        keys = set(self._excluded_keys)
        free_characters, is_last = BUFFER_CHARACTERS, False
        for document in reader:
            key = text_key(document.text)
            if key not in keys and self._usable(document):
                keys.add(key)
                documents.append(document)
                free_characters -= len(document.text)
            if (len(documents) >= BUFFER or free_characters <= 0) and len(documents) % self._batch_size == 0:
                break
        else:
            is_last = True
        view_rng(self._seed, cursor.epoch, f"buffer at {cursor.row}").shuffle(documents)
        del documents[len(documents) - len(documents) % self._batch_size :]
        row, used = cursor.row + len(documents), cursor.used + len(documents)
        if not is_last:
            return documents, Cursor(row, cursor.epoch, reader.shard, reader.row, used)
        if not used:
            raise EmptyCorpusError(f"{self._shards.name}: fewer documents than batch_size={self._batch_size}.")
        return documents, Cursor(row, cursor.epoch + 1)

    def _add(self, cursor: Cursor) -> None:
        last = self._cursors[-1]
        self._cursors.append(cursor)
        # Only one of the processes that read the same rows logs and writes.
        worker = torch.utils.data.get_worker_info()
        if not is_main() or (worker is not None and worker.id > 0):
            return
        if cursor.epoch > last.epoch == 0:
            logger.info("The stream ended after %s documents; they are repeated, with new views.", f"{cursor.row:,}")
        if self._path is not None:
            write_json(self._path, list(map(asdict, self._cursors)))

    def usage(self, rows: int) -> StreamUsage:
        """Return the usage of the first rows, which another process may have read."""
        documents = min(rows, next((cursor.row for cursor in self._all_cursors() if cursor.epoch), rows))
        return StreamUsage(documents, rows / documents)


class StreamedViews:
    """Views of a stream's documents, as a data set that does not store the documents.

    The Trainer samples, distributes and resumes it like any other data set. A row is a number, which takes eight bytes;
    its document is segmented when the row is read.
    """

    def __init__(
        self, stream: DocumentStream, view: View, *, seed: int, budget: int | None, segmenter: Segmenter,
        count_tokens: TokenCounter,
    ) -> None:  # fmt: skip
        self.stream, self._view, self._seed, self._budget = stream, view, seed, budget
        self._segmenter, self._count_tokens = segmenter, count_tokens

    def __deepcopy__(self, memo: dict[int, object]) -> StreamedViews:
        return self  # datasets copies a transform with the format; all copies share one buffer

    def rows(self, number: int) -> Dataset:
        """Return the data set of the first rows, each ``{"anchor": str, "positive": str}``."""
        return Dataset.from_dict({"row": np.arange(number)}).with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
        """Draw the views of rows."""
        views: dict[str, list[str]] = {"anchor": [], "positive": []}
        for document, epoch in (self.stream[int(row)] for row in batch["row"]):
            segmented = segment_document(document, self._segmenter, self._count_tokens)
            pair = draw_views(segmented, self._view, seed=self._seed, epoch=epoch, budget=self._budget)
            if pair is None:
                raise DataError(
                    f"{self._view!r} accepts the beginning of {document.id!r} but not the whole document: a stream "
                    "needs a view that accepts longer documents too."
                )
            views["anchor"].append(pair.anchor)
            views["positive"].append(pair.positive)
        return views


def usable_by(view: View, segmenter: Segmenter) -> Callable[[Document], bool]:
    """Return a function that tells whether a view can use a document, usually without segmenting it."""

    def usable(document: Document) -> bool:
        beginning = SegmentedDocument(document.id, (document.text.lstrip()[:_BEGINNING],), (0,), (1,))
        return view.accepts(beginning) or view.accepts(segment_document(document, segmenter))

    return usable
