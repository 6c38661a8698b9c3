"""Turn texts or documents into queries, and queries into hits."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import DataError
from simlte_st.files import valid_unicode
from simlte_st.reading.document import Document, to_name
from simlte_st.reading.documents import list_documents
from simlte_st.search.encoder import Encoder
from simlte_st.search.hits import Hit, RememberedVectors, explain_hits, shortened
from simlte_st.search.query import TOP_K, Criteria, Match, Mode, Query, find_matches
from simlte_st.search.rerank import READ_HITS, Reranker, unit_mean
from simlte_st.search.store import Store, sql_in, text_hash
from simlte_st.search.words import WordCounts, terms_by_word

_BEGINNING = 300  # characters


class Searcher:
    """Searches an index; the counts of its words are read once."""

    def __init__(self, store: Store, reader: Callable[[], Encoder], parts: bool, languages: Sequence[str]) -> None:
        self.store, self.reader, self.parts = store, reader, parts
        self._sentences = RememberedVectors(lambda sentences: reader().documents(sentences))
        # Shared with the copies of now().
        self.segmenter = cache(lambda: store.segmenter(languages[0] if len(languages) == 1 else None))
        # Searching for a query and naming its unknown words need the same terms.
        self._words_of = lru_cache(maxsize=1)(lambda text: self._words.of_query(text, languages))

    def now(self) -> Searcher:
        """Return a searcher of a snapshot of the index, which no writer changes."""
        _ = self._words  # read once, and shared with the copies
        now = copy.copy(self)
        now.store = self.store.snapshot()
        return now

    @cached_property
    def _words(self) -> WordCounts:
        return WordCounts.read(self.store)

    def words_of_query(self, text: str) -> tuple[dict[str, str], dict[str, float]]:
        """Return the words for BM25 and the weights of their terms, both by term."""
        words = self._words_of(text)
        return words, self._words.weights(words)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that no document contains."""
        words, counts = terms_by_word(self._words_of(valid_unicode(text))), self._words.counts
        rare = {word: dict.fromkeys(terms, 1.0) for word, terms in words.items() if not counts.keys() & {*terms}}
        return [word for word, terms in rare.items() if not self.store.matching(terms, "part = 0", 1)]

    def text_query(self, text: str, with_vector: bool) -> Query:
        """Return a text as a query."""
        text = valid_unicode(text)
        return Query(*self.words_of_query(text), self.reader().query(text) if with_vector else None, text=text)

    def query_documents(self, given: str | os.PathLike[str]) -> list[Document]:
        """Return the documents of an id, a path or a text; only documents of the index have an id."""
        text = os.fspath(given) if isinstance(given, os.PathLike) else to_name(given) or ""
        if rows := self.store.rows(f"part = 0 AND {sql_in('id', [text])}", ["id", "text"]).to_pylist():
            return [Document(row["id"], row["text"]) for row in rows]
        if text == "-" or os.path.exists(text):
            return [replace(document, id="") for document in list_documents(text)]
        if text.isascii() and len(text.split()) <= 1:
            raise DataError(
                f"{text!r} is neither an id of the index nor a file. A text needs several words; to search for one "
                "word, use simlte search."
            )
        return [Document("", text)]

    def document_queries(self, groups: Sequence[Sequence[Document]], with_vectors: bool) -> list[Query]:
        """Return a query for each group of documents, whose hits exclude the group and documents with the same text.

        A text that the index has is not encoded again.
        """
        hashes = sorted({text_hash(document.text) for document in chain(*groups)})
        same: dict[str, list[str]] = {digest: [] for digest in hashes}
        for row in self.store.rows_of("hash", hashes, ["id", "hash"], "part = 0").to_pylist():
            same[row["hash"]].append(row["id"])
        known = [Document(one.id or next(iter(same[text_hash(one.text)]), ""), one.text) for one in chain(*groups)]
        vectors = iter(self._document_vectors(known) if with_vectors else ())
        queries = []
        for group in groups:
            excluded = {name for one in group for name in (one.id, *same[text_hash(one.text)]) if name}
            vector = unit_mean(np.stack([*islice(vectors, len(group))])) if with_vectors else None
            texts = [document.text for document in group]
            queries.append(Query(*self.words_of_query("\n\n".join(texts)), vector, sorted(excluded), documents=texts))
        return queries

    def _document_vectors(self, documents: Sequence[Document]) -> list[NDArray[np.float32]]:
        """Return for each document the mean of its vectors in a search, scaled to length 1."""
        known: dict[str, list[list[float]]] = {one.id: [] for one in documents if one.id}
        for row in self.store.rows_of("id", list(known), ["id", "vector"], "searched").to_pylist():
            known[row["id"]].append(row["vector"])
        vectors: Iterator[Any] = iter(())
        if new := [document for document in documents if not document.id]:
            encoder, segmenter = self.reader(), self.segmenter() if self.parts else None
            texts = [encoder.passages(document, segmenter) or [document.text] for document in new]
            encoded = iter(encoder.documents([*chain(*texts)]))
            vectors = ([*islice(encoded, len(own))] for own in texts)
        return [unit_mean(np.array(known[one.id] if one.id else next(vectors), np.float32)) for one in documents]

    def criteria(self, top_k: int | None, threshold: float | None, where: str | None, mode: Mode) -> Criteria:
        """Return the criteria of a search, after checking the filter and with the default number of hits."""
        where = None if where is None else self.store.check_filter(where)
        return Criteria(TOP_K if top_k is None and threshold is None else top_k, threshold, where, mode)

    def search(
        self, queries: Sequence[Query], criteria: Criteria, explain: bool = False, reranker: Reranker | None = None
    ) -> list[list[Hit]]:
        """Return the hits of each query, by criteria of :meth:`criteria`."""
        matches = self._matches(queries, criteria, reranker)
        flat = [match for each in matches for match in each]
        documents = {one.id: one for one in self.store.documents(list({match.id: None for match in flat}))}
        parted = sorted({match.id for match in flat if match.part})
        rows = self.store.rows_of("id", parted, ["id", "part", "passage"], "part > 0").to_pylist() if parted else []
        passages = {(row["id"], row["part"]): row["passage"] for row in rows}
        found = []
        for query, each in zip(queries, matches, strict=True):
            texts, hits = {match.id: documents[match.id].text for match in each}, []
            for one in each:
                beginning = shortened(texts[one.id], _BEGINNING)
                passage = one.passage or passages.get((one.id, one.part))
                values = documents[one.id].metadata or {}
                scores = (one.score, one.cosine, one.bm25)
                hits.append(Hit(one.id, *scores, beginning, passage, values, reranked=one.reranked))
            if explain:
                hits = explain_hits(hits, texts, query, self.store, self.segmenter(), self._sentences)
            found.append(hits)
        return found

    def _matches(self, queries: Sequence[Query], criteria: Criteria, reranker: Reranker | None) -> list[list[Match]]:
        if reranker is None:
            return find_matches(self.store, queries, criteria)
        depth, found = None if criteria.top_k is None else max(criteria.top_k, READ_HITS), []
        matches = find_matches(self.store, queries, replace(criteria, top_k=depth))
        for query, each in zip(queries, matches, strict=True):
            rows = self.store.table(["text"], [match.id for match in each[:READ_HITS]])
            texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
            found.append(reranker(query, each, texts, self._words.rareness)[: criteria.top_k])
        return found
