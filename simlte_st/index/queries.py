"""What is asked of an index, and which documents answer it: by vectors, by BM25, or by the ranks of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from simlte_st.checks import check_choice, check_count, check_number
from simlte_st.errors import ConfigurationError
from simlte_st.index.store import Store

T = TypeVar("T")
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
_AT_ONCE = 4  # BM25 searches: on two cores, half the time of one after the other, and more gain little


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
    """Check what a search is asked for."""
    check_choice("mode", mode, get_args(Mode))
    if top is not None:
        check_count("top", top)
    if threshold is not None:  # a cosine
        check_number("threshold", threshold, least=-1, most=1)
    if threshold is not None and mode == "text":
        raise ConfigurationError("The threshold is a cosine, and the mode 'text' compares no vectors: choose another.")


def find_answers(
    store: Store,
    questions: Sequence[Question],
    mode: Mode = "hybrid",
    top: int | None = None,
    threshold: float | None = None,
    where: str | None = None,
) -> list[list[Answer]]:
    """Find the documents that answer each of several questions."""
    depth = None if top is None else top if mode == "dense" else max(top, _DEPTH)
    if threshold is not None:
        depth = None
    nearest = _nearest(store, questions, depth, threshold, where) if mode != "text" else [{} for _ in questions]
    by_text: list[dict[str, float]] = [{} for _ in questions]
    if mode != "dense":
        with ThreadPoolExecutor(min(_AT_ONCE, len(questions) or 1)) as pool:  # LanceDB takes one question in a call
            by_text = list(pool.map(lambda question: _matching(store, question, depth, where), questions))
    if threshold is not None:
        by_text = [
            {name: score for name, score in scores.items() if name in near}
            for scores, near in zip(by_text, nearest, strict=True)
        ]
    scores = [_scores(mode, *ranked) for ranked in zip(nearest, by_text, strict=True)]
    chosen = [sorted(each, key=lambda name: (-each[name], name))[:top] for each in scores]
    if mode == "hybrid":  # what was found by its words has a cosine too
        missing = [[name for name in names if name not in near] for names, near in zip(chosen, nearest, strict=True)]
        for near, cosines in zip(nearest, cosines_of(store, questions, missing), strict=True):
            near.update(cosines)
    return [
        [
            Answer(
                name, score[name], near[name][0] if name in near else None, text.get(name), near.get(name, (0, 0))[1]
            )
            for name in names
        ]
        for names, score, near, text in zip(chosen, scores, nearest, by_text, strict=True)
    ]


def _vectors(questions: Sequence[Question]) -> NDArray[np.float32]:
    vectors = [question.vector for question in questions if question.vector is not None]
    assert len(vectors) == len(questions)
    return np.stack(vectors)


def _nearest(
    store: Store, questions: Sequence[Question], depth: int | None, threshold: float | None, where: str | None
) -> list[dict[str, tuple[float, int]]]:
    """Find what is nearest to each; what is excluded, which differs, is left out of more that are asked for."""
    condition = f"searched AND {where}" if where else "searched"
    more = None if depth is None else depth + max(len(question.excluded) for question in questions)
    found = store.nearest_many(_vectors(questions), condition, more, threshold)
    return [dict(islice(_others(near, each), depth)) for near, each in zip(found, questions, strict=True)]


def _matching(store: Store, question: Question, depth: int | None, where: str | None) -> dict[str, float]:
    number = store.count() if depth is None else depth + len(question.excluded)
    found = store.matching(question.words, f"part = 0 AND {where}" if where else "part = 0", number)
    return dict(islice(_others(found, question), depth))


def _others(found: Mapping[str, T], question: Question) -> Iterator[tuple[str, T]]:
    excluded = {*question.excluded}
    return ((name, value) for name, value in found.items() if name not in excluded)


def cosines_of(
    store: Store, questions: Sequence[Question], names: Sequence[Sequence[str]]
) -> list[dict[str, tuple[float, int]]]:
    """Return for each question the cosines of some documents, each by its best row, and the ``part`` of that row."""
    if not any(names):
        return [{} for _ in names]
    rows = store.rows_of("id", sorted({*chain.from_iterable(names)}), ["id", "part", "vector"], "searched")
    places: dict[str, list[int]] = {}
    for place, name in enumerate(rows["id"].to_pylist()):
        places.setdefault(name, []).append(place)
    parts = rows["part"].to_pylist()
    vectors = rows["vector"].combine_chunks().flatten().to_numpy().reshape(len(rows), -1)
    cosines = []
    for question, wanted in zip(questions, names, strict=True):
        assert question.vector is not None
        own = {name: vectors[places[name]] @ question.vector for name in wanted}
        cosines.append({name: (float(each.max()), parts[places[name][each.argmax()]]) for name, each in own.items()})
    return cosines


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
    """Return the documents that have what hardly another has: a name, a number, a code of the question.

    The ranks of all others say little then: of a hundred documents that are alike but for a number, most are as near
    as the one that has the number, and share all words but that one.
    """
    scores = [*by_text.values(), 0.0]
    for count in range(1, min(FEW, len(by_text)) + 1):
        if scores[count] * OUTSTANDING <= scores[count - 1]:
            return list(by_text)[:count]
    return []
