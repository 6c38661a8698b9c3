"""Measure an encoder on a set with few labels, all labels or citations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from benchmarks.bank.sets import BankSet
from benchmarks.papers.citation_retrieval import citation_retrieval
from benchmarks.records import TFIDF_INVERSE_L2
from simlte_st.evaluation import CosineScores, ProbeResult, few_shot_probe, fit_probe
from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.evaluation.splits import TEST, stratified_split
from simlte_st.models.vectors import unit_rows

HALVES = 10
"""Random splits of the held-out documents into a probe's training and test documents."""

DRAWS = 3
"""Few-shot draws per split."""

SHOTS = 5
INVERSE_L2 = 10.0
"""``C`` of the logistic regression, on normalised rows, so that the length of an encoder's vectors has no effect."""

FEW, FULL, CITES = "few-shot", "all labels", "citations"
"""Names of the outcomes: macro-F1 with :data:`SHOTS` labelled documents per class or a whole half, and R@10."""

Probe: TypeAlias = "tuple[np.ndarray, ProbeResult]"
"""Test rows and result of a probe."""


def word_outcomes(data: BankSet) -> dict[str, list[float]]:
    """Measure TF-IDF vectors of the held-out documents, fitted on the training documents."""
    vectorizer = fit_tfidf([document.text for document in data.train])
    rows = vectorizer.transform([document.text for document in data.held]).toarray()
    return outcomes(data, rows.astype(np.float32), inverse_l2=TFIDF_INVERSE_L2)


def outcomes(data: BankSet, vectors: np.ndarray, inverse_l2: float | None = INVERSE_L2) -> dict[str, list[float]]:
    """Measure an encoder's vectors of the held-out documents."""
    if len(data.links):
        return {CITES: citation_retrieval(CosineScores(unit_rows(vectors)), data.links).per_query["recall@10"].tolist()}
    scores = {key: probes(data, vectors, key, inverse_l2) for key in (FEW, FULL)}
    return {key: [result.macro_f1 for _, result in results] for key, results in scores.items()}


def probes(data: BankSet, vectors: np.ndarray, outcome: str, inverse_l2: float | None = INVERSE_L2) -> list[Probe]:
    """Train and test probes on an encoder's vectors of the held-out documents."""
    rows, runs = unit_rows(vectors), []
    classes = np.unique(data.labels, return_inverse=True)[1].astype(np.int32)
    settings: dict[str, Any] = {"inverse_l2": inverse_l2}
    for half, (train, test) in enumerate(_split_halves(classes)):
        parts = (rows[train], classes[train].tolist(), rows[test], classes[test].tolist())
        if outcome == FEW:
            results = few_shot_probe(*parts, shots=SHOTS, draws=DRAWS, seed=half, **settings).draws
        else:
            results = (fit_probe(*parts, **settings),)
        runs += [(test, result) for result in results]
    return runs


def means(values: dict[str, list[float]]) -> dict[str, float]:
    """Average each labelled outcome over splits and draws."""
    return {outcome: float(np.mean(values[outcome])) for outcome in (FEW, FULL)}


def _split_halves(classes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the training and test rows of each split."""
    for half in range(HALVES):
        sides = stratified_split(classes, np.arange(len(classes)), 0.5, seed=half) == TEST
        yield np.flatnonzero(~sides), np.flatnonzero(sides)
