"""From queries to hits: the documents that match, with what is shown of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from simlte_st.data.sentences import PunktSegmenter, Segmenter
from simlte_st.search.config import READ_HITS, LinkEachConfig
from simlte_st.search.explain import Explainer
from simlte_st.search.hits import Hit, Hits, shortened
from simlte_st.search.kept import KeptVectors
from simlte_st.search.query import Match, Query, find_matches
from simlte_st.search.store import PUNKT_FILE, Store, read_part
from simlte_st.search.words import WordCounts

if TYPE_CHECKING:
    from simlte_st.models.token_vectors import TokenVectors
    from simlte_st.search.encoder import Encoder
    from simlte_st.search.rerank import Reranker

L = TypeVar("L", bound=LinkEachConfig)

TOP_K = 10
"""Number of hits where neither a number nor a threshold is set."""

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
        if not self.store.count():
            return PunktSegmenter()
        return read_part(self.store.folder, PUNKT_FILE, PunktSegmenter.from_dict)

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

    def checked(self, config: L) -> L:
        """Return the settings with the filter as the store takes it."""
        return config if config.where is None else replace(config, where=self.store.check_filter(config.where))

    def search(
        self,
        queries: Sequence[Query],
        config: LinkEachConfig,
        explain: bool = False,
        reranker: Reranker | None = None,
    ) -> list[Hits]:
        """Return the hits of each query, by settings that were :meth:`checked`."""
        if config.top_k is None and config.threshold is None:
            config = replace(config, top_k=TOP_K)
        if reranker is None:
            matches = find_matches(self.store, queries, config)
        else:
            matches = self._reranked(queries, config, reranker)
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
            found.append(Hits(map(explainer, hits) if explain else hits, metadata, config.threshold, explainer))
        return found

    def _reranked(self, queries: Sequence[Query], config: LinkEachConfig, reranker: Reranker) -> list[list[Match]]:
        depth = None if config.top_k is None else max(config.top_k, READ_HITS)
        found = []
        for query, each in zip(queries, find_matches(self.store, queries, replace(config, top_k=depth)), strict=True):
            rows = self.store.table(["text"], [match.id for match in each[:READ_HITS]])
            texts = dict(zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True))
            found.append(reranker(query, each, texts, self._words.rareness)[: config.top_k])
        return found
