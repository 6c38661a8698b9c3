"""Turn texts or documents into queries, and queries into hits."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from itertools import chain, islice

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError
from simlte_st.files import valid_unicode
from simlte_st.reading.document import Document, to_name
from simlte_st.reading.documents import list_documents
from simlte_st.search.encoder import Encoder
from simlte_st.search.hits import Hit, RememberedVectors, explain_hits, shorten
from simlte_st.search.query import TOP_K, Criteria, Match, Mode, Query, find_matches
from simlte_st.search.rerank import READ_HITS, Reranker, unit_mean
from simlte_st.search.store import Store, sql_in, text_hash
from simlte_st.search.words import WordCounts, terms_by_word
from simlte_st.words.tokens import in_batches

_BEGINNING = 300  # characters
_BATCH = 512  # query documents that :meth:`Index.link_each` searches at once
_BATCH_CHARACTERS = 400_000  # of these documents: longer batches would delay the hits for minutes
_RERANKED_BATCH = 4  # with ``rerank=``, because a query takes seconds, in which its snapshot's files must stay


class Searcher:
    """Searches an index; the counts of its words are read once."""

    def __init__(self, store: Store, get_encoder: Callable[[], Encoder], parts: bool, languages: Sequence[str]) -> None:
        self.store, self.get_encoder, self.parts = store, get_encoder, parts
        self._sentence_vectors = RememberedVectors(lambda sentences: get_encoder().documents(sentences))
        # Snapshots share both caches.
        self.segmenter = cache(lambda: store.segmenter(languages[0] if len(languages) == 1 else None))
        # Searching for a query and naming its unknown words need the same terms.
        self._top_words = lru_cache(maxsize=1)(lambda text: self._counts.top_words(text, languages))

    def snapshot(self) -> Searcher:
        """Return a searcher of a snapshot of the index, which no writer changes."""
        _ = self._counts  # read once, and shared with the snapshots
        searcher = copy.copy(self)
        searcher.store = self.store.snapshot()
        return searcher

    @cached_property
    def _counts(self) -> WordCounts:
        return WordCounts.read(self.store)

    def query_words(self, text: str) -> tuple[dict[str, str], dict[str, float]]:
        """Return the words for BM25 and the weights of their terms, both by term."""
        words = self._top_words(text)
        return words, self._counts.weights(words)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a text that no document contains."""
        words, counts = terms_by_word(self._top_words(valid_unicode(text))), self._counts.counts
        rare = {word: dict.fromkeys(terms, 1.0) for word, terms in words.items() if not counts.keys() & {*terms}}
        return [word for word, terms in rare.items() if not self.store.bm25_scores(terms, "part = 0", 1)]

    def text_query(self, text: str, with_vector: bool) -> Query:
        """Return a text as a query."""
        text = valid_unicode(text)
        return Query(*self.query_words(text), self.get_encoder().query(text) if with_vector else None, text=text)

    def query_documents(self, source: str | int | os.PathLike[str]) -> list[Document]:
        """Return the documents of an id, a path or a text; only documents of the index have an id."""
        text = os.fspath(source) if isinstance(source, os.PathLike) else to_name(source) or ""
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

        A text of the index is not encoded again.
        """
        hashes = sorted({text_hash(document.text) for document in chain(*groups)})
        duplicates: dict[str, list[str]] = {digest: [] for digest in hashes}
        for row in self.store.find_rows("hash", hashes, ["id", "hash"], "part = 0").to_pylist():
            duplicates[row["hash"]].append(row["id"])
        ids = [document.id or next(iter(duplicates[text_hash(document.text)]), "") for document in chain(*groups)]
        vectors = iter(self._document_vectors([*chain(*groups)], ids) if with_vectors else ())
        queries = []
        for group in groups:
            excluded = {doc_id for document in group for doc_id in (document.id, *duplicates[text_hash(document.text)])}
            vector = unit_mean(np.stack([*islice(vectors, len(group))])) if with_vectors else None
            texts = [document.text for document in group]
            words = self.query_words("\n\n".join(texts))
            queries.append(Query(*words, vector, excluded=sorted(excluded - {""}), documents=texts))
        return queries

    def _document_vectors(self, documents: Sequence[Document], ids: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the mean vector of each document, scaled to length 1; documents with an id are not encoded again."""
        stored: dict[str, list[ArrayLike]] = {doc_id: [] for doc_id in ids if doc_id}
        for row in self.store.find_rows("id", list(stored), ["id", "vector"], "searched").to_pylist():
            stored[row["id"]].append(row["vector"])
        encoded: Iterator[Sequence[ArrayLike]] = iter(())
        if new := [document for document, doc_id in zip(documents, ids, strict=True) if not doc_id]:
            encoder, segmenter = self.get_encoder(), self.segmenter() if self.parts else None
            passages = [encoder.passages(document, segmenter) or [document.text] for document in new]
            vectors = iter(encoder.documents([*chain(*passages)]))
            encoded = ([*islice(vectors, len(texts))] for texts in passages)
        rows = (stored[doc_id] if doc_id else next(encoded) for doc_id in ids)
        return [unit_mean(np.array(vectors, np.float32)) for vectors in rows]

    def criteria(self, top_k: int | None, threshold: float | None, where: str | None, mode: Mode) -> Criteria:
        """Return the criteria of a search, after checking the filter and with the default number of hits."""
        where = None if where is None else self.store.check_filter(where)
        return Criteria(TOP_K if top_k is None and threshold is None else top_k, threshold, where, mode)

    def search(
        self, queries: Sequence[Query], criteria: Criteria, explain: bool = False, reranker: Reranker | None = None
    ) -> list[list[Hit]]:
        """Return the hits of each query, by criteria of :meth:`criteria`."""
        rankings = self._find_matches(queries, criteria, reranker)
        matches = [*chain(*rankings)]
        ids = list(dict.fromkeys(match.id for match in matches))
        documents = dict(zip(ids, self.store.documents(ids), strict=True))
        passages: dict[tuple[str, int], str] = {}
        if with_passage := sorted({match.id for match in matches if match.part}):
            rows = self.store.find_rows("id", with_passage, ["id", "part", "passage"], "part > 0").to_pylist()
            passages = {(row["id"], row["part"]): row["passage"] for row in rows}
        results = []
        for query, ranking in zip(queries, rankings, strict=True):
            texts = {match.id: documents[match.id].text for match in ranking}
            hits = [
                Hit(
                    match.id, match.score, match.cosine, match.bm25, shorten(texts[match.id], _BEGINNING),
                    passage=match.passage or passages.get((match.id, match.part)),
                    metadata=documents[match.id].metadata or {},
                    reranked=match.reranked,
                )
                for match in ranking
            ]  # fmt: skip
            if explain:
                hits = explain_hits(
                    hits, texts, query, store=self.store, segmenter=self.segmenter(), vectors=self._sentence_vectors
                )
            results.append(hits)
        return results

    def _find_matches(
        self, queries: Sequence[Query], criteria: Criteria, reranker: Reranker | None
    ) -> list[list[Match]]:
        if reranker is None:
            return find_matches(self.store, queries, criteria)
        depth, reranked = None if criteria.top_k is None else max(criteria.top_k, READ_HITS), []
        rankings = find_matches(self.store, queries, replace(criteria, top_k=depth))
        for query, matches in zip(queries, rankings, strict=True):
            rows = self.store.table(["text"], [match.id for match in matches[:READ_HITS]])
            texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
            reranked.append(reranker(query, matches, texts, self._counts.rareness)[: criteria.top_k])
        return reranked


def query_batches(documents: Iterable[Document], is_reranked: bool) -> Iterator[list[Document]]:
    """Yield query documents to search at once."""
    size = _RERANKED_BATCH if is_reranked else _BATCH
    return in_batches(documents, lambda document: len(document.text), _BATCH_CHARACTERS, size)


def normalize_ids(ids: Sequence[str]) -> list[str]:
    """Return normalised ids; a single one need not be in a list."""
    try:
        is_list = isinstance(ids, Iterable) and not isinstance(ids, (str, bytes))
        return [to_name(doc_id) or "" for doc_id in (ids if is_list else [ids])]
    except TypeError as error:
        raise DataError(f"ids={ids!r:.200}: an id is a text or a number, not {error}.") from None
