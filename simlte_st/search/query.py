"""Queries, and the documents that match them: by vectors, by BM25, or by the ranks in both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError
from simlte_st.search.store import Store

T = TypeVar("T")

Mode = Literal["hybrid", "dense", "text"]

TOP_K = 10
"""Number of hits where neither a number nor a threshold is set."""

RANK_CONSTANT = 10
"""Reciprocal ranks are 1 / (this + rank) (Cormack et al., 2009). Their 60, which is also that of LanceDB's reranker,
finds less: on AAN's papers 48.0% of what is sought among the first ten against 50.6%, on PolitiFact's tweets 63.2%
against 64.1%. The reranker itself fuses rows of one table; here the best passage of a document stands for it."""

EXACT_MATCH = 2.0
"""A document comes first in the mode ``"hybrid"`` if its BM25 score is this many times that of all others."""

FEW = 3
"""The number of documents that can come first together."""

_DEPTH = 100  # ranks of each list that are fused at least
_AT_ONCE = 4  # BM25 searches: on two cores, half the time of one after the other, and more gain little


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which documents a search returns; the arguments of :meth:`simlte_st.search.Index.search`."""

    top_k: int | None = None
    threshold: float | None = None
    where: str | None = None
    mode: Mode = "hybrid"

    def __post_init__(self) -> None:
        if self.threshold is not None and self.mode == "text":
            raise ConfigurationError(
                f"threshold={self.threshold}: a threshold is a cosine, and mode='text' compares no vectors."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query as both rankings need it.

    Attributes:
        words: The words that BM25 searches for, by their terms.
        weights: The factor of each term's score.
        vector: Shape ``[dim]``, of length 1; None where only text is searched.
        excluded: Ids of documents that are never hits: the query documents.
        text: The text of the query; empty for query documents.
        documents: The texts of the query documents.
    """

    words: Mapping[str, str]
    weights: Mapping[str, float]
    vector: NDArray[np.float32] | None
    excluded: Sequence[str] = ()
    text: str = ""
    documents: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Match:
    """A matching document with its scores, as in a hit. ``part`` is its best row by cosine.

    ``passage`` is the passage that a reranker has read.
    """

    id: str
    score: float
    cosine: float | None
    bm25: float | None
    part: int = 0
    reranked: float | None = None
    passage: str | None = None


def find_matches(store: Store, queries: Sequence[Query], criteria: Criteria) -> list[list[Match]]:
    """Return the documents that match each of several queries, from the best on; the filter was checked."""
    mode, top_k, threshold, where = criteria.mode, criteria.top_k, criteria.threshold, criteria.where
    depth = top_k
    if threshold is not None:
        depth = None
    elif top_k is not None and mode != "dense":
        depth = max(top_k, _DEPTH)
    nearest: list[dict[str, tuple[float, int]]] = [{} for _ in queries]
    if mode != "text":
        nearest = _nearest(store, queries, depth, threshold, where)
    by_text: list[dict[str, float]] = [{} for _ in queries]
    if mode != "dense":
        with ThreadPoolExecutor(min(_AT_ONCE, len(queries) or 1)) as pool:  # LanceDB takes one query in a call
            by_text = list(pool.map(lambda query: _matching(store, query, depth, where), queries))
    ranked = []
    for near, text in zip(nearest, by_text, strict=True):
        words = text if threshold is None else {name: score for name, score in text.items() if name in near}
        if mode == "hybrid":
            scores = hybrid_scores(near, words)
        else:
            scores = dict(words) if mode == "text" else {name: cosine for name, (cosine, _) in near.items()}
        ranked.append((sorted(scores, key=lambda name: (-scores[name], name))[:top_k], scores, words))
    if mode == "hybrid":  # what was found by its words has a cosine too
        missing = [[one for one in names if one not in near] for (names, *_), near in zip(ranked, nearest, strict=True)]
        for near, cosines in zip(nearest, cosines_of(store, queries, missing), strict=True):
            near.update(cosines)
    matches = []
    for near, (names, scores, words) in zip(nearest, ranked, strict=True):
        best = {name: near.get(name, (None, 0)) for name in names}
        matches.append([Match(name, scores[name], best[name][0], words.get(name), best[name][1]) for name in names])
    return matches


def _nearest(
    store: Store, queries: Sequence[Query], depth: int | None, threshold: float | None, where: str | None
) -> list[dict[str, tuple[float, int]]]:
    """Return the nearest documents of each query, without its excluded ones."""
    condition = f"searched AND {where}" if where else "searched"
    more = None if depth is None else depth + max(len(query.excluded) for query in queries)
    vectors = np.stack([query.vector for query in queries if query.vector is not None])
    found = store.nearest_many(vectors, condition, more, threshold)
    return [dict(islice(_others(near, query), depth)) for near, query in zip(found, queries, strict=True)]


def _matching(store: Store, query: Query, depth: int | None, where: str | None) -> dict[str, float]:
    number = store.count() if depth is None else depth + len(query.excluded)
    found = store.matching(query.weights, f"part = 0 AND {where}" if where else "part = 0", number)
    return dict(islice(_others(found, query), depth))


def _others(found: Mapping[str, T], query: Query) -> Iterator[tuple[str, T]]:
    excluded = {*query.excluded}
    return ((name, value) for name, value in found.items() if name not in excluded)


def cosines_of(
    store: Store, queries: Sequence[Query], names: Sequence[Sequence[str]]
) -> list[dict[str, tuple[float, int]]]:
    """Return for each query the cosines of some documents, each by its best row, and the ``part`` of that row."""
    if not any(names):
        return [{} for _ in names]
    rows = store.rows_of("id", sorted({*chain.from_iterable(names)}), ["id", "part", "vector"], "searched")
    places: dict[str, list[int]] = {}
    for place, name in enumerate(rows["id"].to_pylist()):
        places.setdefault(name, []).append(place)
    parts = rows["part"].to_pylist()
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), -1)
    cosines = []
    for query, wanted in zip(queries, names, strict=True):
        assert query.vector is not None
        own = {name: vectors[places[name]] @ query.vector for name in wanted}
        cosines.append({name: (float(each.max()), parts[places[name][each.argmax()]]) for name, each in own.items()})
    return cosines


def hybrid_scores(near: Iterable[str], by_text: Mapping[str, float]) -> dict[str, float]:
    """Return the scores of documents by their ranks: from the nearest on, and by BM25."""
    scores: Counter[str] = Counter()
    for ranked in (near, by_text):
        for rank, name in enumerate(ranked, start=1):
            scores[name] += 1 / (RANK_CONSTANT + rank)  # type: ignore[assignment]
    for name in exact_matches(by_text):
        scores[name] += 1
    return dict(scores)


def exact_matches(by_text: Mapping[str, float]) -> list[str]:
    """Return the documents with a name, number or code of the query that hardly any other document has.

    The ranks of all others say little then: of a hundred documents that are alike but for a number, most are as near
    as the one that has the number, and share all words but that one.
    """
    scores = [*by_text.values(), 0.0]
    for count in range(1, min(FEW, len(by_text)) + 1):
        if scores[count] * EXACT_MATCH <= scores[count - 1]:
            return list(by_text)[:count]
    return []
