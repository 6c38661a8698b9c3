"""Load the corpus for a page: documents with columns and vectors, and random halves of a sample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simlte_st.errors import ConfigurationError, DataError, format_count
from simlte_st.evaluation.halves import draw_halves
from simlte_st.evaluation.splits import sample_rows
from simlte_st.models.limits import Truncation, warn_of_language
from simlte_st.models.names import ModelSource
from simlte_st.models.vectors import Floats, Ints, unit_rows
from simlte_st.progress import reading_bar, with_progress_bar
from simlte_st.reading.document import Column, Document, collect_columns, document_titles
from simlte_st.reading.documents import DocumentReader, ReadReport
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder, is_index
from simlte_st.words.sentences import PunktSegmenter, segment_documents

TABLE_COLUMNS = ("id", "x", "y", "topic", "topic_name", "copy_group", "text")
"""Columns of the table; source columns with one of these names get ``_`` appended."""

MIN_DOCUMENTS = 10
"""Minimum number of documents in a corpus."""


@dataclass(frozen=True, slots=True)
class EncodedCorpus:
    """Documents with their columns and vectors.

    ``vectors`` (shape ``[documents, dimension]``) are normalised to length 1. ``reading`` is None if the documents come
    from an index; otherwise ``index`` is None.
    """

    name: str
    documents: Sequence[Document]
    columns: Sequence[Column]
    titles: Sequence[str]
    vectors: Floats
    truncation: Truncation
    reading: ReadReport | None = None
    index: Index | None = None

    @property
    def texts(self) -> list[str]:
        """The text of each document."""
        return [document.text for document in self.documents]

    def searched_vectors(self) -> tuple[Ints, Floats]:
        """Return the rows of documents and the vectors to search: those of passages, where the index has them."""
        ids = [document.id for document in self.documents]
        passages = index.passages(ids) if (index := self.index) and index.parts else {}
        groups = [passages.get(document_id, self.vectors[[row]]) for row, document_id in enumerate(ids)]
        return np.repeat(np.arange(len(groups)), [*map(len, groups)]), np.concatenate(groups)


def open_corpus(
    model: ModelSource | Index, reader: DocumentReader | None, index_model: ModelSource | None = None, *,
    title: str | None = None, batch_size: int = 32, device: str | None = None, progress: bool = True,
) -> tuple[EncodedCorpus, Encoder]:  # fmt: skip
    """Encode a reader's documents with a model, or open an index if there is no reader."""
    if reader is None:
        index = model if isinstance(model, Index) else Index.open(os.fspath(model), index_model, device)  # type: ignore[arg-type]
        return _index_corpus(index, title), index.encoder
    if isinstance(model, Index) or is_index(model):
        raise ConfigurationError(f"{model} is an index with its own documents: omit the source, or give a model.")
    encoder = Encoder(model, device)
    documents = list(with_progress_bar(reader, "Reading", show=progress))
    source = reader.report.source
    name = os.path.basename(os.path.abspath(source)) if os.path.exists(source) else source
    columns = _columns_and_titles(documents, name, title)
    texts = [document.text for document in documents]
    warn_of_language({encoder.name or "The model": encoder.quick or encoder.model}, texts)
    vectors = _encode(encoder, texts, "Encoding", batch_size, progress)
    truncation = encoder.truncation().add(encoder.count(texts))
    return EncodedCorpus(name, documents, *columns, vectors, truncation, reader.report), encoder


def _index_corpus(index: Index, title: str | None) -> EncodedCorpus:
    table = index.table()
    rows = zip(table["id"].to_pylist(), table["text"].to_pylist(), table.select(index.columns).to_pylist(), strict=True)
    documents = [Document(document_id, text, metadata=metadata) for document_id, text, metadata in rows]
    name = os.path.basename(os.path.abspath(index.folder))
    columns = _columns_and_titles(documents, name, title)
    vectors = table["vector"].combine_chunks().flatten().to_numpy().reshape(len(table), -1).astype(np.float32)
    truncation = index.encoder.truncation().add(table["tokens"].to_numpy())
    return EncodedCorpus(name, documents, *columns, vectors, truncation, index=index)


def _columns_and_titles(documents: Sequence[Document], name: str, title: str | None) -> tuple[list[Column], list[str]]:
    """Return the columns, renamed if the table already uses their name, and the titles."""
    if len(documents) < MIN_DOCUMENTS:
        size = format_count(len(documents), "document")
        raise DataError(f"{name} has {size}; topics and a map need at least {MIN_DOCUMENTS}.")
    columns = collect_columns(documents)
    names, table_columns = {*TABLE_COLUMNS, *(column.name for column in columns)}, []
    for column in columns:
        name = column.name
        while name in TABLE_COLUMNS or (name != column.name and name in names):
            name += "_"
        names.add(name)
        table_columns.append(replace(column, name=name))
    return table_columns, document_titles(documents, columns, title)


def _encode(encoder: Encoder, texts: Sequence[str], bar: str, batch_size: int, progress: bool) -> Floats:
    with reading_bar(None if encoder.quick else encoder.model, bar, texts, show=progress):
        return encoder.documents(texts, batch_size)


@dataclass(frozen=True, slots=True)
class HalfVectors:
    """Vectors (``[sample, dimension]``) of two random halves of sampled documents, and the documents' rows."""

    rows: Ints
    first: Floats
    second: Floats


def encode_halves(
    corpus: EncodedCorpus, encoder: Encoder, max_documents: int, *,
    batch_size: int = 32, seed: int = 0, progress: bool = True,
) -> HalfVectors:  # fmt: skip
    """Split up to ``max_documents`` documents into two random halves and return their vectors.

    If most of the documents have several passages in the index, the vector of a half is the mean vector of half of the
    passages, chosen at random. Otherwise, DocSplit splits the sentences and both halves are encoded.
    """
    rows = sample_rows(len(corpus.documents), max_documents, seed)
    if corpus.index is not None and corpus.index.parts:
        passages = corpus.index.passages([corpus.documents[row].id for row in rows])
        by_row = {row: passages[key] for row in rows if (key := corpus.documents[row].id) in passages}
        passages_by_row = {row: vectors for row, vectors in by_row.items() if len(vectors) > 1}
        if 2 * len(passages_by_row) > len(rows):
            return _split_passages(passages_by_row, seed)
    sample = [replace(corpus.documents[row], id=str(row)) for row in rows]
    segmenter = PunktSegmenter.learn(document.text for document in sample)
    pairs = draw_halves(segment_documents(sample, segmenter), encoder.budget, seed)
    first = _encode(encoder, [pair.anchor for pair in pairs], "Encoding first halves", batch_size, progress)
    second = _encode(encoder, [pair.positive for pair in pairs], "Encoding second halves", batch_size, progress)
    return HalfVectors(np.array([int(pair.id) for pair in pairs], dtype=np.int64), first, second)


def _split_passages(passages: Mapping[int, Floats], seed: int) -> HalfVectors:
    """Split each document's passages at random into two halves and return the mean vectors."""
    rng, means = np.random.default_rng(seed), []
    for vectors in passages.values():
        means.append([vectors[half].mean(axis=0) for half in np.array_split(rng.permutation(len(vectors)), 2)])
    first, second = (unit_rows(np.array(side)).astype(np.float32) for side in zip(*means, strict=True))
    return HalfVectors(np.array([*passages], dtype=np.int64), first, second)
