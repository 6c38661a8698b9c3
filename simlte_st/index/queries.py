"""What is asked of an index, and which documents answer it: by vectors, by BM25, or by the ranks of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simlte_st.checks import check_count, check_number
from simlte_st.errors import ConfigurationError
from simlte_st.index.store import Store, is_one_of

Mode = Literal["hybrid", "dense", "text"]

RANK_CONSTANT = 10
"""Reciprocal ranks are 1 / (this + rank) (Cormack et al., 2009). Their 60, which is also that of LanceDB's reranker,
finds less: on AAN's papers 48.0% of what is sought among the first ten against 50.6%, on PolitiFact's tweets 63.2%
against 64.1%. The reranker itself fuses rows of one table; here the best passage of a document stands for it."""

OUTSTANDING = 2.0
"""How many times the BM25 score of all others a document must have to come first in the mode ``"hybrid"``."""

FEW = 3
"""How many documents can."""

_DEPTH = 100  # ranks of each list that are fused at least


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is looked for.

    Attributes:
        words: What BM25 looks for: words of the question by their terms.
        vector: Shape ``[dim]``, of length 1; None where only text is searched.
        excluded: Ids that are no answer: those of the seeds.
    """

    words: Mapping[str, str]
    vector: NDArray[np.float32] | None
    excluded: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """A document with what it is ranked by; the attributes are those of a hit. ``part`` is the best one by cosine."""

    id: str
    score: float
    cosine: float | None
    bm25: float | None
    part: int = 0


def check_search(mode: str, top: int | None, threshold: float | None) -> None:
    """Check what a search is asked for.

    Raises:
        ConfigurationError: A value is out of range, or a threshold is given for text alone.
    """
    if mode not in get_args(Mode):
        raise ConfigurationError(f"mode={mode!r}: use one of {', '.join(map(repr, get_args(Mode)))}.")
    if top is not None:
        check_count("top", top)
    if threshold is not None:  # a cosine
        check_number("threshold", threshold, least=-1, most=1)
    if threshold is not None and mode == "text":
        raise ConfigurationError("The threshold is a cosine, and the mode 'text' compares no vectors: choose another.")


def find_answers(
    store: Store,
    question: Question,
    mode: Mode = "hybrid",
    top: int | None = None,
    threshold: float | None = None,
    where: str | None = None,
) -> list[Answer]:
    """Find the documents that answer a question.

    Args:
        store: The index's table.
        question: The question, with a vector unless the mode is ``"text"``.
        mode: What is searched.
        top: How many at most; None, with a threshold, for all.
        threshold: Lowest cosine.
        where: A condition on id and metadata, checked by :meth:`Store.check_filter`.

    Returns:
        The answers, from the best on.
    """
    conditions = [where] if where else []
    if question.excluded:
        conditions.append(f"NOT ({is_one_of('id', question.excluded)})")
    near: Mapping[str, tuple[float, int]] = {}
    depth = None if top is None else top if mode == "dense" else max(top, _DEPTH)
    if mode != "text":
        assert question.vector is not None
        searched = " AND ".join(["searched", *conditions])
        near = store.nearest(question.vector, searched, None if threshold is not None else depth, threshold)
    by_text: Mapping[str, float] = {}
    if mode != "dense":
        whole = " AND ".join(["part = 0", *conditions])
        number = store.count() if threshold is not None or depth is None else depth
        by_text = store.matching(question.words, whole, number)
        if threshold is not None:
            by_text = {name: score for name, score in by_text.items() if name in near}
    scores = _scores(mode, near, by_text)
    chosen = sorted(scores, key=lambda name: (-scores[name], name))[:top]
    missing = [name for name in chosen if name not in near] if mode == "hybrid" else []
    if missing:
        assert question.vector is not None
        near = {**near, **store.nearest(question.vector, f"searched AND {is_one_of('id', missing)}")}
    return [
        Answer(
            name, scores[name], near[name][0] if name in near else None, by_text.get(name), near.get(name, (0, 0))[1]
        )
        for name in chosen
    ]


def _scores(mode: Mode, near: Mapping[str, tuple[float, int]], by_text: Mapping[str, float]) -> dict[str, float]:
    if mode == "dense":
        return {name: cosine for name, (cosine, _) in near.items()}
    if mode == "text":
        return dict(by_text)
    scores: Counter[str] = Counter()
    for ranked in (near, by_text):
        for rank, name in enumerate(ranked, start=1):
            scores[name] += 1 / (RANK_CONSTANT + rank)  # type: ignore[assignment]
    for name in outstanding(by_text):
        scores[name] += 1
    return dict(scores)


def outstanding(by_text: Mapping[str, float]) -> list[str]:
    """Give the documents that have what hardly another has: a name, a number, a code of the question.

    The ranks of all others say little then: of a hundred documents that are alike but for a number, most are as near
    as the one that has the number, and share all words but that one.

    Args:
        by_text: BM25 scores by id, the highest first.

    Returns:
        The first few ids, where their scores are at least :data:`OUTSTANDING` times those of all others; else none.
    """
    scores = [*by_text.values(), 0.0]
    for count in range(1, min(FEW, len(by_text)) + 1):
        if scores[count] * OUTSTANDING <= scores[count - 1]:
            return list(by_text)[:count]
    return []
