"""A corpus on disk: documents segmented once, in a memory-mapped Arrow file of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import length_hint
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset
from numpy.typing import NDArray

from simlte_st.data.document import Document, SegmentedDocument, text_key
from simlte_st.data.documents import read_documents
from simlte_st.data.reader import counted
from simlte_st.data.sentences import PunktSegmenter, Segmenter, TokenCounter, estimate_tokens, segment_stream
from simlte_st.data.tokens import in_batches
from simlte_st.data.views import View
from simlte_st.errors import EmptyCorpusError
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.progress import with_progress_bar

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "sentences": pa.list_(pa.string()),
        "paragraphs": pa.list_(pa.int32()),
        "tokens": pa.list_(pa.int32()),
    }
)
"""Columns of a corpus: the attributes of a :class:`~simlte_st.data.document.SegmentedDocument`."""

TOO_SHORT = "too short for two views"
EXACT_COPY = "exact copy of another document"
_BATCH = 256  # rows in an Arrow record batch ...
_BATCH_CHARACTERS = 32_000_000  # ... or fewer, of long documents: one batch is held in memory


@dataclass
class CorpusReport:
    """The documents of a corpus, their sentences and tokens, and how many were left out, by reason."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0  # without special tokens
    longest: int = 0  # tokens of the longest document
    left_out: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)

    def count(self, document: SegmentedDocument) -> None:
        """Count a document of the corpus."""
        size = sum(document.tokens)
        self.documents += 1
        self.sentences += len(document.tokens)
        self.tokens += size
        self.longest = max(self.longest, size)

    def leave_out(self, reason: str) -> None:
        """Count a document that is left out."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1


def write_corpus(
    documents: Any,
    directory: str | os.PathLike[str],
    *,
    view: View,
    segmenter: str | Segmenter = "punkt",
    count_tokens: TokenCounter = estimate_tokens,
    hold_out: Callable[[Iterable[Document]], Iterable[Document]] | None = None,
    progress: bool = False,
) -> tuple[Dataset, CorpusReport]:
    """Segment documents and write them to ``directory``; read the corpus there if it is complete already.

    Of documents with exactly the same text the first is kept, and the others are counted as left out. An existing
    corpus is not compared with the documents: the caller knows that it was made of them, in the same way (a training
    run compares its settings first).

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` takes; read once, in order.
        directory: Gets ``corpus.arrow``, ``corpus.json`` (the report; written last) and, if Punkt cut the sentences,
            its parameters in ``punkt.json``.
        view: Decides which documents can be used, by its ``accepts``.
        segmenter: ``"punkt"`` or a callable.
        count_tokens: Counts the model's tokens of sentences.
        hold_out: Takes the documents without duplicates and returns those for the corpus; it keeps the others, for
            example for an evaluation.
        progress: Show a progress bar.

    Returns:
        The memory-mapped data set (columns ``id``, ``sentences``, ``paragraphs``, ``tokens``) and the report.

    Raises:
        EmptyCorpusError: Fewer than two documents can be used: in-batch negatives need two.
    """
    directory = Path(directory)
    if not (directory / "corpus.json").exists():
        reader = read_documents(documents)
        report = CorpusReport()
        unique = _without_duplicates(reader, report)
        kept = unique if hold_out is None else hold_out(unique)
        cut, segmented = segment_stream(kept, segmenter, count_tokens)
        if isinstance(cut, PunktSegmenter):
            write_json(directory / "punkt.json", cut.to_dict())
        shown = with_progress_bar(segmented, "Segmenting", length_hint(reader, 0), shown=progress)
        with atomic_path(directory / "corpus.arrow") as path:
            _write_rows(path, _usable_rows(shown, view, report))
        if report.documents < 2:
            raise EmptyCorpusError(too_few_documents(report.documents, report.left_out))
        write_json(directory / "corpus.json", report.to_dict())
    return Dataset.from_file(str(directory / "corpus.arrow")), CorpusReport(**read_json(directory / "corpus.json"))


def _without_duplicates(documents: Iterable[Document], report: CorpusReport) -> Iterator[Document]:
    """Return the first document of each text, as duplicates would be false negatives of each other.

    A 64-bit hash of each text is held, about 100 bytes a document.
    """
    seen: set[int] = set()
    for document in documents:
        key = text_key(document.text)
        if key in seen:
            report.leave_out(EXACT_COPY)
        else:
            seen.add(key)
            yield document


def _usable_rows(documents: Iterable[SegmentedDocument], view: View, report: CorpusReport) -> Iterator[dict[str, Any]]:
    for document in documents:
        if view.accepts(document):
            report.count(document)
            yield to_row(document)
        else:
            report.leave_out(TOO_SHORT)


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        for batch in in_batches(rows, lambda row: sum(map(len, row["sentences"])), _BATCH_CHARACTERS, _BATCH):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))


def to_row(document: SegmentedDocument) -> dict[str, Any]:
    """Return a segmented document as a row of a corpus."""
    return {name: getattr(document, name) for name in SCHEMA.names}


def from_rows(columns: Mapping[str, Sequence[Any]]) -> Iterator[SegmentedDocument]:
    """Return the segmented documents of several rows, given as columns, as in a slice of a data set."""
    for name, *lists in zip(*(columns[column] for column in SCHEMA.names), strict=True):
        yield SegmentedDocument(name, *map(tuple, lists))


def too_few_documents(documents: int, left_out: Mapping[str, int] | None = None) -> str:
    """Return the message for too few documents to train on."""
    others = ", ".join(counted(count, reason) for reason, count in (left_out or {}).items())
    return (
        "Training needs at least 2 documents, as the others of a batch are the negatives. "
        f"{documents} can be used{f' (left out: {others})' if others else ''}."
    )


def document_lengths(corpus: Dataset) -> Iterator[NDArray[np.int64]]:
    """Return the number of tokens of each document of a corpus, in batches."""
    for batch in corpus.with_format("arrow").select_columns("tokens").iter(batch_size=1000):
        tokens = batch["tokens"].combine_chunks()
        sums = np.concatenate([[0], np.cumsum(tokens.values.to_numpy())])
        ends = sums[tokens.offsets.to_numpy()]
        yield np.diff(ends)
