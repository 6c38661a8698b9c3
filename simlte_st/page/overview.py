"""What the page shows before anything is searched for, and what its menus are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from simlte_st.data.columns import Column, column_of, title_column, title_of
from simlte_st.data.topic_terms import topic_terms
from simlte_st.evaluation.splits import sample_rows
from simlte_st.exploration.corpus import vectors_of
from simlte_st.models.vectors import unit_rows
from simlte_st.search import Index
from simlte_st.search.encoder import Encoder

DRAWN = 1_000
"""Documents that topics are found in."""

TOPICS = 6
"""Topics at most."""

TYPICAL = 3
"""Documents that are named of a topic."""

QUERIES = 3
"""Questions that are offered."""

_SMALLEST = 10  # documents a topic has on the average
_SURE = 0.9  # of pairs of documents, as many are less alike than a neighbour that is not weak
_UNRELATED = 0.95  # of beginnings of documents with other documents, as many are less alike than a hit that is not weak
_BEGINNINGS = 100
_WORDS = 5  # of a beginning: as many as people type


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic."""

    name: str
    documents: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Overview:
    """What is in an index.

    Attributes:
        count: Number of documents.
        columns: Their columns.
        title: The column of titles; None if there is none.
        topics: Topics of up to :data:`DRAWN` documents, the largest first; none of a handful.
        queries: Titles of documents of different topics.
        weak: Cosine below which a hit is weak: that of 95% of the beginnings of documents, of five words, with other
            documents. Few words are less like any document than two documents are, and with some models by far.
        weak_neighbour: Cosine below which a neighbour is weak: the calibrated threshold, else that of nine in ten pairs
            of documents.
    """

    count: int
    columns: Sequence[Column]
    title: str | None
    topics: Sequence[Topic]
    queries: Sequence[str]
    weak: float
    weak_neighbour: float


def look_over(index: Index, title: str | None = None) -> Overview:
    """Look over an index.

    Topics are clusters of a sample: how many there are is not judged here, see :func:`simlte_st.explore`.
    """
    names = index.columns
    title = title_column(names, title)
    values = index.table(names)
    columns = [column_of(name, values[name].to_pylist()) for name in names]
    ids = values["id"].to_pylist()
    drawn = index.table(
        ["text", "vector", *([title] if title else [])], [ids[row] for row in sample_rows(len(ids), DRAWN, 0)]
    )
    vectors, texts = vectors_of(drawn), drawn["text"].to_pylist()
    own = drawn[title].to_pylist() if title else [None] * len(texts)
    titles = [title_of(value, text) for value, text in zip(own, texts, strict=True)]
    pairs = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
    weak_neighbour = float(np.quantile(pairs, _SURE)) if len(pairs) else -1.0
    topics = []
    number = min(TOPICS, len(texts) // _SMALLEST)
    if number > 1:
        fitted = KMeans(number, n_init=3, random_state=0).fit(vectors)
        cosines = vectors @ unit_rows(fitted.cluster_centers_).T
        for topic, terms in enumerate(topic_terms(texts, fitted.labels_, number)):
            members = np.flatnonzero(fitted.labels_ == topic)
            nearest = members[np.argsort(-cosines[members, topic], kind="stable")][:TYPICAL]
            typical = [(drawn["id"][row].as_py(), titles[row]) for row in nearest.tolist()]
            topics.append((len(members), Topic(", ".join(terms) or typical[0][1], typical)))
        topics.sort(key=lambda each: -each[0])
    found = [topic for _, topic in topics]
    queries = [topic.documents[0][1] for topic in found] or titles
    if index.calibration is not None:
        weak_neighbour = index.calibration.threshold
    weak = _unrelated(index.encoder, titles, vectors)
    return Overview(len(ids), columns, title, found, list(dict.fromkeys(queries))[:QUERIES], weak, weak_neighbour)


def _unrelated(encoder: Encoder, titles: Sequence[str], vectors: NDArray[np.float32]) -> float:
    """Return a cosine that few beginnings of documents reach with other documents, or -1 for a single document."""
    beginnings = [" ".join(title.split()[:_WORDS]) for title in titles[:_BEGINNINGS]]
    cosines = np.stack([encoder.query(beginning) for beginning in beginnings]) @ vectors.T
    others = cosines[np.eye(*cosines.shape) == 0]
    return float(np.quantile(others, _UNRELATED)) if others.size else -1.0
