"""A corpus on disk: documents segmented once, in an Arrow file that is memory-mapped, however large it is."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from tqdm.auto import tqdm

from simlte_st.data.document import Document, Outline
from simlte_st.data.pairs import PairDrawer, to_row
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter, peek
from simlte_st.data.sentences import TokenCounter, estimate_tokens, segment_document
from simlte_st.data.views import View
from simlte_st.errors import EmptyCorpusError
from simlte_st.files import atomic_path, read_json, write_json

logger = logging.getLogger(__name__)

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "sentences": pa.list_(pa.string()),
        "paragraphs": pa.list_(pa.int32()),
        "tokens": pa.list_(pa.int32()),
    }
)
_TOO_SHORT = "too short for two views"
_BATCH = 256  # rows in an Arrow record batch ...
_BATCH_CHARACTERS = 32_000_000  # ... or fewer, of long documents: one batch is held in memory


@dataclass
class CorpusReport:
    """What became of the documents on their way into the corpus.

    Attributes:
        documents: Documents that can be trained on.
        sentences: Their sentences.
        tokens: Their tokens, special tokens not counted.
        longest: Tokens of the longest one.
        left_out: How many were left out, by reason.
    """

    documents: int = 0
    sentences: int = 0
    tokens: int = 0
    longest: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Give the report as JSON values."""
        return asdict(self)

    def add(self, document: Outline, view: View) -> bool:
        """Count a document; tell whether the view can use it."""
        if not view.accepts(document):
            self.left_out[_TOO_SHORT] = self.left_out.get(_TOO_SHORT, 0) + 1
            return False
        size = sum(document.tokens)
        self.documents += 1
        self.sentences += len(document.tokens)
        self.tokens += size
        self.longest = max(self.longest, size)
        return True


def check_size(report: CorpusReport) -> None:
    """Raise :class:`EmptyCorpusError` where fewer than two documents can be used."""
    if report.documents < 2:
        reasons = "".join(f"; {count} left out: {reason}" for reason, count in report.left_out.items())
        raise EmptyCorpusError(
            f"{report.documents} usable documents: training with in-batch negatives needs at least 2{reasons}."
        )


def write_corpus(
    documents: Iterable[Document],
    directory: str | os.PathLike[str],
    *,
    view: View,
    segmenter: str | Segmenter = "punkt",
    count_tokens: TokenCounter = estimate_tokens,
    progress: bool = False,
    total: int | None = None,
) -> tuple[Dataset, CorpusReport]:
    """Segment documents and write them to ``directory``; read the corpus there if it is complete already.

    A corpus that is there is taken as it is: that it was made of the same documents, in the same way, is for the caller
    to know (a training run compares its settings first).

    Args:
        documents: Read once, in order.
        directory: Gets ``corpus.arrow``, ``corpus.json`` (the report; written last) and, where Punkt cut the
            sentences, its parameters in ``punkt.json``.
        view: Decides which documents can be used (:meth:`~simlte_st.data.views.View.accepts`).
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        count_tokens: Counts the model's tokens of sentences.
        progress: Show a progress bar.
        total: Number of documents, where it is known, for the progress bar.

    Returns:
        The memory-mapped data set (columns ``id``, ``sentences``, ``paragraphs``, ``tokens``) and the report.

    Raises:
        EmptyCorpusError: Fewer than two documents can be used: in-batch negatives need two.
    """
    directory = Path(directory)
    if not (directory / "corpus.json").exists():
        first, stream = peek(documents, lambda document: len(document.text))
        cut = make_segmenter(segmenter, lambda: (document.text for document in first))
        if isinstance(cut, PunktSegmenter):
            write_json(directory / "punkt.json", cut.to_dict())
        bar = tqdm(stream, desc="Segmenting", unit="doc", total=total, disable=not progress)
        report = CorpusReport()
        with atomic_path(directory / "corpus.arrow") as path:
            _write_rows(path, _usable_rows(bar, cut, count_tokens, view, report))
        check_size(report)
        write_json(directory / "corpus.json", report.to_dict())
    return Dataset.from_file(str(directory / "corpus.arrow")), CorpusReport(**read_json(directory / "corpus.json"))


def _usable_rows(
    documents: Iterable[Document], segmenter: Segmenter, count: TokenCounter, view: View, report: CorpusReport
) -> Iterator[dict[str, Any]]:
    for document in (segment_document(document, segmenter, count) for document in documents):
        if report.add(document, view):
            yield to_row(document)


def _write_rows(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    characters = 0
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
        for row in rows:
            batch.append(row)
            characters += sum(map(len, row["sentences"]))
            if len(batch) == _BATCH or characters >= _BATCH_CHARACTERS:
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))
                batch, characters = [], 0
        if batch:
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=SCHEMA))


@dataclass(frozen=True, slots=True)
class Coverage:
    """What one pass over a corpus can see of it.

    Attributes:
        documents: Documents looked at.
        cut: Documents of which a part stays unseen in a pass.
        tokens: Tokens of all documents looked at.
        seen: Tokens that stand in a view.
    """

    documents: int
    cut: int
    tokens: int
    seen: int

    @classmethod
    def of(cls, counts: Sequence[tuple[int, int]]) -> Coverage:
        """Sum up documents, each given as (its tokens, how many of them are seen)."""
        return cls(
            documents=len(counts),
            cut=sum(seen < tokens for tokens, seen in counts),
            tokens=sum(tokens for tokens, _ in counts),
            seen=sum(seen for _, seen in counts),
        )

    @property
    def share(self) -> float:
        """Share of the tokens that a pass sees, 0 to 1."""
        return self.seen / self.tokens if self.tokens else 1.0

    def summary(self) -> str:
        """Say it in a sentence."""
        return (
            f"one pass sees {self.share:.1%} of the tokens; "
            f"a part of {self.cut:,} of {self.documents:,} documents stays unseen in it"
        )


def measure_coverage(corpus: Dataset, drawer: PairDrawer, most: int = 2_000) -> Coverage:
    """Draw the first epoch's views of up to ``most`` documents, spread evenly over the corpus, and count tokens."""
    step = max(1, -(-len(corpus) // most))
    indices: Sequence[int] = range(0, len(corpus), step)
    return Coverage.of(
        [
            (pair.tokens, pair.seen)
            for start in range(0, len(indices), _BATCH)
            for pair in _draw(corpus, drawer, indices[start : start + _BATCH])
        ]
    )


def _draw(corpus: Dataset, drawer: PairDrawer, indices: Sequence[int]) -> list[Any]:
    rows = corpus.select(indices).to_list()
    # A drawer of its own: looking is not training, and must not count as a pass.
    return PairDrawer(drawer.view, drawer.seed, drawer.budget).draw(rows)
