"""Write segmented documents to a memory-mapped Arrow file of any size, or stream them in random order.

Views of a stream form a data set that the Trainer can resume at any row.
"""

from __future__ import annotations

import bisect
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import length_hint
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from simlte_st.arguments import check_arguments
from simlte_st.distributed import is_main
from simlte_st.errors import DataError, EmptyCorpusError
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.progress import with_progress_bar
from simlte_st.reading.document import Document, DocumentSource, SegmentedDocument, text_key
from simlte_st.reading.documents import ShardReader, Shards, format_reason, read_documents
from simlte_st.views.views import View, draw_views, view_rng
from simlte_st.words.sentences import PunktSegmenter, Segmenter, TokenCounter, estimate_tokens, segment_stream
from simlte_st.words.tokens import in_batches

logger = logging.getLogger(__name__)

Segment = Callable[[Document], SegmentedDocument]
"""Function that splits a document into sentences."""

_NUMBERS = pa.list_(pa.int32())
SCHEMA = pa.schema({"id": pa.string(), "sentences": pa.list_(pa.string()), "paragraphs": _NUMBERS, "tokens": _NUMBERS})
"""Columns of a corpus, named after the fields of :class:`~simlte_st.reading.document.SegmentedDocument`."""

_BATCH = 256  # maximum rows in an Arrow record batch
_BATCH_CHARACTERS = 32_000_000  # maximum characters in a record batch, to limit memory use

BUFFER = 10_000
"""Maximum number of documents held in memory and shuffled together."""

BUFFER_CHARACTERS = 200_000_000
"""Maximum number of characters in these documents."""

_BEGINNING = 200  # characters; usually enough to find two words


@dataclass
class CorpusReport:
    """Counts of documents, sentences and tokens in a corpus, and of documents left out, by reason."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0  # excluding special tokens
    longest: int = 0  # number of tokens in the longest document
    left_out: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return asdict(self)

    def count(self, document: SegmentedDocument) -> None:
        """Add a document to the counts."""
        size = sum(document.tokens)
        self.documents += 1
        self.sentences += len(document.tokens)
        self.tokens += size
        self.longest = max(self.longest, size)

    def leave_out(self, reason: str) -> None:
        """Count a document as left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


@check_arguments
def write_corpus(
    documents: DocumentSource,
    directory: str | os.PathLike[str],
    *,
    view: View,
    segmenter: str | Segmenter = "punkt",
    count_tokens: TokenCounter = estimate_tokens,
    hold_out: Callable[[Iterable[Document]], Iterable[Document]] | None = None,
    progress: bool = False,
) -> tuple[Dataset, CorpusReport]:
    """Segment documents and write them to ``directory``, or open the corpus if it is already complete.

    Exact duplicates of an earlier document are dropped. An existing corpus is not checked against the documents; the
    caller must ensure, as a training run does, that it was written from them with the same settings.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` accepts; read once, in order.
        directory: Folder for ``corpus.arrow``, ``corpus.json`` (the report, written last) and, if Punkt is used,
            ``punkt.json`` (its parameters).
        view: The view whose ``accepts`` decides which documents are used.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.
        count_tokens: Function that counts the model's tokens in sentences.
        hold_out: Function that receives the documents without duplicates and returns those to write; it can hold out
            the rest, for example for evaluation.
        progress: Show a progress bar.

    Returns:
        The memory-mapped data set (columns ``id``, ``sentences``, ``paragraphs`` and ``tokens``) and its report.

    Raises:
        EmptyCorpusError: Fewer than two documents are usable, too few for in-batch negatives.
    """
    directory = Path(directory)
    if not (directory / "corpus.json").exists():
        reader, report = read_documents(documents), CorpusReport()
        unique_documents = _without_duplicates(reader, report)
        corpus_documents = unique_documents if hold_out is None else hold_out(unique_documents)
        trained_segmenter, segmented = segment_stream(corpus_documents, segmenter, count_tokens)
        if isinstance(trained_segmenter, PunktSegmenter):
            write_json(directory / "punkt.json", trained_segmenter.to_dict())
        bar = with_progress_bar(segmented, "Segmenting", length_hint(reader, 0), show=progress)
        with atomic_path(directory / "corpus.arrow") as path:
            _write_rows(path, _select(bar, view, report))
        if report.documents < 2:
            raise EmptyCorpusError(too_few_documents(report.documents, report.left_out))
        write_json(directory / "corpus.json", report.to_dict())
    return Dataset.from_file(str(directory / "corpus.arrow")), CorpusReport(**read_json(directory / "corpus.json"))


def _without_duplicates(documents: Iterable[Document], report: CorpusReport) -> Iterator[Document]:
    """Yield documents except exact duplicates, which would be false negatives of each other.

    This takes about 100 bytes of memory per document, for a 64-bit hash of its text.
    """
    keys: set[int] = set()
    for document in documents:
        key = text_key(document.text)
        if key in keys:
            report.leave_out("exact duplicate of another document")
        else:
            keys.add(key)
            yield document


def _select(documents: Iterable[SegmentedDocument], view: View, report: CorpusReport) -> Iterator[SegmentedDocument]:
    for document in documents:
        if view.accepts(document):
            report.count(document)
            yield document
        else:
            report.leave_out("too short for two views")


def _write_rows(path: Path, documents: Iterable[SegmentedDocument]) -> None:
    batches = in_batches(documents, lambda document: sum(map(len, document.sentences)), _BATCH_CHARACTERS, _BATCH)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        for batch in batches:
            columns = {name: [getattr(document, name) for document in batch] for name in SCHEMA.names}
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))


def from_rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[SegmentedDocument]:
    """Yield segmented documents from the columns of a corpus, or of a slice of it."""
    for document_id, *lists in zip(*(columns[name] for name in SCHEMA.names), strict=True):
        yield SegmentedDocument(document_id, *map(tuple, lists))


def too_few_documents(documents: int, left_out: Mapping[str, int] | None = None) -> str:
    """Return the error message for a corpus with too few documents to train on."""
    reasons = ", ".join(format_reason(reason, count) for reason, count in (left_out or {}).items())
    return (
        "Training needs at least 2 documents, because the negatives are the other documents in the batch. "
        f"{documents} can be used{f' (left out: {reasons})' if reasons else ''}."
    )


def document_lengths(corpus: Dataset) -> Iterator[NDArray[np.int64]]:
    """Yield the number of tokens in each document of a corpus, in batches."""
    for batch in corpus.with_format("arrow").select_columns("tokens").iter(batch_size=1000):
        tokens = batch["tokens"].combine_chunks()
        sums = np.concatenate([[0], np.cumsum(tokens.values.to_numpy())])
        ends = sums[tokens.offsets.to_numpy()]
        yield np.diff(ends)


@dataclass(frozen=True)
class Cursor:
    """Position at which a buffer starts, to resume reading there without rereading earlier documents."""

    row: int = 0  # row of the buffer's first document, counted over all passes
    epoch: int = 0  # number of the pass over the source
    shard: int = 0  # number of shards fully read in this pass
    line: int = 0  # number of rows read in the current shard
    used: int = 0  # number of documents used so far in this pass


class StreamUsage(NamedTuple):
    """Usage of a stream's documents by training."""

    documents: int  # number of distinct documents
    passes: float  # mean number of times each was used


def shard_order(shards: int, seed: int, epoch: int) -> list[int]:
    """Return the order of shards in a pass, which depends only on the seed and the epoch."""
    order = list(range(shards))
    view_rng(seed, epoch, "order of the shards").shuffle(order)
    return order


class DocumentStream:
    """Endless sequence of the documents in shards, in an order that depends only on the seed.

    Each pass reads the shards in a new order, filling a buffer again and again and returning its documents in shuffled
    order. The order does not depend on the number of processes or on where they start. A buffer holds whole batches, so
    that no batch contains a document twice; the incomplete batch at the end of a pass is dropped.
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
        """Return the document at a row and the number of its pass.

        Rows in the current or the next buffer need no seeking; any other row is read from the nearest earlier cursor.
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
        """Return all cursors, including those saved by other processes or by the run being resumed."""
        if self._path is not None and self._path.exists():
            self._cursors = max(self._cursors, [Cursor(**cursor) for cursor in read_json(self._path)], key=len)
        return self._cursors

    def _fill(self, cursor: Cursor) -> tuple[list[Document], Cursor]:
        """Fill the buffer at a cursor; return its documents and the next cursor."""
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
            raise EmptyCorpusError(f"{self._shards.name} has fewer documents than batch_size={self._batch_size}.")
        return documents, Cursor(row, cursor.epoch + 1)

    def _add(self, cursor: Cursor) -> None:
        from torch.utils.data import get_worker_info

        last = self._cursors[-1]
        self._cursors.append(cursor)
        # Several processes read the same rows; only one of them logs and saves the cursors.
        worker = get_worker_info()
        if not is_main() or (worker is not None and worker.id > 0):
            return
        if cursor.epoch > last.epoch == 0:
            logger.info("The stream ended after %s documents; training repeats them with new views.", f"{cursor.row:,}")
        if self._path is not None:
            write_json(self._path, list(map(asdict, self._cursors)))

    def usage(self, rows: int) -> StreamUsage:
        """Return the usage of documents in the first ``rows`` rows, which another process may have read."""
        documents = min(rows, next((cursor.row for cursor in self._all_cursors() if cursor.epoch), rows))
        return StreamUsage(documents, rows / documents)


class StreamedViews:
    """Data set of the views of a stream's documents, which does not store the documents.

    The Trainer samples, distributes and resumes it like any other data set. Each row stores only its number, in eight
    bytes; the document is segmented when the row is read.
    """

    def __init__(self, stream: DocumentStream, view: View, segment: Segment, *, seed: int, budget: int | None) -> None:
        self.stream, self._view, self._segment, self._seed, self._budget = stream, view, segment, seed, budget

    def __deepcopy__(self, memo: dict[int, object]) -> StreamedViews:
        return self  # datasets copies the transform with the format; all copies must share one buffer

    def rows(self, number: int) -> Dataset:
        """Return a data set of the first ``number`` rows, each ``{"anchor": str, "positive": str}``."""
        return Dataset.from_dict({"row": np.arange(number)}).with_transform(self)

    def __call__(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[str]]:
        """Draw the views of a batch of rows."""
        views: dict[str, list[str]] = {"anchor": [], "positive": []}
        for document, epoch in (self.stream[int(row)] for row in batch["row"]):
            pair = draw_views(self._segment(document), self._view, seed=self._seed, epoch=epoch, budget=self._budget)
            if pair is None:
                problem = f"{self._view!r} accepts the beginning of {document.id!r} but not the whole document"
                raise DataError(f"{problem}: a stream needs a view that also accepts any longer document.")
            views["anchor"].append(pair.anchor)
            views["positive"].append(pair.positive)
        return views


def is_usable(document: Document, view: View, segment: Segment) -> bool:
    """Return whether a view can use a document, usually without segmenting it."""
    beginning = SegmentedDocument(document.id, (document.text.lstrip()[:_BEGINNING],), (0,), (1,))
    return view.accepts(beginning) or view.accepts(segment(document))
