"""Linking posts to articles: check whether the most similar pairs belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.papers.link_pairs import check_pairs
from simlte_st.errors import DataError
from simlte_st.evaluation import PairScores, bootstrap_interval

PRINTED_RANKS = (50, 100, 200, 500, 1000, 2000, 3000)
"""Numbers of retrieved pairs in AST's Table 1, with about :data:`PRINTED_LINKS` links."""

PRINTED_LINKS = 3300


def ranks_for(links: int) -> tuple[int, ...]:
    """Scale :data:`PRINTED_RANKS` to a number of links, without duplicates."""
    return tuple(dict.fromkeys(scaled_rank(rank, links) for rank in PRINTED_RANKS))


def scaled_rank(rank: int, links: int) -> int:
    """Scale one of :data:`PRINTED_RANKS` to a number of links; at least 1."""
    return max(1, round(rank * links / PRINTED_LINKS))


def measure_linking(
    scores: PairScores, links: ArrayLike, posts: int, ranks: Sequence[int] | None = None, seed: int = 0
) -> dict[str, Any]:
    """Score every post against every article (AST, section 4).

    r-Precision is the share of linked pairs among the r pairs with the highest scores (Table 1), and ``mrp`` its mean
    over r. Ties are lost: a linked pair ranks behind all other pairs with the same score. Mean average precision is
    over articles, each of which ranks all posts, and ROC-AUC over all pairs. Both are scikit-learn's, because the paper
    does not define them further (Table 2).

    Returns:
        ``map`` with its 95% bootstrap interval over articles, ``roc_auc``, ``mrp``, and ``r_precision`` by number of
        retrieved pairs.
    """
    data = _check_links(links, posts, scores.size)
    is_link = np.zeros((scores.size - posts, posts), dtype=bool)
    is_link[data[:, 1] - posts, data[:, 0]] = True
    table = np.asarray(scores.rows(np.arange(posts, scores.size), np.arange(posts)), dtype=np.float64)
    flat, truth = table.ravel(), is_link.ravel()
    order = np.lexsort((truth, -flat))
    hits = np.cumsum(truth[order])
    ranks = ranks_for(int(truth.sum())) if ranks is None else ranks
    has_posts = is_link.any(axis=1)
    pairs = zip(is_link[has_posts], table[has_posts], strict=True)
    by_article = np.array([average_precision_score(*pair) for pair in pairs])
    low, high = bootstrap_interval(by_article, seed=seed) if len(by_article) > 1 else (float("nan"), float("nan"))
    precisions = {rank: float(hits[min(rank, len(hits)) - 1] / min(rank, len(hits))) for rank in ranks}
    return {
        "map": float(by_article.mean()),
        "map_low": low,
        "map_high": high,
        "roc_auc": float(roc_auc_score(truth, flat)),
        "mrp": float(np.mean(list(precisions.values()))),
        "r_precision": precisions,
    }


def _check_links(links: ArrayLike, posts: int, size: int) -> NDArray[np.int64]:
    data = np.unique(check_pairs(links, size), axis=0)
    if (data[:, 0] >= posts).any() or (data[:, 1] < posts).any():
        raise DataError(f"Links must connect the {posts} posts to the {size - posts} articles.")
    return data
