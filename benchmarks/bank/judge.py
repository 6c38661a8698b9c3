"""Judging the encoders of a set: what labels say, what each candidate for a verdict says."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.bank.candidates import CANDIDATES, Texts
from benchmarks.bank.make import BASE, Bank, file_name
from benchmarks.bank.outcomes import outcomes
from simlte_st.evaluation import bootstrap_interval
from simlte_st.files import read_json, write_json


def judge(bank: Bank, name: str) -> list[dict[str, Any]]:
    """Judge all encoders of a set; what was judged before is taken from the work folder.

    Returns:
        For each encoder, the base first: ``recipe``, ``seed``, ``stage``, the mean of each outcome and the value of
        each candidate, each with its paired difference to the base and the ends of that difference's 95% interval (a
        candidate without a value a document has none: both ends are the difference).
    """
    data = bank.sets[name]
    texts = Texts(*bank.halves(data))
    found: list[dict[str, Any]] = []
    base: dict[str, Any] = {}
    for recipe, seed, stage, vectors in bank.entries(name):
        path = bank.work.folder / "judged" / name / f"{file_name(recipe, seed, stage)}.json"
        if path.exists():
            values = read_json(path)
        else:
            values = {
                "outcomes": outcomes(data, vectors.whole),
                "candidates": {
                    key: np.asarray(measure(vectors, texts)).tolist() for key, measure in CANDIDATES.items()
                },
            }
            write_json(path, values)
        if recipe == BASE:
            base = values
        found.append(
            {"recipe": recipe, "seed": seed, "stage": stage}
            | {part: {key: _against(value, base[part][key]) for key, value in values[part].items()} for part in values}
        )
    return found


def _against(value: Any, base: Any) -> dict[str, Any]:
    """Give the mean of values, and of their differences to the base's, with its interval where there are several."""
    difference = np.asarray(value) - np.asarray(base)
    mean = float(np.mean(difference))
    interval = bootstrap_interval(difference) if difference.ndim and difference.any() else (mean, mean)
    return {"value": float(np.mean(value)), "difference": mean, "low": interval[0], "high": interval[1]}
