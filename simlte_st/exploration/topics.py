"""Topics: clusters of vectors, as many as both halves of the documents agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.exploration.pile import Halves
from simlte_st.progress import with_progress_bar

NUMBERS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 50, 60)
"""Numbers of topics that are tried."""

NONE = -1
"""Topic of a document that belongs to none."""

_SMALLEST = 10  # drawn documents a topic has on the average, or its number is not tried
_STARTS = 3  # of k-means, the best of which is taken


@dataclass(frozen=True, slots=True)
class Stability:
    """How far the halves of documents agree on a number of topics.

    Attributes:
        number: Of topics.
        shared: What the topic of one half tells of the topic of the other, beyond chance, in bits. What chance gives is
            taken off as in adjusted mutual information (Vinh, Epps and Bailey, 2010); it is not divided by the most
            that there could be, which would favour few topics.
        agreement: Adjusted mutual information: 0 by chance, 1 where both halves of each document fall alike.
    """

    number: int
    shared: float
    agreement: float

    @property
    def worth(self) -> float:
        """Bits times agreement: bits by themselves favour many topics, agreement by itself few."""
        return max(self.shared, 0.0) * max(self.agreement, 0.0)


@dataclass(frozen=True, slots=True)
class Topics:
    """Which topic each document belongs to.

    Attributes:
        assigned: The topic of each document, from 0, the largest first; :data:`NONE` for none. Shape ``[documents]``.
        centres: Of length 1, shape ``[topics, dimension]``.
        cosines: Of each document to the centre of its nearest topic, shape ``[documents]``.
        stability: The agreement on the number that was chosen. There are fewer topics where some have no document.
        tried: The numbers of topics that were tried; one only where the user chose it.
    """

    assigned: NDArray[np.int64]
    centres: NDArray[np.float32]
    cosines: NDArray[np.float32]
    stability: Stability
    tried: Sequence[Stability]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Documents of each topic, shape ``[topics]``."""
        return np.bincount(self.assigned[self.assigned >= 0], minlength=len(self.centres))


def find_topics(
    vectors: NDArray[np.float32], halves: Halves, number: int | None = None, *, seed: int = 0, progress: bool = False
) -> Topics:
    """Cluster documents.

    First and second halves of documents are clustered by themselves, and the number is the one at which the topic of
    one half tells most, and most surely, of that of the other (:attr:`Stability.worth`): neither wording nor chance
    decides. A document belongs to a topic where its halves would fall alike rather than apart. How often they do is
    told by how much nearer a document is to the centre of its topic than to the next, among the documents that were
    drawn; half-way from chance to always is enough.
    """
    different = _count_different(vectors)
    if different < 2:
        raise DataError("The model gives all documents the same vector: there are no topics to tell apart.")
    if number is not None and not 2 <= number <= different:
        raise ConfigurationError(
            f"topics={number}: must be between 2 and the number of different documents, {different:,}."
        )
    if len(halves.rows) < _SMALLEST:
        raise DataError(
            f"Only {len(halves.rows)} documents have two words or more, so that they can be cut into halves: "
            f"topics need at least {_SMALLEST}."
        )
    most = max(2, min(different, len(halves.rows) // _SMALLEST))
    numbers = [each for each in NUMBERS if each <= most] if number is None else [number]
    tried = [
        _stability(halves, each, seed)
        for each in with_progress_bar(numbers, "Trying numbers of topics", unit="number", shown=progress)
    ]
    best = max(tried, key=lambda each: each.worth)
    centres = _centres(vectors, best.number, seed)
    nearest, cosines, margins = _place(vectors, centres)
    belongs = margins >= _least_margin(halves, centres, margins)
    sizes = np.bincount(nearest[belongs], minlength=len(centres))
    order = np.argsort(-sizes, kind="stable")
    assigned = np.where(belongs, np.argsort(order)[nearest], NONE)
    return Topics(assigned, centres[order[: np.count_nonzero(sizes)]], cosines, best, tried)


def _count_different(vectors: NDArray[np.float32]) -> int:
    """Count vectors that differ by more than rounding; of many thousands, some of those that do not count."""
    along = vectors @ np.random.default_rng(0).normal(size=vectors.shape[1])
    return 1 + int(np.count_nonzero(np.diff(np.sort(along)) > 1e-5))


def _centres(vectors: NDArray[np.float32], number: int, seed: int) -> NDArray[np.float32]:
    fitted = KMeans(number, n_init=_STARTS, random_state=seed).fit(vectors)
    lengths = np.linalg.norm(fitted.cluster_centers_, axis=1, keepdims=True)
    centres: NDArray[np.float32] = fitted.cluster_centers_ / np.maximum(lengths, 1e-12)
    return centres


def _place(
    vectors: NDArray[np.float32], centres: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Return the nearest centre of each vector, its cosine, and how much higher that is than to the next."""
    cosines = vectors @ centres.T
    best = np.sort(cosines, axis=1)[:, -2:]
    return cosines.argmax(axis=1), best[:, 1], best[:, 1] - best[:, 0]


def _stability(halves: Halves, number: int, seed: int) -> Stability:
    first, second = (
        KMeans(min(number, _count_different(side)), n_init=_STARTS, random_state=seed).fit_predict(side)
        for side in (halves.first, halves.second)
    )
    table = contingency_matrix(first, second, sparse=True)
    told = _mutual_information(table) - expected_mutual_information(table, len(first))
    return Stability(number, told / np.log(2), float(adjusted_mutual_info_score(first, second)))


def _mutual_information(table: Any) -> float:
    total = table.sum()
    p = np.asarray(table.todense(), dtype=np.float64) / total
    expected = p.sum(axis=1, keepdims=True) @ p.sum(axis=0, keepdims=True)
    seen = p > 0
    return float((p[seen] * np.log(p[seen] / expected[seen])).sum())


def _least_margin(halves: Halves, centres: NDArray[np.float32], margins: NDArray[np.float32]) -> float:
    """Find the margin from which on halves of a document fall alike more often than half-way from chance to always."""
    first, second = (_place(side, centres)[0] for side in (halves.first, halves.second))
    alike = first == second
    if not len(alike) or alike.all():
        return -np.inf
    shares = [np.bincount(side, minlength=len(centres)) / len(side) for side in (first, second)]
    enough = (1 + float(shares[0] @ shares[1])) / 2
    own = margins[halves.rows]
    likely = IsotonicRegression(out_of_bounds="clip").fit(own, alike).predict(own) >= enough
    return float(own[likely].min()) if likely.any() else np.inf
