"""Find topics: clusters of vectors, in the number on which random halves of documents agree best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from simlte_st.errors import DataError
from simlte_st.exploration.corpus import DocumentHalves
from simlte_st.progress import with_progress_bar

NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 60)
"""Candidate numbers of topics."""

NONE = -1
"""Topic of a document without one."""

_SMALLEST = 10  # minimum sampled documents per topic, on average
_STARTS = 3  # of k-means; the best is kept


@dataclass(frozen=True, slots=True)
class Stability:
    """Agreement of halves of documents on a number of topics.

    Attributes:
        number: Number of topics.
        shared: Mutual information of the halves' topics above chance, in bits (Vinh, Epps and Bailey, 2010). Not
            divided by its maximum, which would favour few topics.
        agreement: Adjusted mutual information: 0 is chance; 1 means that all halves share their document's topic.
    """

    number: int
    shared: float
    agreement: float

    @property
    def worth(self) -> float:
        """Bits times agreement: bits alone favour many topics, agreement alone few."""
        return max(self.shared, 0.0) * max(self.agreement, 0.0)


@dataclass(frozen=True, slots=True)
class Topics:
    """The topic of each document, numbered from the largest, or :data:`NONE`.

    ``centres`` have length 1 and the shape ``[topics, dimension]``; ``cosines`` compare each document with its nearest
    centre. Empty topics are dropped, so there may be fewer than ``stability.number``.
    """

    assigned: NDArray[np.int64]
    centres: NDArray[np.float32]
    cosines: NDArray[np.float32]
    stability: Stability

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of documents of each topic."""
        return np.bincount(self.assigned[self.assigned >= 0], minlength=len(self.centres))

    @property
    def none(self) -> int:
        """Number of documents without a topic."""
        return int((self.assigned < 0).sum())


def find_topics(
    vectors: NDArray[np.float32],
    halves: DocumentHalves,
    number: int | None = None,
    *,
    seed: int = 0,
    progress: bool = False,
) -> Topics:
    """Cluster documents into topics.

    First and second halves of documents are clustered separately. The number of topics is the one at which the topic
    of one half says most about the topic of the other (:attr:`Stability.worth`). A document gets a topic if its halves
    would probably share one. That probability is learned on the sampled documents, from the margin between the two
    nearest centres; half-way from chance to certainty is enough.
    """
    different = _count_different(vectors)
    if different < 2:
        raise DataError("The model encodes all documents as the same vector, so they have no topics.")
    if len(halves.rows) < _SMALLEST:
        raise DataError(
            f"Only {len(halves.rows)} documents have two words or more and so can be split into halves; topics need "
            f"at least {_SMALLEST}."
        )
    most = max(2, min(different, len(halves.rows) // _SMALLEST))
    numbers = [each for each in NUMBERS if each <= most] if number is None else [min(number, different)]
    bar = with_progress_bar(numbers, "Trying numbers of topics", unit="number", show=progress)
    best = max((_stability(halves, each, seed) for each in bar), key=lambda each: each.worth)
    centres = _centres(vectors, best.number, seed)
    nearest, cosines, margins = _nearest_centres(vectors, centres)
    belongs = margins >= _least_margin(halves, centres, margins)
    return Topics(*_by_size(np.where(belongs, nearest, NONE), centres), cosines, best)


def _by_size(
    assigned: NDArray[np.int64], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Renumber topics from the largest, and drop the centres of empty ones."""
    sizes = np.bincount(assigned[assigned >= 0], minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    return np.where(assigned >= 0, np.argsort(order)[assigned], NONE), centres[order[: np.count_nonzero(sizes)]]


def _count_different(vectors: NDArray[np.float32]) -> int:
    """Count vectors that differ by more than rounding; among many thousands, a few may be missed."""
    along = vectors @ np.random.default_rng(0).normal(size=vectors.shape[1])
    return 1 + int(np.count_nonzero(np.diff(np.sort(along)) > 1e-5))


def _centres(vectors: NDArray[np.float32], number: int, seed: int) -> NDArray[np.float32]:
    fitted = KMeans(number, n_init=_STARTS, random_state=seed).fit(vectors)
    lengths = np.linalg.norm(fitted.cluster_centers_, axis=1, keepdims=True)
    centres: NDArray[np.float32] = fitted.cluster_centers_ / np.maximum(lengths, 1e-12)
    return centres


def _nearest_centres(
    vectors: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Return each vector's nearest centre, its cosine, and the margin to the second cosine."""
    cosines = vectors @ centres.T
    best = np.sort(cosines, axis=1)[:, -2:]
    return cosines.argmax(axis=1), best[:, 1], best[:, 1] - best[:, 0]


def _stability(halves: DocumentHalves, number: int, seed: int) -> Stability:
    first, second = (
        KMeans(min(number, _count_different(side)), n_init=_STARTS, random_state=seed).fit_predict(side)
        for side in (halves.first, halves.second)
    )
    table = contingency_matrix(first, second, sparse=True)
    information = mutual_info_score(None, None, contingency=table) - expected_mutual_information(table, len(first))
    return Stability(number, information / np.log(2), float(adjusted_mutual_info_score(first, second)))


def _least_margin(halves: DocumentHalves, centres: NDArray[np.float32], margins: NDArray[np.float32]) -> float:
    """Return the smallest margin at which the halves of a document probably share a topic."""
    first, second = (_nearest_centres(side, centres)[0] for side in (halves.first, halves.second))
    alike = first == second
    if not len(alike) or alike.all():
        return -np.inf
    shares = [np.bincount(side, minlength=len(centres)) / len(side) for side in (first, second)]
    enough = (1 + float(shares[0] @ shares[1])) / 2
    own = margins[halves.rows]
    likely = IsotonicRegression(out_of_bounds="clip").fit(own, alike).predict(own) >= enough
    return float(own[likely].min()) if likely.any() else np.inf
