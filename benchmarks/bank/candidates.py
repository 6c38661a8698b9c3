"""Candidates for a verdict: what can be said of an encoder from documents alone.

Each looks at vectors of the halves of held-out documents, as split-half retrieval makes them; larger is meant to be
better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import normalize

from benchmarks.bank.make import Vectors
from benchmarks.bank.spectrum import alpha_req
from simlte_st.evaluation import alignment, split_half_retrieval, structure_agreement, uniformity
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.evaluation.structure import (
    NEIGHBOURS,
    Neighbours,
    neighbours_by_words,
    similarity_agreement,
    words_agreement,
)

CLUSTERS = 20
SEEDS = 5
"""Runs of k-means, whose mean is taken."""


@dataclass(frozen=True)
class Texts:
    """The halves of held-out documents as words.

    Attributes:
        first: The halves that ``Vectors.first`` embeds.
        second: The others.
    """

    first: list[str]
    second: list[str]

    @cached_property
    def words(self) -> tuple[csr_matrix, csr_matrix]:
        """TF-IDF of both, from one vocabulary."""
        vectorizer = fit_tfidf(self.first + self.second, stop_words=["en"], min_df=2)
        return vectorizer.transform(self.first), vectorizer.transform(self.second)

    @cached_property
    def alike(self) -> tuple[np.ndarray, np.ndarray]:
        """Lexical similarities among the first halves, and among the second ones: ``[N, N]`` each."""
        first, second = (np.asarray((rows @ rows.T).todense()) for rows in self.words)
        return first, second

    @cached_property
    def near(self) -> Neighbours:
        """The nearest documents of both by their words."""
        return neighbours_by_words(self.first, self.second)

    @cached_property
    def topics(self) -> tuple[np.ndarray, np.ndarray]:
        """Clusters of the first halves, and of the second ones, by their words, ``[SEEDS, N]`` each."""
        made = []
        for rows in self.words:
            low = normalize(
                TruncatedSVD(min(50, rows.shape[0] - 1, rows.shape[1] - 1), random_state=0).fit_transform(rows)
            )
            made.append(np.stack([_clusters(low, seed) for seed in range(SEEDS)]))
        return made[0], made[1]


def neighbour_agreement(vectors: Vectors, texts: Texts) -> np.ndarray:
    """Share of the nearest documents that both halves have in common, each among halves of its own side."""
    return _overlap(_similar(vectors.first, vectors.first), _similar(vectors.second, vectors.second))


def crossed_agreement(vectors: Vectors, texts: Texts) -> np.ndarray:
    """The same, each among halves of the other side: the package's verdict."""
    return structure_agreement(vectors.first, vectors.second).scores


def mixed_agreement(vectors: Vectors, texts: Texts) -> np.ndarray:
    """The neighbours of a first half among first halves, against those of the second half among first halves."""
    one = _overlap(_similar(vectors.first, vectors.first), _similar(vectors.second, vectors.first))
    return (one + _overlap(_similar(vectors.first, vectors.second), _similar(vectors.second, vectors.second))) / 2


def lexical_agreement(vectors: Vectors, texts: Texts) -> np.ndarray:
    """The same, of an encoder's neighbours of one half with those of the other by words: the package's verdict."""
    return words_agreement(vectors.first, vectors.second, texts.near).scores


def lexical_correlation(vectors: Vectors, texts: Texts) -> np.ndarray:
    """Correlation, by document, of an encoder's similarities of one half with lexical ones of the other half."""
    first, second = texts.alike
    pairs = ((vectors.first, second), (vectors.second, first))
    return np.mean([_correlation(rows @ rows.T, words) for rows, words in pairs], axis=0)


def lexical_lift(vectors: Vectors, texts: Texts) -> np.ndarray:
    """Lexical similarity of the other halves of the nearest documents, over that of all documents."""
    lifts = []
    for rows, words in ((vectors.first, texts.alike[1]), (vectors.second, texts.alike[0])):
        near = np.argsort(-_similar(rows, rows), axis=1)[:, :NEIGHBOURS]
        lifts.append(np.take_along_axis(words, near, axis=1).mean(axis=1) / _masked_mean(words).mean())
    return np.mean(lifts, axis=0)


def cluster_agreement(vectors: Vectors, texts: Texts) -> float:
    """Normalized mutual information of the clusters of first and of second halves, each clustered by itself."""
    found = []
    for seed in range(SEEDS):
        found.append(normalized_mutual_info_score(_clusters(vectors.first, seed), _clusters(vectors.second, seed)))
    return float(np.mean(found))


def topic_agreement(vectors: Vectors, texts: Texts) -> float:
    """The same, of an encoder's clusters of one half with clusters of the other half by their words."""
    found = []
    for seed in range(SEEDS):
        found.append(normalized_mutual_info_score(_clusters(vectors.first, seed), texts.topics[1][seed]))
        found.append(normalized_mutual_info_score(_clusters(vectors.second, seed), texts.topics[0][seed]))
    return float(np.mean(found))


def topic_probe(vectors: Vectors, texts: Texts) -> np.ndarray:
    """A probe that predicts, from one half, the cluster of the other half by its words: right or not, by document."""
    found = []
    for rows, topics in ((vectors.first, texts.topics[1]), (vectors.second, texts.topics[0])):
        for wanted in topics[:2]:
            folds = min(5, max(2, int(np.bincount(wanted)[np.bincount(wanted) > 0].min())))
            probe = LogisticRegression(C=10.0, max_iter=500)
            found.append(cross_val_predict(probe, rows, wanted, cv=folds) == wanted)
    return np.mean(found, axis=0)


def split_half(vectors: Vectors, texts: Texts) -> np.ndarray:
    """Reciprocal rank of the other half of a document among those of all."""
    return 1.0 / split_half_retrieval(vectors.first, vectors.second).ranks


def rank_me(vectors: Vectors, texts: Texts) -> float:
    """RankMe (Garrido et al., 2023): the exponential of the entropy of the singular values."""
    values = np.linalg.svd(vectors.whole.astype(np.float64), compute_uv=False)
    shares = values / values.sum() + 1e-7
    return float(np.exp(-(shares * np.log(shares)).sum()))


def spectrum(vectors: Vectors, texts: Texts) -> float:
    """alpha-ReQ of whole documents."""
    return alpha_req(vectors.whole)


def closeness(vectors: Vectors, texts: Texts) -> float:
    """Minus the alignment of Wang & Isola (2020)."""
    return -alignment(vectors.first, vectors.second)


def spread(vectors: Vectors, texts: Texts) -> float:
    """Minus their uniformity."""
    return -(uniformity(vectors.first) + uniformity(vectors.second)) / 2


def cohesion(vectors: Vectors, texts: Texts) -> float:
    """Cohesion ratio: similarity of the halves of a document over the deviation of those of different documents."""
    alike = vectors.first @ vectors.second.T
    others = alike[~np.eye(len(alike), dtype=bool)]
    return float((np.diag(alike).mean() - others.mean()) / others.std())


CANDIDATES: dict[str, Callable[[Vectors, Texts], np.ndarray | float]] = {
    "same neighbours": neighbour_agreement,
    "same neighbours, crossed": crossed_agreement,
    "same neighbours, mixed": mixed_agreement,
    "neighbours by words": lexical_agreement,
    "similarities by words": lexical_correlation,
    "lift by words": lexical_lift,
    "same clusters": cluster_agreement,
    "clusters by words": topic_agreement,
    "probe of topics": topic_probe,
    "split-half retrieval": split_half,
    "RankMe": rank_me,
    "alpha-ReQ": spectrum,
    "alignment": closeness,
    "uniformity": spread,
    "cohesion ratio": cohesion,
}
"""Every candidate by name: its value, or one a document."""

SIMILARITIES = "same similarities"
"""Name of a candidate that encoders of earlier pages lack: of static models alone."""


def similarities(vectors: Vectors) -> np.ndarray:
    """Correlation of the similarities of both halves of a document: the package's verdict on static models."""
    return similarity_agreement(vectors.first, vectors.second).scores


CLUSTERED = ("same clusters", "clusters by words", "probe of topics")
"""Those that stand on k-means, which another machine's rounding leads to other clusters."""


def _masked(similarities: np.ndarray) -> np.ndarray:
    masked = similarities.astype(np.float64)  # a copy
    np.fill_diagonal(masked, -np.inf)
    return masked


def _masked_mean(similarities: np.ndarray) -> np.ndarray:
    return np.asarray((similarities.sum(axis=1) - np.diag(similarities)) / (len(similarities) - 1))


def _similar(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return _masked(rows @ others.T)


def _overlap(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    count = min(NEIGHBOURS, len(one) - 1)
    sides = [np.argsort(-table, axis=1, kind="stable")[:, :count] for table in (one, other)]
    return np.array([len(np.intersect1d(a, b)) for a, b in zip(*sides, strict=True)]) / count


def _correlation(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    keep = ~np.eye(len(one), dtype=bool)
    parts = [table[keep].reshape(len(one), -1) for table in (one, other)]
    parts = [part - part.mean(axis=1, keepdims=True) for part in parts]
    norms = [np.linalg.norm(part, axis=1) + 1e-12 for part in parts]
    return np.asarray((parts[0] * parts[1]).sum(axis=1) / (norms[0] * norms[1]))


def _clusters(rows: np.ndarray, seed: int) -> np.ndarray:
    found = KMeans(min(CLUSTERS, len(rows) // 3), n_init=1, random_state=seed).fit(rows).labels_
    return np.asarray(found)
