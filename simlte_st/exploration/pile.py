"""A pile on its way to the page: documents with their vectors, from a model and a source or from an index."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.documents import DocumentReader, read_documents
from simlte_st.data.report import ReadReport
from simlte_st.data.segmenters import make_segmenter
from simlte_st.data.sentences import segment_documents
from simlte_st.data.views import DocSplit, draw_views
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.split_half import EVALUATION_EPOCH
from simlte_st.evaluation.splits import sample_rows
from simlte_st.models.truncation import Truncation
from simlte_st.progress import progress_bar, with_progress_bar
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder, Model
from simlte_st.search.settings import is_index

FEWEST = 10
"""Documents that a page needs at least."""

_BATCH = 256


@dataclass(frozen=True, slots=True)
class Pile:
    """Documents with their vectors.

    Attributes:
        name: What the page calls it.
        documents: The documents, with the values of their other columns.
        vectors: Of length 1, shape ``[documents, dimension]``.
        tokens: Tokens of each document as the model counts them, read or not, shape ``[documents]``.
        truncation: How much of the documents the model reads.
        reading: What came of reading the source; None for an index.
    """

    name: str
    documents: Sequence[Document]
    vectors: NDArray[np.float32]
    tokens: NDArray[np.int64]
    truncation: Truncation
    reading: ReadReport | None = None

    def __len__(self) -> int:
        """Count the documents."""
        return len(self.documents)

    @property
    def texts(self) -> list[str]:
        """The texts, in the documents' order."""
        return [document.text for document in self.documents]


def read_pile(
    encoder: Encoder,
    source: Any,
    *,
    columns: Mapping[str, str] = MappingProxyType({}),
    batch_size: int = 32,
    progress: bool = False,
) -> Pile:
    """Read and encode documents."""
    reader = source if isinstance(source, DocumentReader) else read_documents(source, metadata=True)
    documents = list(with_progress_bar(reader, "Reading", shown=progress))
    name = reader.report.source
    name = os.path.basename(os.path.abspath(name)) if os.path.exists(name) else name
    _check(documents, name, columns)
    texts = [document.text for document in documents]
    vectors: list[NDArray[np.float32]] = []
    with progress_bar("Encoding", len(texts), shown=progress) as bar:
        for start in range(0, len(texts), _BATCH):
            vectors.append(encoder.documents(texts[start : start + _BATCH], batch_size))
            bar.update(len(vectors[-1]))
    tokens = np.array(encoder.count(texts), dtype=np.int64)
    truncation = encoder.truncation().add(tokens)
    return Pile(name, documents, np.concatenate(vectors), tokens, truncation, reader.report)


def index_pile(index: Index, *, columns: Mapping[str, str] = MappingProxyType({})) -> Pile:
    """Take the documents of an index, and the vectors that it has of them."""
    rows = index.table()
    ids, texts, values = rows["id"].to_pylist(), rows["text"].to_pylist(), rows.select(index.columns).to_pylist()
    triples = zip(ids, texts, values, strict=True)
    documents = [Document(one, text, metadata=own) for one, text, own in triples]
    vectors = vectors_of(rows)
    tokens = rows["tokens"].to_numpy().astype(np.int64)
    name = os.path.basename(os.path.abspath(index.folder))
    _check(documents, name, columns)
    return Pile(name, documents, vectors, tokens, index.encoder.truncation().add(tokens))


def vectors_of(rows: pa.Table) -> NDArray[np.float32]:
    """Return the vectors in a table of an index, shape ``[documents, dimension]``."""
    flat = rows["vector"].combine_chunks().flatten().to_numpy()
    vectors: NDArray[np.float32] = flat.reshape(len(rows), -1).astype(np.float32)
    return vectors


def _check(documents: Sequence[Document], name: str, columns: Mapping[str, str]) -> None:
    if len(documents) < FEWEST:
        raise DataError(f"{name} has {len(documents)} documents; topics and a map need at least {FEWEST}.")
    known = dict.fromkeys(column for document in documents for column in document.metadata or {})
    for parameter, column in columns.items():
        if column not in known:
            there = ", ".join(known) or "none"
            raise DataError(f"{parameter}={column!r}: {name} has no such column beside the text. There are: {there}.")


@dataclass(frozen=True, slots=True)
class Halves:
    """Vectors of the two halves of some documents of a pile.

    Attributes:
        rows: Which documents of the pile they are, shape ``[drawn]``.
        first: Of their first halves, shape ``[drawn, dimension]``.
        second: Of their second halves, in the same order.
    """

    rows: NDArray[np.int64]
    first: NDArray[np.float32]
    second: NDArray[np.float32]


def encode_halves(
    pile: Pile, encoder: Encoder, drawn: int, *, seed: int = 0, batch_size: int = 32, progress: bool = False
) -> Halves:
    """Deal the sentences of some documents to two halves, as DocSplit does, and encode both."""
    sample = [replace(pile.documents[row], id=str(row)) for row in sample_rows(len(pile), drawn, seed)]
    segmenter = make_segmenter("punkt", lambda: (document.text for document in sample))
    view = DocSplit()
    pairs = [
        pair
        for document in segment_documents(sample, segmenter)
        if (pair := draw_views(document, view, seed=seed, epoch=EVALUATION_EPOCH, budget=encoder.budget))
    ]
    sides: tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]] = ([], [])
    with progress_bar("Encoding halves", 2 * len(pairs), unit="half", shown=progress) as bar:
        for side, texts in zip(sides, ([p.anchor for p in pairs], [p.positive for p in pairs]), strict=True):
            for start in range(0, len(texts), _BATCH):
                side.append(encoder.documents(texts[start : start + _BATCH], batch_size))
                bar.update(len(side[-1]))
    empty = np.zeros((0, encoder.dimension), dtype=np.float32)
    first, second = (np.concatenate([empty, *side]) for side in sides)
    return Halves(np.array([int(pair.id) for pair in pairs], dtype=np.int64), first, second)


def open_pile(
    model: Model | Index,
    source: Any = None,
    *,
    device: str | None = None,
    index_model: Model | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
    batch_size: int = 32,
    progress: bool = False,
) -> tuple[Pile, Encoder]:
    """Take what the user named: a model with a source, or an index."""
    if source is not None:
        if isinstance(model, Index) or is_index(model):
            raise ConfigurationError(f"{model} is an index, which has its documents: name no others, or name a model.")
        encoder = Encoder(model, device)
        return read_pile(encoder, source, columns=columns, batch_size=batch_size, progress=progress), encoder
    index = model if isinstance(model, Index) else Index.open(os.fspath(model), index_model, device)  # type: ignore[arg-type]
    return index_pile(index, columns=columns), index.encoder
