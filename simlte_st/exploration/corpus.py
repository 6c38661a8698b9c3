"""Load a corpus for the page: documents with their columns and vectors, and random halves of some."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError, DataError, format_count
from simlte_st.evaluation.halves import EVALUATION_EPOCH
from simlte_st.evaluation.splits import sample_rows
from simlte_st.models.language import warn_of_language
from simlte_st.models.truncation import Truncation
from simlte_st.models.vectors import unit_rows
from simlte_st.progress import reading_bar, with_progress_bar
from simlte_st.reading.columns import Column, collect_columns, document_titles
from simlte_st.reading.document import Document
from simlte_st.reading.documents import DocumentReader
from simlte_st.reading.reader import ReadReport
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder, Model
from simlte_st.search.settings import is_index
from simlte_st.views.views import DocSplit, draw_views
from simlte_st.words.sentences import make_segmenter, segment_documents

TABLE_COLUMNS = ("id", "x", "y", "topic", "topic_name", "copy_group", "text")
"""Columns of the table. A source column with one of these names gets a ``_`` appended."""

FEWEST = 10
"""Minimum number of documents."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents with their columns and vectors.

    ``vectors`` have length 1 and the shape ``[documents, dimension]``; ``tokens`` counts the tokens of each document
    without truncation. ``reading`` is None for an index, ``index`` for a source.
    """

    name: str
    documents: Sequence[Document]
    columns: Sequence[Column]
    titles: Sequence[str]
    vectors: NDArray[np.float32]
    tokens: NDArray[np.int64]
    truncation: Truncation
    reading: ReadReport | None = None
    index: Index | None = None

    @property
    def texts(self) -> list[str]:
        """The text of each document."""
        return [document.text for document in self.documents]


def open_corpus(
    model: Model | Index,
    reader: DocumentReader | None,
    index_model: Model | None = None,
    *,
    title: str | None = None,
    batch_size: int = 32,
    device: str | None = None,
    progress: bool = True,
) -> tuple[Corpus, Encoder]:
    """Open the documents of a reader with a model, or an index if there is no reader."""
    if reader is None:
        index = model if isinstance(model, Index) else Index.open(os.fspath(model), index_model, device)  # type: ignore[arg-type]
        return _index_corpus(index, title), index.encoder
    if isinstance(model, Index) or is_index(model):
        raise ConfigurationError(
            f"{model} is an index and has its own documents: leave out the source, or give a model."
        )
    encoder = Encoder(model, device)
    documents = list(with_progress_bar(reader, "Reading", show=progress))
    place = reader.report.source
    name = os.path.basename(os.path.abspath(place)) if os.path.exists(place) else place
    columns = _columns(documents, name, title)
    texts = [document.text for document in documents]
    warn_of_language({encoder.name or "The model": encoder.quick or encoder.model}, texts)
    vectors = _encode(encoder, texts, "Encoding", batch_size, progress)
    tokens = np.array(encoder.count(texts), dtype=np.int64)
    corpus = Corpus(name, documents, *columns, vectors, tokens, encoder.truncation().add(tokens), reader.report)
    return corpus, encoder


def _index_corpus(index: Index, title: str | None) -> Corpus:
    rows = index.table()
    values = rows.select(index.columns).to_pylist()
    triples = zip(rows["id"].to_pylist(), rows["text"].to_pylist(), values, strict=True)
    documents = [Document(name, text, metadata=own) for name, text, own in triples]
    name = os.path.basename(os.path.abspath(index.folder))
    columns = _columns(documents, name, title)
    tokens = rows["tokens"].to_numpy().astype(np.int64)
    flat = rows["vector"].combine_chunks().flatten().to_numpy()
    vectors = flat.reshape(len(rows), -1).astype(np.float32)
    truncation = index.encoder.truncation().add(tokens)
    return Corpus(name, documents, *columns, vectors, tokens, truncation, index=index)


def _columns(documents: Sequence[Document], name: str, title: str | None) -> tuple[list[Column], list[str]]:
    """Return the columns, renamed where the table needs the name, and the titles."""
    if len(documents) < FEWEST:
        raise DataError(
            f"{name} has {format_count(len(documents), 'document')}; topics and a map need at least {FEWEST}."
        )
    columns = collect_columns(documents)
    taken, free = {*TABLE_COLUMNS, *(each.name for each in columns)}, []
    for each in columns:
        name = each.name
        while name in TABLE_COLUMNS or (name != each.name and name in taken):
            name += "_"
        taken.add(name)
        free.append(replace(each, name=name))
    return free, document_titles(documents, columns, title)


def _encode(encoder: Encoder, texts: Sequence[str], bar: str, batch_size: int, progress: bool) -> NDArray[np.float32]:
    with reading_bar(None if encoder.quick else encoder.model, bar, texts, show=progress):
        return encoder.documents(texts, batch_size)


@dataclass(frozen=True, slots=True)
class DocumentHalves:
    """Vectors of two random halves of sampled documents: rows ``[drawn]``, vectors ``[drawn, dimension]``."""

    rows: NDArray[np.int64]
    first: NDArray[np.float32]
    second: NDArray[np.float32]


def encode_halves(
    corpus: Corpus,
    encoder: Encoder,
    drawn: int,
    *,
    language: str | None = None,
    batch_size: int = 32,
    seed: int = 0,
    progress: bool = True,
) -> DocumentHalves:
    """Split up to ``drawn`` documents into two random halves and return their vectors.

    If most documents have several passages in the index, the halves are means of passage vectors. Otherwise DocSplit
    splits the sentences, and both halves are encoded.
    """
    rows = sample_rows(len(corpus.documents), drawn, seed)
    if corpus.index is not None and corpus.index.parts:
        passages = corpus.index.passages([corpus.documents[row].id for row in rows])
        own = {row: passages[name] for row in rows if (name := corpus.documents[row].id) in passages}
        several = {row: vectors for row, vectors in own.items() if len(vectors) > 1}
        if 2 * len(several) > len(rows):
            return _halves_of_passages(several, seed)
    sample = [replace(corpus.documents[row], id=str(row)) for row in rows]
    segmenter = make_segmenter("punkt", lambda: (document.text for document in sample), language)
    pairs = [
        pair
        for document in segment_documents(sample, segmenter)
        if (pair := draw_views(document, DocSplit(), seed=seed, epoch=EVALUATION_EPOCH, budget=encoder.budget))
    ]
    first = _encode(encoder, [pair.anchor for pair in pairs], "Encoding first halves", batch_size, progress)
    second = _encode(encoder, [pair.positive for pair in pairs], "Encoding second halves", batch_size, progress)
    return DocumentHalves(np.array([int(pair.id) for pair in pairs], dtype=np.int64), first, second)


def _halves_of_passages(passages: Mapping[int, NDArray[np.float32]], seed: int) -> DocumentHalves:
    """Return the mean vectors of two random halves of each document's passages, given by row."""
    random, halves = np.random.default_rng(seed), []
    for vectors in passages.values():
        parts = np.array_split(random.permutation(len(vectors)), 2)
        halves.append([vectors[part].mean(axis=0) for part in parts])
    first, second = (unit_rows(np.array(each)).astype(np.float32) for each in zip(*halves, strict=True))
    return DocumentHalves(np.array([*passages], dtype=np.int64), first, second)
