"""The package's verdict: a regression over encoders, tested on held-out ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.bank.judge import MEASURES, SIMILARITIES
from benchmarks.bank.make import BASE
from benchmarks.bank.sets import SAMPLES
from benchmarks.bank.static import STATIC_RECIPES
from simlte_st.evaluation.verdict import LIKELY, in_errors, is_between
from simlte_st.models.names import PACKAGED_BASE

BINS = (0.0, 0.1, 0.3, 0.5, LIKELY, 0.9, 1.0)
"""Edges of the probability bins for calibration."""

STEPS, TOKENS = 30, 64
COMMON = f"{STEPS} steps, {TOKENS} tokens"
"""Steps and view length of recipes whose names do not state them."""

Entry = Mapping[str, Any]
Judged = Mapping[str, Sequence[Entry]]
"""Results of :func:`~benchmarks.bank.judge.judge`, by set."""


def select_kind(judged: Judged, static: bool) -> dict[str, Sequence[Entry]]:
    """Select the sets with a static base, or those without."""
    kinds = {name: any(entry["recipe"] in STATIC_RECIPES for entry in entries) for name, entries in judged.items()}
    return {name: entries for name, entries in judged.items() if kinds[name] is static}


def label_outcome(entry: Entry, wider: Mapping[str, float] | None = None) -> int:
    """Return 1 if some labelled outcome is clearly better and none clearly worse, -1 for the reverse, 0 otherwise."""
    signs = [_sign(value, (wider or {}).get(name, 1.0)) for name, value in entry["outcomes"].items()]
    return 0 if min(signs) < 0 < max(signs) else min(signs) or max(signs)


def _sign(value: Mapping[str, float], wider: float) -> int:
    low, high = (value["difference"] + wider * (value[end] - value["difference"]) for end in ("low", "high"))
    return int(low > 0) - int(high < 0)


def trained_encoders(judged: Judged) -> Iterator[tuple[str, Entry]]:
    """Yield the encoders other than the base, each with the name of its set."""
    for name, entries in judged.items():
        yield from ((name, entry) for entry in entries if entry["recipe"] != BASE)


def recipe_family(name: str, entry: Entry) -> str:
    """Return the family of an encoder's recipe, such as "docsplit"."""
    return re.split(r"[-,+]", entry["recipe"])[0].strip()


def recipe_name(name: str, entry: Entry) -> str:
    """Return the recipe of an encoder."""
    return str(entry["recipe"])


def training_length(name: str, entry: Entry) -> str:
    """Return the number of steps and the view length of an encoder's training."""
    lengths = re.search(r"(\d+) steps, (\d+) tokens", entry["recipe"])
    return lengths.group() if lengths else COMMON


def base_name(name: str, entry: Entry) -> str:
    """Return the base of an encoder."""
    return PACKAGED_BASE if name in SAMPLES else name.rsplit(", ", 1)[1]


def set_name(name: str, entry: Entry) -> str:
    """Return the data set of an encoder, regardless of sample and base."""
    return name.split(",", 1)[0]


def regression_inputs(entries: Sequence[Entry]) -> np.ndarray:
    """Return the regression's inputs: measures in standard errors; for static models, similarities in points."""
    if all(SIMILARITIES in entry["candidates"] for entry in entries):
        return np.array([[100 * entry["candidates"][SIMILARITIES]["difference"]] for entry in entries])
    ends = ("difference", "low", "high")
    rows = [[entry["candidates"][name] for name in MEASURES] for entry in entries]
    return np.array([[in_errors(*(measure[end] for end in ends)) for measure in row] for row in rows])


def regression(entries: Sequence[Entry]) -> Pipeline:
    """Fit the package's verdict: a logistic regression from the measures to "better".

    For static models it has no intercept: most training runs help, but one that changes nothing must not count as
    better.
    """
    rows, is_better = regression_inputs(entries), np.array([label_outcome(entry) == 1 for entry in entries])
    if rows.shape[1] == 1:
        return make_pipeline(LogisticRegression(fit_intercept=False)).fit(rows, is_better)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, is_better)


def coefficients(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the regression's intercept and weights for the inputs of :func:`regression_inputs`."""
    steps = [step for _, step in regression(entries).steps]
    weights, intercept = steps[-1].coef_[0], float(steps[-1].intercept_[0])
    if len(steps) > 1:
        weights = weights / steps[0].scale_
        intercept -= float(weights @ steps[0].mean_)
    return {"intercept": round(intercept, 4), "weights": [round(weight, 4) for weight in weights.tolist()]}


@dataclass(frozen=True)
class Judgement:
    """The prediction for an encoder by a regression fitted without the encoder's part.

    Attributes:
        part: The part left out, such as a set or a family of recipes.
        entry: The encoder.
        probability: Predicted probability that the encoder is better than the base.
    """

    part: str
    entry: Entry
    probability: float

    @property
    def says_helped(self) -> bool:
        """Whether the verdict is "helped"."""
        return self.probability >= LIKELY


def left_out(judged: Judged, part: Callable[[str, Entry], str]) -> list[Judgement]:
    """Judge each encoder with the package's regression, fitted on all other parts."""
    parts: dict[str, list[Entry]] = {}
    for name, entry in trained_encoders(judged):
        parts.setdefault(part(name, entry), []).append(entry)
    judgements: list[Judgement] = []
    for held_out, tested in parts.items():
        fitted = [entry for name, entries in parts.items() if name != held_out for entry in entries]
        if 2 * len(fitted) >= len(tested) and len({label_outcome(entry) == 1 for entry in fitted}) == 2:
            probabilities = regression(fitted).predict_proba(regression_inputs(tested))[:, 1].tolist()
            judgements += map(Judgement, repeat(held_out), tested, probabilities)
    return judgements


def count_outcomes(entries: Iterable[Entry], wider: Mapping[str, float] | None = None) -> dict[str, int]:
    """Count encoders by outcome."""
    outcomes = Counter(label_outcome(entry, wider) for entry in entries)
    return {"better": outcomes[1], "unclear": outcomes[0], "worse": outcomes[-1]}


def calibration(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Count encoders by predicted probability and outcome."""
    bins = []
    for low, high in pairwise(BINS):
        in_bin = [judgement for judgement in judgements if is_between(judgement.probability, low, high)]
        mean = round(float(np.mean([judgement.probability for judgement in in_bin] or [0])), 3)
        bins.append({"from": low, "to": high, "mean": mean, **count_outcomes(judgement.entry for judgement in in_bin)})
    return bins
