"""Find topics: cluster vectors into the number of topics on which random halves of documents agree best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from simlte_st.errors import DataError
from simlte_st.exploration.corpus import HalfVectors
from simlte_st.models.vectors import Floats, Ints
from simlte_st.progress import with_progress_bar

NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 60)
"""Candidate numbers of topics."""

NONE = -1
"""Number for documents without a topic."""

_MIN_TOPIC_SIZE = 10  # minimum mean number of sampled documents per topic
_STARTS = 3  # k-means runs, of which the best is kept


@dataclass(frozen=True, slots=True)
class Stability:
    """Agreement of halves of documents on a number of topics.

    Attributes:
        number: Number of topics.
        shared: Mutual information of the halves' topics above chance, in bits (Vinh, Epps and Bailey, 2010). It is not
            normalised, because that would favour few topics.
        agreement: Adjusted mutual information: 0 is chance; 1 means that both halves of every document agree.
    """

    number: int
    shared: float
    agreement: float

    @property
    def worth(self) -> float:
        """Bits times agreement: bits alone favour many topics, agreement alone favours few."""
        return max(self.shared, 0.0) * max(self.agreement, 0.0)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic of each document, numbered from the largest, or :data:`NONE`.

    ``centres`` have length 1 and the shape ``[topics, dimension]``; ``cosines`` compare each document with its nearest
    centre. Empty topics are dropped, so there may be fewer than ``stability.number``.
    """

    by_document: Ints
    centres: Floats
    cosines: Floats
    stability: Stability

    @property
    def sizes(self) -> Ints:
        """Number of documents in each topic."""
        return np.bincount(self.by_document[self.by_document >= 0], minlength=len(self.centres))

    @property
    def outliers(self) -> int:
        """Number of documents without a topic."""
        return int((self.by_document < 0).sum())


def find_topics(
    vectors: Floats, halves: HalfVectors, number: int | None = None, *, seed: int = 0, progress: bool = False
) -> Topics:
    """Cluster documents into topics.

    First and second halves of documents are clustered separately. The number of topics is the one for which the topic
    of one half predicts that of the other best (:attr:`Stability.worth`). A document gets a topic if its halves would
    probably share one: with a probability at least half-way from chance to certainty. This probability is learned from
    the sampled documents, by the margin between the two nearest centres.
    """
    distinct = _count_distinct(vectors)
    if distinct < 2:
        raise DataError("The model encodes all documents as the same vector, so they have no topics.")
    if len(halves.rows) < _MIN_TOPIC_SIZE:
        raise DataError(
            f"Only {len(halves.rows)} documents can be split into halves, which takes two words; topics need at least "
            f"{_MIN_TOPIC_SIZE}."
        )
    max_number = max(2, min(distinct, len(halves.rows) // _MIN_TOPIC_SIZE))
    numbers = [size for size in NUMBERS if size <= max_number] if number is None else [min(number, distinct)]
    bar = with_progress_bar(numbers, "Trying numbers of topics", unit="number", show=progress)
    best = max((_stability(halves, count, seed) for count in bar), key=lambda stability: stability.worth)
    centres = KMeans(best.number, n_init=_STARTS, random_state=seed).fit(vectors).cluster_centers_
    centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    nearest, cosines, margins = _nearest_centres(vectors, centres)
    nearest[margins < _min_margin(halves, centres, margins)] = NONE
    sizes = np.bincount(nearest[nearest >= 0], minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")  # from the largest topic; empty ones are dropped
    by_document = np.where(nearest >= 0, np.argsort(order)[nearest], NONE)
    return Topics(by_document, centres[order[: np.count_nonzero(sizes)]], cosines, best)


def _count_distinct(vectors: Floats) -> int:
    """Count vectors that differ by more than rounding; among many thousands, a few may be missed."""
    projections = vectors @ np.random.default_rng(0).normal(size=vectors.shape[1])
    return 1 + int(np.count_nonzero(np.diff(np.sort(projections)) > 1e-5))


def _nearest_centres(vectors: Floats, centres: Floats) -> tuple[Ints, Floats, Floats]:
    """Return each vector's nearest centre, its cosine, and the margin to the second cosine."""
    cosines = vectors @ centres.T
    best = np.sort(cosines, axis=1)[:, -2:]
    return cosines.argmax(axis=1), best[:, 1], best[:, 1] - best[:, 0]


def _stability(halves: HalfVectors, number: int, seed: int) -> Stability:
    first, second = (
        KMeans(min(number, _count_distinct(side)), n_init=_STARTS, random_state=seed).fit_predict(side)
        for side in (halves.first, halves.second)
    )
    table = contingency_matrix(first, second, sparse=True)
    information = mutual_info_score(None, None, contingency=table) - expected_mutual_information(table, len(first))
    return Stability(number, information / np.log(2), float(adjusted_mutual_info_score(first, second)))


def _min_margin(halves: HalfVectors, centres: Floats, margins: Floats) -> float:
    """Return the smallest margin at which the halves of a document probably share a topic."""
    first, second = (_nearest_centres(side, centres)[0] for side in (halves.first, halves.second))
    agree = first == second
    if agree.all():
        return -np.inf
    shares = [np.bincount(side, minlength=len(centres)) / len(side) for side in (first, second)]
    min_probability = (1 + float(shares[0] @ shares[1])) / 2
    sample_margins = margins[halves.rows]
    probabilities = IsotonicRegression(out_of_bounds="clip").fit(sample_margins, agree).predict(sample_margins)
    return float(sample_margins[probabilities >= min_probability].min(initial=np.inf))
