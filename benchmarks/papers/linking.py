"""Linking posts to articles: are the pairs that a model finds most alike those that belong together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks.papers.link_pairs import check_pairs
from simlte_st.errors import DataError
from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings
from simlte_st.evaluation.scores import CosineScores, PairScores
from simlte_st.evaluation.statistics import bootstrap_interval

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

PRINTED_RANKS = (50, 100, 200, 500, 1000, 2000, 3000)
"""Pairs that are retrieved in AST's Table 1, of about :data:`PRINTED_LINKS` that belong together."""

PRINTED_LINKS = 3300


@dataclass(frozen=True, slots=True, eq=False)
class LinkingResult:
    """How well posts are linked to articles.

    Attributes:
        r_precision: By number of pairs retrieved, the share of them that belong together.
        average_precision: Of each article that has posts, ``[articles]``, float64: all posts ranked for it.
        interval: 95% bootstrap interval of its mean, over articles.
        roc_auc: Area under the receiver operating curve, over all pairs.
    """

    r_precision: dict[int, float]
    average_precision: NDArray[np.float64]
    interval: tuple[float, float]
    roc_auc: float

    def metrics(self) -> dict[str, float]:
        """All numbers by name: ``map`` with its interval, ``roc_auc``, ``mrp``, ``r_precision@50``, ..."""
        low, high = self.interval
        return {
            "map": float(self.average_precision.mean()),
            "map_low": low,
            "map_high": high,
            "roc_auc": self.roc_auc,
            "mrp": float(np.mean(list(self.r_precision.values()))),
            **{f"r_precision@{rank}": value for rank, value in self.r_precision.items()},
        }


def ranks_for(links: int) -> tuple[int, ...]:
    """Scale :data:`PRINTED_RANKS` to a number of links: the same shares of it, each at least 1 and once."""
    return tuple(dict.fromkeys(scaled_rank(rank, links) for rank in PRINTED_RANKS))


def scaled_rank(rank: int, links: int) -> int:
    """Scale one of :data:`PRINTED_RANKS`."""
    return max(1, round(rank * links / PRINTED_LINKS))


def linking(
    scores: PairScores, links: ArrayLike, posts: int, ranks: Sequence[int] | None = None, seed: int = 0
) -> LinkingResult:
    """Score every post against every article (AST, section 4).

    r-Precision is the share of the r pairs with the highest scores that belong together (Table 1); ``mrp`` is the mean
    over r. A tie counts as lost: a pair that belongs together stands behind all with the same score that do not. Mean
    average precision is over articles, for each of which all posts are ranked, and ROC-AUC over all pairs, both
    scikit-learn's (Table 2; the paper does not say over what they are taken).
    """
    data = _checked(links, posts, scores.size)
    together = np.zeros((scores.size - posts, posts), dtype=bool)
    together[data[:, 1] - posts, data[:, 0]] = True
    table = np.asarray(scores.rows(np.arange(posts, scores.size), np.arange(posts)), dtype=np.float64)
    flat, truth = table.ravel(), together.ravel()
    order = np.lexsort((truth, -flat))
    hits = np.cumsum(truth[order])
    ranks = ranks_for(int(truth.sum())) if ranks is None else ranks
    named = together.any(axis=1)
    by_article = np.array([average_precision_score(*pair) for pair in zip(together[named], table[named], strict=True)])
    return LinkingResult(
        r_precision={rank: float(hits[min(rank, len(hits)) - 1] / min(rank, len(hits))) for rank in ranks},
        average_precision=by_article,
        interval=bootstrap_interval(by_article, seed=seed) if len(by_article) > 1 else (float("nan"), float("nan")),
        roc_auc=float(roc_auc_score(truth, flat)),
    )


def _checked(links: ArrayLike, posts: int, size: int) -> NDArray[np.int64]:
    data = np.unique(check_pairs(links, size), axis=0)
    if (data[:, 0] >= posts).any() or (data[:, 1] < posts).any():
        raise DataError(f"Links must go from the {posts} posts to the {size - posts} articles.")
    return data


class LinkingEvaluator(EmbeddingEvaluator):
    """Linking of posts to articles by the cosine similarity of a model's embeddings; see :func:`linking`.

    Returns ``map`` (primary) with its 95% interval, ``roc_auc``, ``mrp`` and ``r_precision@R``. The full
    result of the latest call is in ``last_result``.
    """

    def __init__(
        self,
        posts: Sequence[str],
        articles: Sequence[str],
        links: ArrayLike,
        ranks: Sequence[int] | None = None,
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        super().__init__(csv_prefix="linking", primary_metric="map", **settings)
        self.texts, self.posts, self.ranks = [*posts, *articles], len(posts), ranks
        self.links = _checked(np.asarray(links) + np.array([0, len(posts)]), self.posts, len(self.texts))
        self.last_result: LinkingResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Encode and link."""
        scores = CosineScores(self.embed_inputs(model, self.texts))
        self.last_result = linking(scores, self.links, self.posts, self.ranks, seed=self.seed)
        return self.last_result.metrics()

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"links": len(self.links), **super().get_config_dict()}
