"""From texts or documents to queries, and from queries to hits."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.document import Document
from simlte_st.data.documents import list_documents
from simlte_st.data.segmenters import Segmenter
from simlte_st.errors import DataError
from simlte_st.models.vectors import unit_rows
from simlte_st.search.hits import Explainer, Hit, Hits, shortened
from simlte_st.search.query import TOP_K, Criteria, Match, Query, find_matches
from simlte_st.search.rerank import READ_HITS, Reranker
from simlte_st.search.store import KeptVectors, Store, is_one_of, text_hash
from simlte_st.search.words import WordCounts

if TYPE_CHECKING:
    from simlte_st.models.token_vectors import TokenVectors
    from simlte_st.search.encoder import Encoder

_BEGINNING = 300  # characters


class Searcher:
    """Searches an index, with what it knew of its documents when it was first searched."""

    def __init__(
        self, store: Store, reader: Callable[[], Encoder | TokenVectors], parts: bool, languages: Sequence[str]
    ) -> None:
        self.store, self.reader, self.parts, self.languages, self._latest = store, reader, parts, languages, store

    def now(self) -> Searcher:
        """Return a searcher of the index as it is now, whatever others write while it searches."""
        _ = self._words  # which are read once
        now = copy.copy(self)
        now.store = self.store.snapshot()
        return now

    @cached_property
    def segmenter(self) -> Segmenter:
        """The segmenter of the index."""
        return self.store.segmenter()

    @cached_property
    def _words(self) -> WordCounts:
        return WordCounts.read(self.store)

    def words_of_query(self, text: str) -> tuple[dict[str, str], dict[str, float]]:
        """Return the words that BM25 looks for, and the weights of their terms, both by term."""
        words = self._words.of_query(text, self.languages)
        return words, self._words.weights(words)

    @cached_property
    def _sentences(self) -> KeptVectors:
        return KeptVectors(self.store.folder, lambda sentences: self.reader().documents(sentences))

    def text_query(self, text: str, with_vector: bool) -> Query:
        """Return a text as a query."""
        return Query(*self.words_of_query(text), self.reader().query(text) if with_vector else None, text=text)

    def query_documents(self, given: str | os.PathLike[str]) -> list[Document]:
        """Return the documents that an id, a path or a text stands for; only documents of the index have an id."""
        text = os.fspath(given)
        if rows := self.store.rows(f"part = 0 AND {is_one_of('id', [text])}", ["id", "text"]).to_pylist():
            return [Document(row["id"], row["text"]) for row in rows]
        if os.path.exists(text):
            return [replace(document, id="") for document in list_documents(text)]
        if text.isascii() and len(text.split()) <= 1:
            raise DataError(
                f"{text!r} is neither an id of the index nor a file, and a text has several words: search for one word "
                "with simlte search."
            )
        return [Document("", text)]

    def known_documents(self, documents: Sequence[Document]) -> list[Document]:
        """Return documents as those of the index with the same text, whose vectors are there; others without an id."""
        hashes = [text_hash(document.text) for document in documents]
        rows = self.store.rows_of("hash", hashes, ["id", "hash"], "part = 0").to_pylist()
        names = {row["hash"]: row["id"] for row in rows}
        return [Document(names.get(digest, ""), one.text) for digest, one in zip(hashes, documents, strict=True)]

    def document_queries(self, groups: Sequence[Sequence[Document]], with_vectors: bool) -> list[Query]:
        """Return a query for each group of documents, whose hits exclude the group and documents of the same text."""
        hashes = [[text_hash(document.text) for document in group] for group in groups]
        same: dict[str, list[str]] = {}
        for row in self.store.rows_of("hash", sorted({*chain(*hashes)}), ["id", "hash"], "part = 0").to_pylist():
            same.setdefault(row["hash"], []).append(row["id"])
        vectors = iter(self._document_vectors([*chain(*groups)]) if with_vectors else ())
        queries = []
        for group, own in zip(groups, hashes, strict=True):
            excluded = {name for digest in own for name in same.get(digest, ())} | {one.id for one in group if one.id}
            vector = _unit_mean(np.stack([*islice(vectors, len(group))])) if with_vectors else None
            texts = [document.text for document in group]
            queries.append(Query(*self.words_of_query("\n\n".join(texts)), vector, sorted(excluded), documents=texts))
        return queries

    def _document_vectors(self, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
        """Return for each document the mean of the vectors that it would be found by, scaled to length 1."""
        known: dict[str, list[list[float]]] = {one.id: [] for one in documents if one.id}
        for row in self.store.rows_of("id", list(known), ["id", "vector"], "searched").to_pylist():
            known[row["id"]].append(row["vector"])
        texts: list[list[str]] = [[] for _ in documents]
        encoded: Iterator[NDArray[np.float32]] = iter(())
        if not all(one.id for one in documents):
            encoder, segmenter = self.reader(), self.segmenter if self.parts else None
            for document, own in zip(documents, texts, strict=True):
                if not document.id:
                    own.extend(encoder.passages(document, segmenter) or [document.text])
            encoded = iter(encoder.documents([*chain(*texts)]))
        return [
            _unit_mean(np.array(known[one.id] if one.id else [*islice(encoded, len(own))], dtype=np.float32))
            for one, own in zip(documents, texts, strict=True)
        ]

    def criteria(self, criteria: Criteria) -> Criteria:
        """Return criteria with the filter as the store takes it, and with the default number of hits."""
        if criteria.top_k is None and criteria.threshold is None:
            criteria = replace(criteria, top_k=TOP_K)
        return criteria if criteria.where is None else replace(criteria, where=self.store.check_filter(criteria.where))

    def search(
        self, queries: Sequence[Query], criteria: Criteria, explain: bool = False, reranker: Reranker | None = None
    ) -> list[Hits]:
        """Return the hits of each query, by criteria of :meth:`criteria`."""
        if reranker is None:
            matches = find_matches(self.store, queries, criteria)
        else:
            matches = self._reranked(queries, criteria, reranker)
        flat = [match for each in matches for match in each]
        documents = {one.id: one for one in self.store.documents(list({match.id: None for match in flat}))}
        parted = sorted({match.id for match in flat if match.part})
        rows = self.store.rows_of("id", parted, ["id", "part", "passage"], "part > 0").to_pylist() if parted else []
        passages = {(row["id"], row["part"]): row["passage"] for row in rows}
        metadata = self.store.metadata()
        found = []
        for query, each in zip(queries, matches, strict=True):
            texts = {match.id: documents[match.id].text for match in each}
            hits = [
                Hit(
                    match.id,
                    match.score,
                    match.cosine,
                    match.bm25,
                    shortened(texts[match.id], _BEGINNING),
                    match.passage or passages.get((match.id, match.part)),
                    documents[match.id].metadata or {},
                    reranked=match.reranked,
                )
                for match in each
            ]
            # Of an earlier version the files are gone some time after it has been replaced.
            explainer = Explainer(self._latest, self._sentences, lambda: self.segmenter, query, texts)
            found.append(Hits(map(explainer, hits) if explain else hits, metadata, criteria.threshold, explainer))
        return found

    def _reranked(self, queries: Sequence[Query], criteria: Criteria, reranker: Reranker) -> list[list[Match]]:
        depth, found = None if criteria.top_k is None else max(criteria.top_k, READ_HITS), []
        matches = find_matches(self.store, queries, replace(criteria, top_k=depth))
        for query, each in zip(queries, matches, strict=True):
            rows = self.store.table(["text"], [match.id for match in each[:READ_HITS]])
            texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
            found.append(reranker(query, each, texts, self._words.rareness)[: criteria.top_k])
        return found


def _unit_mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    mean: NDArray[np.float32] = unit_rows(vectors.mean(axis=0)[None]).astype(np.float32)[0]
    return mean
