"""Topics: clusters of vectors, as many as random halves of documents agree on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from simlte_st.errors import DataError
from simlte_st.exploration.corpus import Halves
from simlte_st.progress import with_progress_bar

NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 60)
"""Numbers of topics that are tried."""

NONE = -1
"""Topic of a document that belongs to none."""

_SMALLEST = 10  # drawn documents a topic has on average, or its number is not tried
_STARTS = 3  # of k-means, the best of which is taken


@dataclass(frozen=True, slots=True)
class Stability:
    """How far halves of documents agree on a number of topics.

    Attributes:
        number: Number of topics.
        shared: Mutual information of the topics of both halves, less what chance gives, in bits (Vinh, Epps and Bailey,
            2010). It is not divided by its maximum, which would favour few topics.
        agreement: Adjusted mutual information: 0 by chance, 1 where the halves of every document share a topic.
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
    """The topic of each document, the largest first and :data:`NONE` for none.

    ``centres`` have length 1 and the shape ``[topics, dimension]``, ``cosines`` are those of each document to the
    nearest centre. Topics without documents are dropped, so there may be fewer than ``stability.number``.
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
    vectors: NDArray[np.float32], halves: Halves, number: int | None = None, *, seed: int = 0, progress: bool = False
) -> Topics:
    """Cluster documents.

    First and second halves of documents are clustered separately, and the number of topics is the one at which the
    topic of one half says most about that of the other (:attr:`Stability.worth`), so that neither wording nor chance
    decides. A document belongs to a topic if its halves would probably share one. That probability is learned, on the
    drawn documents, from how much nearer a document is to its topic's centre than to the next; half-way from chance to
    certainty is enough.
    """
    different = _count_different(vectors)
    if different < 2:
        raise DataError("The model encodes all documents as the same vector, so they have no topics.")
    if len(halves.rows) < _SMALLEST:
        raise DataError(
            f"Only {len(halves.rows)} documents have two words or more and can be split into halves; topics need at "
            f"least {_SMALLEST}."
        )
    most = max(2, min(different, len(halves.rows) // _SMALLEST))
    numbers = [each for each in NUMBERS if each <= most] if number is None else [min(number, different)]
    bar = with_progress_bar(numbers, "Trying numbers of topics", unit="number", shown=progress)
    best = max((_stability(halves, each, seed) for each in bar), key=lambda each: each.worth)
    centres = _centres(vectors, best.number, seed)
    nearest, cosines, margins = _nearest_centres(vectors, centres)
    belongs = margins >= _least_margin(halves, centres, margins)
    return Topics(*_by_size(np.where(belongs, nearest, NONE), centres), cosines, best)


def _by_size(
    assigned: NDArray[np.int64], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return topics, the largest first, and the centres of those that have documents."""
    sizes = np.bincount(assigned[assigned >= 0], minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    return np.where(assigned >= 0, np.argsort(order)[assigned], NONE), centres[order[: np.count_nonzero(sizes)]]


def _count_different(vectors: NDArray[np.float32]) -> int:
    """Count vectors that differ by more than rounding, or slightly fewer of many thousands."""
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
    """Return the nearest centre of each vector, its cosine, and how much higher that is than the next."""
    cosines = vectors @ centres.T
    best = np.sort(cosines, axis=1)[:, -2:]
    return cosines.argmax(axis=1), best[:, 1], best[:, 1] - best[:, 0]


def _stability(halves: Halves, number: int, seed: int) -> Stability:
    first, second = (
        KMeans(min(number, _count_different(side)), n_init=_STARTS, random_state=seed).fit_predict(side)
        for side in (halves.first, halves.second)
    )
    table = contingency_matrix(first, second, sparse=True)
    information = mutual_info_score(None, None, contingency=table) - expected_mutual_information(table, len(first))
    return Stability(number, information / np.log(2), float(adjusted_mutual_info_score(first, second)))


def _least_margin(halves: Halves, centres: NDArray[np.float32], margins: NDArray[np.float32]) -> float:
    """Return the margin from which on the halves of a document are likely enough to share a topic."""
    first, second = (_nearest_centres(side, centres)[0] for side in (halves.first, halves.second))
    alike = first == second
    if not len(alike) or alike.all():
        return -np.inf
    shares = [np.bincount(side, minlength=len(centres)) / len(side) for side in (first, second)]
    enough = (1 + float(shares[0] @ shares[1])) / 2
    own = margins[halves.rows]
    likely = IsotonicRegression(out_of_bounds="clip").fit(own, alike).predict(own) >= enough
    return float(own[likely].min()) if likely.any() else np.inf
