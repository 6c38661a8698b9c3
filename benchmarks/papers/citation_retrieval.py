"""Citation retrieval: rank all cited papers for each citing paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.papers.link_pairs import check_pairs
from simlte_st.errors import DataError
from simlte_st.evaluation import PairScores, bootstrap_interval
from simlte_st.models.vectors import row_blocks

METRICS = ("recall@10", "recall@100", "mrr", "ndcg@10")
"""Metrics of sentence-transformers' ``InformationRetrievalEvaluator``; MRR without a cutoff."""


@dataclass(frozen=True, slots=True, eq=False)
class RetrievalResult:
    """Retrieval metrics, with citing papers as queries for the cited ones.

    Attributes:
        per_query: Values of :data:`METRICS` for each query, shape ``[queries]``, float64: share of the cited papers in
            the first 10 and the first 100, 1 / rank of the first cited paper, and nDCG at 10 with gains of 0 and 1.
        pool: Number of cited papers, which form the search pool.
    """

    per_query: dict[str, NDArray[np.float64]]
    pool: int

    def metrics(self) -> dict[str, float]:
        """Return means over queries with 95% bootstrap intervals, and the numbers of queries and papers in the pool."""
        values: dict[str, float] = {}
        for name, per_query in self.per_query.items():
            low, high = bootstrap_interval(per_query)
            values |= {name: float(per_query.mean()), f"{name}_low": low, f"{name}_high": high}
        return values | {"queries": float(len(self.per_query["mrr"])), "pool": float(self.pool)}


def citation_retrieval(scores: PairScores, links: ArrayLike) -> RetrievalResult:
    """Query the cited papers with each citing paper.

    The pool holds all cited papers. A citing paper in the pool is excluded only from its own search. Ties are lost: a
    cited paper ranks behind all equally similar papers that the query does not cite, so a model that maps all texts to
    one point finds nothing.

    The metrics are those of sentence-transformers' ``InformationRetrievalEvaluator``, which cannot exclude a paper from
    its own search, breaks ties by id, and returns no values per query for intervals.
    """
    data = np.unique(check_pairs(links, scores.size), axis=0)
    queries, starts = np.unique(data[:, 0], return_index=True)
    pool = np.unique(data[:, 1])
    if len(queries) < 2 or len(pool) < 2:
        raise DataError(f"{len(queries)} papers cite {len(pool)}: retrieval needs at least 2 of each.")
    cited = np.split(np.searchsorted(pool, data[:, 1]), starts[1:])
    values = []
    for block in row_blocks(len(queries), len(pool)):
        rows = scores.rows(queries[block], pool)
        for row, query, relevant in zip(rows, queries[block], cited[block], strict=True):
            irrelevant = pool != query
            irrelevant[relevant] = False
            values.append(_query_metrics(_ranks(row[relevant], row[irrelevant], scores.tolerance)))
    per_query = dict(zip(METRICS, np.array(values).T, strict=True))
    return RetrievalResult(per_query=per_query, pool=len(pool))


def _ranks(relevant: NDArray[Any], irrelevant: NDArray[Any], tolerance: float) -> NDArray[np.int64]:
    """Return the ranks of the relevant papers, best first, starting at 1; ties are lost."""
    descending = np.sort(relevant)[::-1]
    ahead = len(irrelevant) - np.searchsorted(np.sort(irrelevant), descending - tolerance, side="left")
    return np.asarray(1 + np.arange(len(descending)) + ahead, dtype=np.int64)


def _query_metrics(ranks: NDArray[np.int64]) -> tuple[float, ...]:
    """Return the values of :data:`METRICS` for one query."""
    gain = (1.0 / np.log2(1.0 + ranks[ranks <= 10])).sum()
    ideal = (1.0 / np.log2(1.0 + np.arange(1, min(len(ranks), 10) + 1))).sum()
    return float((ranks <= 10).mean()), float((ranks <= 100).mean()), float(1.0 / ranks[0]), float(gain / ideal)
