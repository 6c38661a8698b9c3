"""Rank the documents that match a query, by vectors, by BM25, or by both scores together."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, islice
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from simlte_st.errors import ConfigurationError
from simlte_st.search.store import Nearest, Store

T = TypeVar("T")

Mode = Literal["hybrid", "dense", "text"]
Cosine = Annotated[float, Interval(ge=-1, le=1)]

TOP_K = 10
"""Number of hits if neither ``top_k`` nor ``threshold`` is given."""

STATIC_VECTORS, VECTORS = 0.8, 1.5
"""Weights of cosines in hybrid mode, where BM25 has weight 1: for a text query to a static model, and otherwise.

On nine sets of titles, claims, tweets, questions and citations, leaving one out in turn always selects .8 for
``simlte-static``, 1 for static models trained on the documents (MRR .001 higher than with .8) and 1.5 for
all-MiniLM-L6-v2. On eight sets of query documents (terms of service of one kind or company, mails, papers, drafts,
proposals that mention each other), where BM25 has more words to agree on by chance, the shares of relevant documents
among the first ten are 58.4% at .8, 59.4% at 1.5 and 59.7% at 2, and the MRRs .634, .637 and .634. Below .9, a word
that only one document has outweighs all vectors.
"""

_DEPTH = 100  # minimum length of the rankings to fuse; scores are standardised over the first 100 documents of each
_THREADS = 4  # for BM25 search; on two cores, four threads halve the time and more gain little
_COMPARED = 16  # queries per batch of missing cosines, since the vectors of one document may take a megabyte
_ROUNDING = 1e-6  # smaller standard deviations count as zero

REMEMBERED = 50_000
"""Maximum number of cached sentence or passage vectors (38 MB at 384 dimensions)."""

_LAST_WORD = re.compile(r"\s+\S{0,40}$")


@dataclass(slots=True)
class Criteria:
    """Search criteria, as passed to :meth:`simlte_st.search.Index.search`."""

    top_k: int | None = None
    threshold: float | None = None
    where: str | None = None
    mode: Mode = "hybrid"
    explain: bool = False

    def __post_init__(self) -> None:
        if self.top_k is None and self.threshold is None:
            self.top_k = TOP_K
        if self.threshold is not None and self.mode == "text":
            raise ConfigurationError(f"threshold={self.threshold} is a cosine; mode='text' does not compare vectors.")

    @property
    def with_vectors(self) -> bool:
        """Whether queries need vectors."""
        return self.explain or self.mode != "text"


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A query for vector search and BM25.

    Attributes:
        words: Query words, by BM25 term.
        weights: Weight of each term.
        vector: Unit-length vector (shape ``[dim]``); None with ``mode="text"``.
        excluded: Ids of query documents in the index, to leave out of the hits.
        text: Text of the query; empty for query documents.
        documents: Texts of the query documents.
        is_static: Whether the vector is a static model's.
    """

    words: Mapping[str, str]
    weights: Mapping[str, float]
    vector: NDArray[np.float32] | None
    excluded: Sequence[str] = ()
    text: str = ""
    documents: Sequence[str] = ()
    is_static: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """A matching document with the scores of its hit.

    ``part`` is the document's row with the highest cosine, and ``passage`` the reranker's best passage.
    """

    id: str
    score: float
    cosine: float | None
    part: int
    bm25: float | None
    reranked: float | None = None
    passage: str | None = None


def find_matches(store: Store, queries: Sequence[Query], criteria: Criteria) -> list[list[Match]]:
    """Return each query's matching documents, best first; ``criteria.where`` must be a checked filter."""
    mode, top_k, threshold, where = criteria.mode, criteria.top_k, criteria.threshold, criteria.where
    depth = None if threshold is not None else top_k
    if depth is not None and mode != "dense":
        depth = max(depth, _DEPTH)
    nearest: list[Nearest] = [{} for _ in queries] if mode == "text" else _nearest(store, queries, criteria, depth)
    bm25_scores: list[dict[str, float]] = [{} for _ in queries]
    if mode != "dense":
        with ThreadPoolExecutor(min(_THREADS, len(queries) or 1)) as pool:  # LanceDB takes one query per call
            bm25_scores = list(pool.map(lambda query: _bm25_scores(store, query, depth, where), queries))
    if threshold is not None:
        pairs = zip(bm25_scores, nearest, strict=True)
        bm25_scores = [{doc_id: bm25[doc_id] for doc_id in bm25 if doc_id in near} for bm25, near in pairs]
    if mode == "hybrid":
        _add_missing_cosines(store, queries, nearest, bm25_scores)
    matches = []
    for query, near, bm25 in zip(queries, nearest, bm25_scores, strict=True):
        cosines = {doc_id: cosine for doc_id, (cosine, _) in near.items()}
        weight = STATIC_VECTORS if query.is_static and not query.documents else VECTORS
        scores = fused_scores(cosines, bm25, weight) if mode == "hybrid" else bm25 if mode == "text" else cosines
        best = sorted(scores, key=lambda doc_id: (-scores[doc_id], doc_id))[:top_k]
        rows = ((doc_id, *near.get(doc_id, (None, 0))) for doc_id in best)
        matches.append([Match(doc_id, scores[doc_id], cosine, part, bm25.get(doc_id)) for doc_id, cosine, part in rows])
    return matches


def _nearest(store: Store, queries: Sequence[Query], criteria: Criteria, depth: int | None) -> list[Nearest]:
    """Return each query's nearest documents, except those that it excludes."""
    condition = f"searched AND {criteria.where}" if criteria.where else "searched"
    limit = None if depth is None else depth + max(len(query.excluded) for query in queries)
    vectors = np.stack([query.vector for query in queries if query.vector is not None])
    nearest = store.nearest_many(vectors, condition, limit, criteria.threshold)
    return [_first_hits(documents, query, depth) for documents, query in zip(nearest, queries, strict=True)]


def _bm25_scores(store: Store, query: Query, depth: int | None, where: str | None) -> dict[str, float]:
    condition = f"part = 0 AND {where}" if where else "part = 0"
    limit = store.count() if depth is None else depth + len(query.excluded)
    return _first_hits(store.bm25_scores(query.weights, condition, limit), query, depth)


def _first_hits(documents: Mapping[str, T], query: Query, depth: int | None) -> dict[str, T]:
    """Return the first ``depth`` documents that the query does not exclude."""
    excluded = {*query.excluded}
    return dict(islice((item for item in documents.items() if item[0] not in excluded), depth))


def _add_missing_cosines(
    store: Store, queries: Sequence[Query], nearest: Sequence[Nearest], bm25: Sequence[Mapping[str, float]]
) -> None:
    """Compute the cosines of documents found only by BM25, and add them to ``nearest``."""
    missing = [[doc_id for doc_id in scores if doc_id not in near] for scores, near in zip(bm25, nearest, strict=True)]
    for start in range(0, len(queries), _COMPARED):
        batch = missing[start : start + _COMPARED]
        if not any(batch):
            continue
        rows = store.find_rows("id", sorted({*chain(*batch)}), ["id", "part", "vector"], "searched")
        row_numbers: dict[str, list[int]] = {}
        for number, doc_id in enumerate(rows["id"].to_pylist()):
            row_numbers.setdefault(doc_id, []).append(number)
        parts = rows["part"].to_pylist()
        vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), -1)
        for query, doc_ids, near in zip(queries[start:], batch, nearest[start:], strict=False):
            assert query.vector is not None
            for doc_id in doc_ids:
                cosines = vectors[row_numbers[doc_id]] @ query.vector
                near[doc_id] = float(cosines.max()), parts[row_numbers[doc_id][cosines.argmax()]]


def fused_scores(cosines: Mapping[str, float], bm25: Mapping[str, float], weight: float) -> dict[str, float]:
    """Return the sum of each document's standardised BM25 score and its weighted, standardised cosine.

    Means and standard deviations are taken over the first documents of either ranking, so they do not depend on the
    size of the corpus or on ``top_k=``. For BM25, these include documents with none of the query's words, so a rare
    word can outweigh all vectors.

    Args:
        cosines: Cosines of all documents, nearest first.
        bm25: BM25 scores of the documents that contain words of the query, highest first.
        weight: Weight of the cosines.
    """
    first = {*islice(cosines, _DEPTH), *islice(bm25, _DEPTH)}
    is_first = np.array([doc_id in first for doc_id in cosines], dtype=bool)
    words = np.array([bm25.get(doc_id, 0.0) for doc_id in cosines])
    near = np.array([*cosines.values()])
    scores = z_scores(words, np.sort(words[is_first])[-_DEPTH:]) + weight * z_scores(near, near[is_first])
    return dict(zip(cosines, scores.tolist(), strict=True))


def z_scores(values: NDArray[np.float64], sample: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Standardise values by the mean and standard deviation of a sample (default: the values themselves)."""
    sample = values if sample is None else sample
    if not len(sample):
        return values
    deviation = float(sample.std())
    return (values - float(sample.mean())) / (deviation if deviation > _ROUNDING else 1.0)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document found by a search.

    Attributes:
        id: Id of the document.
        score: Score by which the hits are ranked. With ``mode="hybrid"``, the BM25 score plus the weighted cosine, each
            standardised; otherwise the cosine or the BM25 score. With ``rerank=``, this score plus that of the
            ``rerank=`` model, each standardised.
        cosine: Cosine between the query and the document or its best passage; None with ``mode="text"``.
        bm25: BM25 score of the document; None if BM25 did not rank it.
        title: The value of the title column; otherwise a heading, a subject or the first line of the text.
        beginning: The first words of the text, with an ellipsis if it is longer.
        passage: The part of the text with most words of the query, up to 400 characters. With ``mode="dense"``,
            it comes from the passage nearest to the query, if the index has passages; with ``rerank=``, from the
            reranker's best passage. Without shared words, it is the beginning of these or of the text.
        metadata: The values of the metadata columns.
        sentences: With ``explain=True``, the sentences nearest to the query, each with its cosine.
        words: With ``explain=True``, the words shared with the query, each with its share of the BM25 score.
        reranked: Cosine of the query and the passage under the ``rerank=`` model, or a cross-encoder's score before its
            activation; None if the hit was not reranked.
        identical: Whether the text is that of a query document.
    """

    id: str
    score: float
    cosine: float | None
    bm25: float | None
    beginning: str
    passage: str = ""
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    sentences: tuple[tuple[str, float], ...] = ()
    words: tuple[tuple[str, float], ...] = ()
    reranked: float | None = None
    identical: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the hit, including its metadata, as JSON values."""
        names = ("id", "score", "cosine", "bm25", "reranked", "identical", "title", "beginning", "passage")
        values = {name: getattr(self, name) for name in names}
        for name, value in self.metadata.items():
            is_finite = not isinstance(value, float) or isfinite(value)  # JSON has no NaN or infinity
            values[name] = value.isoformat() if isinstance(value, date) else value if is_finite else None
        values["sentences"] = [{"sentence": sentence, "cosine": cosine} for sentence, cosine in self.sentences]
        return values | {"words": [{"word": word, "bm25": score} for word, score in self.words]}


def shorten(text: str, length: int) -> str:
    """Shorten a text to at most ``length`` characters, in whole words, and add an ellipsis."""
    return text if len(text) <= length else _LAST_WORD.sub("", text[: length + 1])[:length] + " …"


class RememberedVectors:
    """A cache of sentence or passage vectors, kept while an index is open."""

    def __init__(self, encode: Callable[[Sequence[str]], NDArray[np.float32]]) -> None:
        self._encode, self._vectors = encode, dict[str, NDArray[np.float16]]()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, of shape ``[len(texts), dimension]``."""
        if len(self._vectors) > REMEMBERED:
            self._vectors.clear()
        if missing := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(missing, self._encode(missing).astype(np.float16), strict=True))
        return np.stack([self._vectors[text] for text in texts]).astype(np.float32)
