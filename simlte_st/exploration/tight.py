"""Tight clusters of documents that belong to no topic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from simlte_st.exploration.corpus import Halves
from simlte_st.exploration.topics import NONE, NUMBERS, Topics, by_size

SMALLEST = 10
"""Documents of a tight cluster."""

_ALIKE = 0.9  # share of the documents whose halves are less alike than two documents of a tight cluster
_MUTUAL = 4  # nearest documents that have a document among their own nearest: fewer of them make chains


def with_tight_clusters(
    topics: Topics,
    vectors: NDArray[np.float32],
    halves: Halves,
    near: NDArray[np.int64],
    cosines: NDArray[np.float32],
) -> Topics:
    """Return topics and, as further ones, tight clusters of documents that have none.

    K-means spends its few centres on what is large, and a small cluster between two of them is equally far from both,
    however close its documents are: among 6,288 e-mails, 12 issues of one newsletter with a mean cosine of .99. Two of
    its documents are more alike than the halves of nine documents in ten are; each has several such neighbours that
    have it among their nearest, too. The largest are added, up to the most topics that are tried.

    Args:
        topics: The topics so far.
        vectors: Shape ``[documents, dimension]``, of length 1.
        halves: Those that the topics were chosen by.
        near: The rows of the nearest documents of each, shape ``[documents, nearest]``.
        cosines: Their cosines, in the same shape.
    """
    if not len(halves.first):  # of texts that have one sentence each
        return topics
    labels = _clusters(topics.assigned == NONE, near, cosines >= np.quantile(_cosines(halves), _ALIKE))
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    chosen = np.argsort(-sizes, kind="stable")[: max(0, NUMBERS[-1] - len(topics.centres))]
    chosen = chosen[sizes[chosen] >= SMALLEST]
    if not len(chosen):
        return topics
    assigned, centres = topics.assigned.copy(), [topics.centres]
    for number, label in enumerate(chosen, start=len(topics.centres)):
        members = labels == label
        assigned[members] = number
        mean = vectors[members].mean(axis=0, keepdims=True)
        centres.append(mean / np.linalg.norm(mean))
    assigned, found = by_size(assigned, np.concatenate(centres))
    nearest = (vectors @ found.T).max(axis=1, initial=-1.0)
    return replace(topics, assigned=assigned, centres=found, cosines=nearest, tight=len(chosen))


def _cosines(halves: Halves) -> NDArray[np.float32]:
    cosines: NDArray[np.float32] = (halves.first * halves.second).sum(axis=1)
    return cosines


def _clusters(free: NDArray[np.bool_], near: NDArray[np.int64], alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the cluster of each document that is free, or -1."""
    alike = alike & free[:, None] & free[near]
    rows, places = np.nonzero(alike)
    links = csr_matrix((np.ones(len(rows)), (rows, near[rows, places])), shape=(len(free), len(free)))
    mutual = links.multiply(links.T).tocsr()
    inner = np.flatnonzero(np.diff(mutual.indptr) >= _MUTUAL)
    labels = np.full(len(free), -1, dtype=np.int64)
    labels[inner] = connected_components(mutual[inner][:, inner], directed=False)[1]
    beside = np.where(alike, labels[near], -1)  # the nearest first
    edge = (labels < 0) & (beside >= 0).any(axis=1)
    labels[edge] = beside[edge, (beside[edge] >= 0).argmax(axis=1)]
    return labels
