"""How far a candidate for a verdict can be trusted, over all encoders of all sets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.bank.make import BASE
from simlte_st.evaluation.verdict import Finding, finding_of

MEASURES = ("same neighbours, crossed", "alpha-ReQ", "split-half retrieval")
"""The candidates that the package's verdict is made of: structure, spectrum, split-half."""

Judged = Mapping[str, Sequence[Mapping[str, Any]]]
"""What :func:`~benchmarks.bank.judge.judge` gave, by set."""


def rank_correlation(judged: Judged, candidate: str, outcome: str) -> dict[str, float]:
    """Spearman's correlation of a candidate with an outcome over the encoders of each set that has it."""
    found = {}
    for name, entries in judged.items():
        if outcome in entries[0]["outcomes"]:
            pairs = [(e["candidates"][candidate]["value"], e["outcomes"][outcome]["value"]) for e in entries]
            found[name] = float(spearmanr(*zip(*pairs, strict=True)).statistic)
    return found


def said(entry: Mapping[str, Any], candidate: str) -> int:
    """What a candidate says of an encoder: 1 helped, -1 hurt, 0 no clear difference."""
    return _sign(entry["candidates"][candidate])


def happened(entry: Mapping[str, Any]) -> int:
    """What labels say: 1 where an outcome is clearly better than the base's and none clearly worse; -1 the reverse."""
    signs = [_sign(value) for value in entry["outcomes"].values()]
    return 0 if min(signs) < 0 < max(signs) else min(signs) or max(signs)


def finding(entry: Mapping[str, Any]) -> Finding:
    """What the package's verdict says of an encoder."""
    return finding_of(*(said(entry, candidate) for candidate in MEASURES))


def findings(judged: Judged) -> dict[Finding, dict[str, int]]:
    """Count what labels say of the encoders of each finding: better than the base, unclear, worse."""
    counts = {
        kind: Counter(happened(entry) for _, entry in runs(judged) if finding(entry) == kind)
        for kind in get_args(Finding)
    }
    return {kind: {"better": count[1], "unclear": count[0], "worse": count[-1]} for kind, count in counts.items()}


def runs(judged: Judged) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Give all encoders but the base, each with its set."""
    for name, entries in judged.items():
        yield from ((name, entry) for entry in entries if entry["recipe"] != BASE)


def family(name: str, entry: Mapping[str, Any]) -> str:
    """Name the family of an encoder's recipe, such as "docsplit" for all that train with DocSplit's views alone."""
    return re.split(r"[-,+]", entry["recipe"])[0].strip()


def of_set(name: str, entry: Mapping[str, Any]) -> str:
    """Name the set of an encoder."""
    return name


def fitted(judged: Judged, part: Callable[[str, Mapping[str, Any]], str]) -> list[tuple[str, float, int]]:
    """Predict with a logistic regression of the measures of the verdict that a run helped, each part left out in turn.

    Args:
        judged: All encoders.
        part: Names the part of an encoder: :func:`of_set` or :func:`family`.

    Returns:
        For each encoder its part, the probability that a regression fitted on the others gives, and what labels say;
        nothing of parts without which there is nothing to learn.
    """
    every = list(runs(judged))
    parts = np.array([part(name, entry) for name, entry in every])
    values = np.array([[_steps(entry["candidates"][candidate]) for candidate in MEASURES] for _, entry in every])
    says = np.array([happened(entry) for _, entry in every])
    found: list[tuple[str, float, int]] = []
    for left in dict.fromkeys(parts.tolist()):
        others = parts != left
        if len(set(says[others] == 1)) < 2:
            continue
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(values[others], says[others] == 1)
        chances = model.predict_proba(values[~others])[:, 1]
        found += zip([left] * len(chances), chances.tolist(), says[~others].tolist(), strict=True)
    return found


def _steps(value: Mapping[str, float]) -> float:
    """A difference in its standard errors, at most ten; of a candidate without an interval, in tenths."""
    error = (value["high"] - value["low"]) / 3.92 or 0.1
    return float(np.clip(value["difference"] / error, -10, 10))


def _sign(value: Mapping[str, float]) -> int:
    return int(value["low"] > 0) - int(value["high"] < 0)


def signs_right(judged: Judged, candidate: str) -> dict[str, float]:
    """Share of the encoders of each set that labels tell from the base where a candidate is on their side of it."""
    found = {}
    for name, entries in judged.items():
        clear = [entry for entry in entries if entry["recipe"] != BASE and happened(entry)]
        if clear:
            right = [np.sign(entry["candidates"][candidate]["difference"]) == happened(entry) for entry in clear]
            found[name] = float(np.mean(right))
    return found


def confusion(judged: Judged, candidate: str) -> np.ndarray:
    """Count encoders by what a candidate says (rows) and labels say (columns): hurt, no clear difference, helped."""
    table = np.zeros((3, 3), dtype=np.int64)
    for entries in judged.values():
        for entry in entries:
            if entry["recipe"] != BASE:
                table[said(entry, candidate) + 1, happened(entry) + 1] += 1
    return table
