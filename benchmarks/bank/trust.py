"""The package's verdict: a regression over all encoders, tested on those held out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
"""Training length and view length of recipes whose names do not state them."""

Entry = Mapping[str, Any]
Judged = Mapping[str, Sequence[Entry]]
"""Results of :func:`~benchmarks.bank.judge.judge`, by set."""


def select_kind(judged: Judged, static: bool) -> dict[str, Sequence[Entry]]:
    """Return the sets with a static base, or all other sets."""
    kinds = {name: any(entry["recipe"] in STATIC_RECIPES for entry in entries) for name, entries in judged.items()}
    return {name: entries for name, entries in judged.items() if kinds[name] is static}


def label_outcome(entry: Entry, wider: Mapping[str, float] | None = None) -> int:
    """Return 1 if labels call some outcome clearly better and none clearly worse, -1 for the reverse, 0 otherwise."""
    signs = [_sign(value, (wider or {}).get(name, 1.0)) for name, value in entry["outcomes"].items()]
    return 0 if min(signs) < 0 < max(signs) else min(signs) or max(signs)


def _sign(value: Mapping[str, float], wider: float) -> int:
    low, high = (value["difference"] + wider * (value[end] - value["difference"]) for end in ("low", "high"))
    return int(low > 0) - int(high < 0)


def trained_encoders(judged: Judged) -> Iterator[tuple[str, Entry]]:
    """Yield all encoders except the base, each with its set."""
    for name, entries in judged.items():
        yield from ((name, entry) for entry in entries if entry["recipe"] != BASE)


def recipe_family(name: str, entry: Entry) -> str:
    """Return the family of an encoder's recipe, such as "docsplit"."""
    return re.split(r"[-,+]", entry["recipe"])[0].strip()


def recipe_name(name: str, entry: Entry) -> str:
    """Return the recipe of an encoder."""
    return str(entry["recipe"])


def training_length(name: str, entry: Entry) -> str:
    """Return the training length and view length of an encoder."""
    named = re.search(r"(\d+) steps, (\d+) tokens", entry["recipe"])
    return named.group() if named else COMMON


def base_name(name: str, entry: Entry) -> str:
    """Return the base of an encoder."""
    return PACKAGED_BASE if name in SAMPLES else name.rsplit(", ", 1)[1]


def set_name(name: str, entry: Entry) -> str:
    """Return the data set of an encoder, regardless of sample and base."""
    return name.split(",", 1)[0]


def regression_inputs(every: Sequence[Entry]) -> np.ndarray:
    """Return the regression's inputs: measures in standard errors, or similarities in points for static models."""
    if all(SIMILARITIES in entry["candidates"] for entry in every):
        return np.array([[100 * entry["candidates"][SIMILARITIES]["difference"]] for entry in every])
    values = [[entry["candidates"][name] for name in MEASURES] for entry in every]
    return np.array([[in_errors(each["difference"], each["low"], each["high"]) for each in row] for row in values])


def regression(every: Sequence[Entry]) -> Pipeline:
    """Fit the package's verdict: a logistic regression that predicts "better" from the measures.

    For static models it has no intercept: most training runs help them, but one that changes nothing must not count as
    better.
    """
    rows, says = regression_inputs(every), np.array([label_outcome(entry) == 1 for entry in every])
    if rows.shape[1] == 1:
        return make_pipeline(LogisticRegression(fit_intercept=False)).fit(rows, says)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, says)


def coefficients(every: Sequence[Entry]) -> dict[str, Any]:
    """Return the regression's intercept and weights, for the inputs of :func:`regression_inputs`."""
    steps = [step for _, step in regression(every).steps]
    weights, intercept = steps[-1].coef_[0], float(steps[-1].intercept_[0])
    if len(steps) > 1:
        weights = weights / steps[0].scale_
        intercept -= float(weights @ steps[0].mean_)
    return {"intercept": round(intercept, 4), "weights": [round(weight, 4) for weight in weights.tolist()]}


@dataclass(frozen=True)
class Judgement:
    """The prediction of a regression that has not seen an encoder's part.

    Attributes:
        part: The part left out, such as a set or a family of recipes.
        entry: The encoder.
        probability: Predicted probability that labels call it better than the base.
    """

    part: str
    entry: Entry
    probability: float

    @property
    def says_helped(self) -> bool:
        """Whether the verdict is "helped"."""
        return self.probability >= LIKELY


def left_out(judged: Judged, part: Callable[[str, Entry], str]) -> list[Judgement]:
    """Judge each encoder with the package's regression, fitted on the encoders of all other parts."""
    every = [(part(name, entry), entry) for name, entry in trained_encoders(judged)]
    made: list[Judgement] = []
    for left in dict.fromkeys(name for name, _ in every):
        others = [entry for name, entry in every if name != left]
        here = [entry for name, entry in every if name == left]
        if 2 * len(others) >= len(here) and len({label_outcome(entry) == 1 for entry in others}) == 2:
            chances = regression(others).predict_proba(regression_inputs(here))[:, 1]
            made += [Judgement(left, entry, float(chance)) for entry, chance in zip(here, chances, strict=True)]
    return made


def count_outcomes(entries: Iterable[Entry], wider: Mapping[str, float] | None = None) -> dict[str, int]:
    """Count encoders by outcome."""
    says = Counter(label_outcome(entry, wider) for entry in entries)
    return {"better": says[1], "unclear": says[0], "worse": says[-1]}


def count_longer(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Count helped encoders with longer training or longer views, by outcome."""
    helped = [each.entry for each in judgements if each.says_helped and training_length("", each.entry) != COMMON]
    return {"steps": STEPS, "tokens": TOKENS, **count_outcomes(helped)}


def calibration(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Count encoders by outcome and predicted probability."""
    bins = []
    for low, high in pairwise(BINS):
        inside = [each for each in judgements if is_between(each.probability, low, high)]
        mean = round(float(np.mean([each.probability for each in inside] or [0])), 3)
        bins.append({"from": low, "to": high, "mean": mean, **count_outcomes(each.entry for each in inside)})
    return bins
