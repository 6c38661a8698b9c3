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
"""Ends of the bins of probabilities by which labels are counted."""

STEPS, TOKENS = 30, 64
COMMON = f"{STEPS} steps, {TOKENS} tokens"
"""How long recipes train, and on views of how many tokens, where their names say nothing else."""

Entry = Mapping[str, Any]
Judged = Mapping[str, Sequence[Entry]]
"""What :func:`~benchmarks.bank.judge.judge` gave, by set."""


def of_kind(judged: Judged, static: bool) -> dict[str, Sequence[Entry]]:
    """Return the sets whose base is a static model, or the others."""
    kinds = {name: any(entry["recipe"] in STATIC_RECIPES for entry in entries) for name, entries in judged.items()}
    return {name: entries for name, entries in judged.items() if kinds[name] is static}


def happened(entry: Entry, wider: Mapping[str, float] | None = None) -> int:
    """What labels say: 1 where an outcome is clearly better than the base's and none clearly worse; -1 the reverse."""
    signs = [_sign(value, (wider or {}).get(name, 1.0)) for name, value in entry["outcomes"].items()]
    return 0 if min(signs) < 0 < max(signs) else min(signs) or max(signs)


def _sign(value: Mapping[str, float], wider: float) -> int:
    low, high = (value["difference"] + wider * (value[end] - value["difference"]) for end in ("low", "high"))
    return int(low > 0) - int(high < 0)


def runs(judged: Judged) -> Iterator[tuple[str, Entry]]:
    """Return all encoders but the base, each with its set."""
    for name, entries in judged.items():
        yield from ((name, entry) for entry in entries if entry["recipe"] != BASE)


def family(name: str, entry: Entry) -> str:
    """Name the family of an encoder's recipe, such as "docsplit" for all that train with DocSplit's views alone."""
    return re.split(r"[-,+]", entry["recipe"])[0].strip()


def recipe_of(name: str, entry: Entry) -> str:
    """Name the recipe of an encoder."""
    return str(entry["recipe"])


def training_of(name: str, entry: Entry) -> str:
    """Name how long an encoder was trained, and on how long views, where it is not the common 30 steps of 64 tokens."""
    named = re.search(r"(\d+) steps, (\d+) tokens", entry["recipe"])
    return named.group() if named else COMMON


def base_of(name: str, entry: Entry) -> str:
    """Name the base of an encoder."""
    return PACKAGED_BASE if name in SAMPLES else name.rsplit(", ", 1)[1]


def of_set(name: str, entry: Entry) -> str:
    """Name the data set of an encoder, whatever the sample of it and the base."""
    return name.split(",", 1)[0]


def rows_of(every: Sequence[Entry]) -> np.ndarray:
    """Return what the regression sees of encoders: measures in their standard errors, or points of static models."""
    if all(SIMILARITIES in entry["candidates"] for entry in every):
        return np.array([[100 * entry["candidates"][SIMILARITIES]["difference"]] for entry in every])
    values = [[entry["candidates"][name] for name in MEASURES] for entry in every]
    return np.array([[in_errors(each["difference"], each["low"], each["high"]) for each in row] for row in values])


def regression(every: Sequence[Entry]) -> Pipeline:
    """Fit the package's verdict: a logistic regression of the measures, each in its standard errors, on "better".

    Of static models it is one of their similarities in points, without an intercept: most trainings help them, and one
    that changes nothing shall not be called better for that.
    """
    rows, says = rows_of(every), np.array([happened(entry) == 1 for entry in every])
    if rows.shape[1] == 1:
        return make_pipeline(LogisticRegression(fit_intercept=False)).fit(rows, says)
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, says)


def coefficients(every: Sequence[Entry]) -> dict[str, Any]:
    """Return that regression as an intercept and weights: of errors, or of points of static models."""
    steps = [step for _, step in regression(every).steps]
    weights, intercept = steps[-1].coef_[0], float(steps[-1].intercept_[0])
    if len(steps) > 1:
        weights = weights / steps[0].scale_
        intercept -= float(weights @ steps[0].mean_)
    return {"intercept": round(intercept, 4), "weights": [round(weight, 4) for weight in weights.tolist()]}


@dataclass(frozen=True)
class Judgement:
    """What a regression that has not seen an encoder's part says of it.

    Attributes:
        part: That part: a set, or a family of recipes.
        entry: The encoder.
        probability: That labels call it better than the base.
    """

    part: str
    entry: Entry
    probability: float

    @property
    def helped(self) -> bool:
        """Whether the verdict is "helped"."""
        return self.probability >= LIKELY


def left_out(judged: Judged, part: Callable[[str, Entry], str]) -> list[Judgement]:
    """Judge each encoder with the package's regression, fitted on the encoders of all other parts."""
    every = [(part(name, entry), entry) for name, entry in runs(judged)]
    made: list[Judgement] = []
    for left in dict.fromkeys(name for name, _ in every):
        others = [entry for name, entry in every if name != left]
        here = [entry for name, entry in every if name == left]
        if 2 * len(others) >= len(here) and len({happened(entry) == 1 for entry in others}) == 2:
            chances = regression(others).predict_proba(rows_of(here))[:, 1]
            made += [Judgement(left, entry, float(chance)) for entry, chance in zip(here, chances, strict=True)]
    return made


def counted(entries: Iterable[Entry], wider: Mapping[str, float] | None = None) -> dict[str, int]:
    """Count what labels say of encoders."""
    says = Counter(happened(entry, wider) for entry in entries)
    return {"better": says[1], "unclear": says[0], "worse": says[-1]}


def longer(judgements: Iterable[Judgement]) -> dict[str, int]:
    """Count what labels say of longer trainings, and of longer views, that were called helped."""
    helped = [each.entry for each in judgements if each.helped and training_of("", each.entry) != COMMON]
    return {"steps": STEPS, "tokens": TOKENS, **counted(helped)}


def calibration(judgements: Sequence[Judgement]) -> list[dict[str, Any]]:
    """Count what labels say by the probability that was given."""
    bins = []
    for low, high in pairwise(BINS):
        inside = [each for each in judgements if is_between(each.probability, low, high)]
        mean = round(float(np.mean([each.probability for each in inside] or [0])), 3)
        bins.append({"from": low, "to": high, "mean": mean, **counted(each.entry for each in inside)})
    return bins
