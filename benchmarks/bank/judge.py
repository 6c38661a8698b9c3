"""Judging the encoders of a set: what labels say, what each candidate for a verdict says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bank.candidates import CANDIDATES, CLUSTERED, SIMILARITIES, Texts, similarities
from benchmarks.bank.make import BASE, ORDER, Bank, file_name
from benchmarks.bank.outcomes import outcomes, outcomes_of_words
from benchmarks.bank.sets import SAMPLES
from simlte_st.evaluation import bootstrap_interval
from simlte_st.files import read_json, write_json


def judge(bank: Bank, name: str) -> list[dict[str, Any]]:
    """Judge all encoders of a set; what was judged before is taken from the work folder."""
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
            if bank.is_static(name):
                values["candidates"][SIMILARITIES] = similarities(vectors).tolist()
            write_json(path, values)
        if recipe == BASE:
            base = values
        found.append(
            {"recipe": recipe, "seed": seed, "stage": stage}
            | {part: {key: _against(value, base[part][key]) for key, value in values[part].items()} for part in values}
        )
    return found


def judge_words(bank: Bank, name: str) -> dict[str, float]:
    """Judge TF-IDF on a set: the mean of each outcome."""
    path = bank.work.folder / "judged" / name / "tfidf.json"
    if not path.exists():
        write_json(path, outcomes_of_words(bank.sets[name]))
    return {outcome: float(np.mean(values)) for outcome, values in read_json(path).items()}


def with_earlier(
    judged: Mapping[str, Sequence[dict[str, Any]]], earlier: Mapping[str, Sequence[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Add the encoders of an earlier page whose recipe and seed are not here."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in [*judged, *(name for name in earlier if name not in judged)]:
        entries, old = list(judged.get(name, ())), earlier.get(name, ())
        if entries and old and not _alike(_values(entries[0]), _values(old[0])):
            raise SystemExit(f"{name}: the base's numbers of the earlier page are not those of this work folder.")
        made = {(entry["recipe"], entry["seed"]) for entry in entries}
        entries += [entry for entry in old if (entry["recipe"], entry["seed"]) not in made]
        found[name] = sorted(entries, key=lambda entry: (ORDER.index(entry["recipe"]), entry["seed"]))
    order = {name: place for place, name in enumerate(SAMPLES)}
    return {name: found[name] for name in sorted(found, key=lambda name: (order.get(name, len(order)), name))}


def _values(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of an encoder that are the same on every machine."""
    values = {key: value["value"] for part in ("outcomes", "candidates") for key, value in entry[part].items()}
    return {key: value for key, value in values.items() if key not in CLUSTERED}


def _alike(ours: Mapping[str, float], theirs: Mapping[str, float]) -> bool:
    """Return whether numbers are the same to the five places that a page keeps."""
    return ours.keys() == theirs.keys() and all(abs(value - theirs[key]) < 1e-5 for key, value in ours.items())


def _against(value: Any, base: Any) -> dict[str, Any]:
    """Return the mean of values, and of their differences to the base's, with its interval where there are several."""
    difference = np.asarray(value) - np.asarray(base)
    mean = float(np.mean(difference))
    interval = bootstrap_interval(difference) if difference.ndim and difference.any() else (mean, mean)
    return {"value": float(np.mean(value)), "difference": mean, "low": interval[0], "high": interval[1]}
