"""Queries, and the documents that match them: by vectors, by BM25, or by the scores of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
"""Number of hits without ``top_k`` and ``threshold``."""

VECTORS = 0.3
"""Weight of the cosines in the mode ``"hybrid"``; BM25 has weight 1. On ten sets of known pairs, for static models with
and without passages and for an encoder, .2 to .6 give about the same results; with .3, hybrid search is never more than
.003 of MRR behind the better of vectors and BM25. Leaving out one set at a time chooses .2 to .4."""

_DEPTH = 100  # least number of documents of each list to fuse; as many standardise the scores
_AT_ONCE = 4  # BM25 searches: on two cores, half the time of one after the other, and more gain little
_COMPARED = 16  # queries whose missing cosines are computed at once: a document may have a megabyte of vectors
_ROUNDING = 1e-6  # a smaller deviation of cosines counts as zero


@dataclass(frozen=True, slots=True)
class Criteria:
    """The criteria of a search: the arguments of :meth:`simlte_st.search.Index.search`."""

    top_k: int | None = None
    threshold: float | None = None
    where: str | None = None
    mode: Mode = "hybrid"

    def __post_init__(self) -> None:
        if self.threshold is not None and self.mode == "text":
            raise ConfigurationError(
                f"threshold={self.threshold}: a threshold is a cosine, but mode='text' does not compare vectors."
            )


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query for both rankings.

    Attributes:
        words: Words for BM25, by term.
        weights: Weight of each term.
        vector: Shape ``[dim]``, of length 1; None with the mode ``"text"``.
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
    """Return the matching documents of each query, best first; the filter must have been checked."""
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
        with ThreadPoolExecutor(min(_AT_ONCE, len(queries) or 1)) as pool:  # LanceDB takes one query per call
            by_text = list(pool.map(lambda query: _matching(store, query, depth, where), queries))
    if threshold is not None:
        pairs = zip(by_text, nearest, strict=True)
        by_text = [{name: text[name] for name in text if name in near} for text, near in pairs]
    if mode == "hybrid":
        _compare(store, queries, nearest, by_text)
    matches = []
    for near, text in zip(nearest, by_text, strict=True):
        cosines = {name: cosine for name, (cosine, _) in near.items()}
        scores = fused_scores(cosines, text) if mode == "hybrid" else text if mode == "text" else cosines
        names = sorted(scores, key=lambda name: (-scores[name], name))[:top_k]
        best = {name: near.get(name, (None, 0)) for name in names}
        matches.append([Match(name, scores[name], best[name][0], text.get(name), best[name][1]) for name in names])
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


def _compare(
    store: Store,
    queries: Sequence[Query],
    nearest: Sequence[dict[str, tuple[float, int]]],
    by_text: Sequence[Mapping[str, float]],
) -> None:
    """Add BM25's documents to the nearest ones of each query: the cosine and ``part`` of their best row."""
    missing = [[name for name in text if name not in near] for text, near in zip(by_text, nearest, strict=True)]
    for start in range(0, len(queries), _COMPARED):
        names = missing[start : start + _COMPARED]
        if not any(names):
            continue
        rows = store.rows_of("id", sorted({*chain.from_iterable(names)}), ["id", "part", "vector"], "searched")
        places: dict[str, list[int]] = {}
        for place, name in enumerate(rows["id"].to_pylist()):
            places.setdefault(name, []).append(place)
        parts = rows["part"].to_pylist()
        vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), -1)
        for query, wanted, near in zip(queries[start:], names, nearest[start:], strict=False):
            assert query.vector is not None
            for name in wanted:
                cosines = vectors[places[name]] @ query.vector
                near[name] = float(cosines.max()), parts[places[name][cosines.argmax()]]


def fused_scores(cosines: Mapping[str, float], by_text: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of each document's standardised BM25 score and its weighted, standardised cosine.

    Means and deviations are those of the first documents of either list, so that they do not depend on the size of the
    corpus or on ``top_k=``. Those of BM25 include documents without any word of the query, so a rare word can outweigh
    all vectors.

    Args:
        cosines: Cosines of all documents, nearest first.
        by_text: BM25 scores of the documents with words of the query, highest first.
    """
    first = {*islice(cosines, _DEPTH), *islice(by_text, _DEPTH)}
    among = np.array([name in first for name in cosines], dtype=bool)
    words = np.array([by_text.get(name, 0.0) for name in cosines])
    near = np.array([*cosines.values()])
    scores = z_scores(words, np.sort(words[among])[-_DEPTH:]) + VECTORS * z_scores(near, near[among])
    return dict(zip(cosines, scores.tolist(), strict=True))


def z_scores(values: NDArray[np.float64], sample: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return z-scores of values, by the mean and deviation of a sample (default: of the values)."""
    sample = values if sample is None else sample
    if not len(sample):
        return values
    deviation = sample.std()
    scaled: NDArray[np.float64] = (values - sample.mean()) / (deviation if deviation > _ROUNDING else 1.0)
    return scaled
