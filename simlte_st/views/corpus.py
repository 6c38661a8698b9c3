"""Write segmented documents to a memory-mapped Arrow file of any size, and read them."""

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

from simlte_st.arguments import check_arguments
from simlte_st.errors import EmptyCorpusError
from simlte_st.files import atomic_path, read_json, write_json
from simlte_st.progress import with_progress_bar
from simlte_st.reading.document import Document, DocumentSource, SegmentedDocument, text_key
from simlte_st.reading.documents import format_reason, read_documents
from simlte_st.views.views import View
from simlte_st.words.sentences import PunktSegmenter, Segmenter, TokenCounter, estimate_tokens, segment_stream
from simlte_st.words.tokens import in_batches

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "sentences": pa.list_(pa.string()),
        "paragraphs": pa.list_(pa.int32()),
        "tokens": pa.list_(pa.int32()),
    }
)
"""Columns of a corpus: the attributes of a :class:`~simlte_st.reading.document.SegmentedDocument`."""

TOO_SHORT = "too short for two views"
EXACT_DUPLICATE = "exact duplicate of another document"
_BATCH = 256  # maximum rows in an Arrow record batch
_BATCH_CHARACTERS = 32_000_000  # maximum characters in a record batch, which is built in memory


@dataclass
class CorpusReport:
    """Counts of documents, sentences and tokens in a corpus, and of the documents left out, by reason."""

    documents: int = 0
    sentences: int = 0
    tokens: int = 0  # without special tokens
    longest: int = 0  # tokens in the longest document
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
        """Count a document that was left out."""
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
    """Segment documents and write them to ``directory``, or open the complete corpus that is already there.

    Exact duplicates of an earlier document are dropped. An existing corpus is not compared with the documents: the
    caller must ensure that it was written from them with the same settings, as a training run does.

    Args:
        documents: Anything :func:`~simlte_st.data.read_documents` accepts; read once, in order.
        directory: Folder for ``corpus.arrow``, ``corpus.json`` (the report, written last) and, for Punkt, its
            parameters in ``punkt.json``.
        view: The view whose ``accepts`` decides which documents are used.
        segmenter: ``"punkt"`` or a callable.
        count_tokens: Counts the model's tokens in sentences.
        hold_out: Function that receives the documents without duplicates and returns those for the corpus; it may hold
            out the others, for example for an evaluation.
        progress: Show a progress bar.

    Returns:
        The memory-mapped data set with columns ``id``, ``sentences``, ``paragraphs`` and ``tokens``, and its report.

    Raises:
        EmptyCorpusError: Fewer than two documents are usable; in-batch negatives need two.
    """
    directory = Path(directory)
    if not (directory / "corpus.json").exists():
        reader = read_documents(documents)
        report = CorpusReport()
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
    """Yield documents without exact duplicates, which would be false negatives of each other.

    Memory: about 100 bytes per document, for a 64-bit hash of its text.
    """
    keys: set[int] = set()
    for document in documents:
        key = text_key(document.text)
        if key in keys:
            report.leave_out(EXACT_DUPLICATE)
        else:
            keys.add(key)
            yield document


def _select(documents: Iterable[SegmentedDocument], view: View, report: CorpusReport) -> Iterator[SegmentedDocument]:
    for document in documents:
        if view.accepts(document):
            report.count(document)
            yield document
        else:
            report.leave_out(TOO_SHORT)


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
    """Return the message for too few documents to train on."""
    reasons = ", ".join(format_reason(reason, count) for reason, count in (left_out or {}).items())
    return (
        "Training needs at least 2 documents, because the other documents of a batch are the negatives. "
        f"{documents} can be used{f' (left out: {reasons})' if reasons else ''}."
    )


def document_lengths(corpus: Dataset) -> Iterator[NDArray[np.int64]]:
    """Yield the token counts of a corpus's documents, in batches."""
    for batch in corpus.with_format("arrow").select_columns("tokens").iter(batch_size=1000):
        tokens = batch["tokens"].combine_chunks()
        sums = np.concatenate([[0], np.cumsum(tokens.values.to_numpy())])
        ends = sums[tokens.offsets.to_numpy()]
        yield np.diff(ends)
