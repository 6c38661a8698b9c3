"""Documents as queries: documents of the index, files, or texts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from simlte_st.config import check_text
from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.errors import DataError
from simlte_st.models.vectors import unit_rows
from simlte_st.search.query import Query
from simlte_st.search.searcher import Searcher
from simlte_st.search.store import Store, is_one_of, text_hash


def query_documents(store: Store, given: str | os.PathLike[str]) -> list[Document]:
    """Return what an id, a path or a text stands for; only documents of the index have an id."""
    given = os.fspath(given) if isinstance(given, os.PathLike) else given
    check_text("documents", given)
    rows = store.rows(f"part = 0 AND {is_one_of('id', [given])}", ["id", "text"]).to_pylist()
    if rows:
        return [Document(row["id"], row["text"]) for row in rows]
    if os.path.exists(given):
        return [replace(document, id="") for document in list_documents(given)]
    if given.isascii() and len(given.split()) <= 1:
        raise DataError(
            f"{given!r} is neither an id of the index nor a file, and a text has several words: search for one word "
            "with simlte search."
        )
    return [Document("", given)]


def known_documents(store: Store, documents: Sequence[Document]) -> list[Document]:
    """Return documents as those of the index that have the same text, whose vectors are there; others without an id."""
    hashes = [text_hash(document.text) for document in documents]
    rows = store.rows_of("hash", hashes, ["id", "hash"], "part = 0").to_pylist()
    names = {row["hash"]: row["id"] for row in rows}
    return [Document(names.get(digest, ""), one.text) for digest, one in zip(hashes, documents, strict=True)]


def document_queries(searcher: Searcher, groups: Sequence[Sequence[Document]], with_vectors: bool) -> list[Query]:
    """Return a query for each group of documents; they, and documents of the same text, are excluded from its hits."""
    hashes = [[text_hash(document.text) for document in group] for group in groups]
    same: dict[str, list[str]] = {}
    for row in searcher.store.rows_of("hash", sorted({*chain(*hashes)}), ["id", "hash"], "part = 0").to_pylist():
        same.setdefault(row["hash"], []).append(row["id"])
    vectors = iter(_document_vectors(searcher, [*chain(*groups)]) if with_vectors else ())
    queries = []
    for group, own in zip(groups, hashes, strict=True):
        excluded = {name for digest in own for name in same.get(digest, ())} | {one.id for one in group if one.id}
        vector = _unit_mean(np.stack([*islice(vectors, len(group))])) if with_vectors else None
        texts = [document.text for document in group]
        words = searcher.words_of_query("\n\n".join(texts))
        queries.append(Query(*words, vector, sorted(excluded), documents=texts))
    return queries


def _document_vectors(searcher: Searcher, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
    """Return for each document the mean of the vectors that it would be found by, scaled to length 1."""
    known: dict[str, list[list[float]]] = {one.id: [] for one in documents if one.id}
    if known:
        for row in searcher.store.rows_of("id", list(known), ["id", "vector"], "searched").to_pylist():
            known[row["id"]].append(row["vector"])
    texts: list[list[str]] = [[] for _ in documents]
    encoded: Iterator[NDArray[np.float32]] = iter(())
    if not all(one.id for one in documents):
        encoder, segmenter = searcher.reader(), searcher.segmenter if searcher.parts else None
        for document, own in zip(documents, texts, strict=True):
            if not document.id:
                own.extend(encoder.passages(document, segmenter) or [document.text])
        encoded = iter(encoder.documents([*chain(*texts)]))
    return [
        _unit_mean(np.array(known[one.id] if one.id else [*islice(encoded, len(own))], dtype=np.float32))
        for one, own in zip(documents, texts, strict=True)
    ]


def _unit_mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = unit_rows(vectors.mean(axis=0)[None]).astype(np.float32)[0]
    return mean
