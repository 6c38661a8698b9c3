"""Judge the encoders of a set by labels and by measures that see only documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bank.make import BASE, ORDER, Bank, HeldOutVectors, encoder_file_name
from benchmarks.bank.outcomes import outcomes, word_outcomes
from benchmarks.bank.sets import SAMPLES
from simlte_st.evaluation import bootstrap_interval, split_half_retrieval, structure_agreement
from simlte_st.evaluation.halves import Neighbours, neighbours_by_words, similarity_agreement, words_agreement
from simlte_st.files import read_json, write_json

MEASURES = STRUCTURE, WORDS, RETRIEVAL = "same neighbours, crossed", "neighbours by words", "split-half retrieval"
"""The measures behind the verdict. None of twelve others agreed with the labels more often."""

SIMILARITIES = "same similarities"
"""The measure behind the verdict on static models."""


def judge(bank: Bank, name: str) -> list[dict[str, Any]]:
    """Judge all encoders of a set, reusing results from the work folder."""
    data = bank.sets[name]
    near = neighbours_by_words(*bank.halves(data))
    found: list[dict[str, Any]] = []
    base: dict[str, Any] = {}
    for recipe, seed, stage, vectors in bank.entries(name):
        path = bank.work.folder / "judged" / name / f"{encoder_file_name(recipe, seed, stage)}.json"
        if not path.exists():
            measured = measures(vectors, near, bank.is_static(name))
            write_json(path, {"outcomes": outcomes(data, vectors.whole), "candidates": measured})
        values = read_json(path)
        base = values if recipe == BASE else base
        found.append(
            {"recipe": recipe, "seed": seed, "stage": stage}
            | {
                part: {key: _compare_with_base(value, base[part][key]) for key, value in values[part].items()}
                for part in values
            }
        )
    return found


def measures(vectors: HeldOutVectors, near: Neighbours, static: bool) -> dict[str, list[float]]:
    """Measure an encoder on the halves of held-out documents: one value per document."""
    first, second = vectors.first, vectors.second
    found = {
        STRUCTURE: structure_agreement(first, second).scores,
        WORDS: words_agreement(first, second, near).scores,
        RETRIEVAL: 1.0 / split_half_retrieval(first, second).ranks,
    }
    if static:
        found[SIMILARITIES] = similarity_agreement(first, second).scores
    return {name: np.asarray(values).tolist() for name, values in found.items()}


def judge_words(bank: Bank, name: str) -> dict[str, float]:
    """Return the mean of each outcome of TF-IDF on a set."""
    path = bank.work.folder / "judged" / name / "tfidf.json"
    if not path.exists():
        write_json(path, word_outcomes(bank.sets[name]))
    return {outcome: float(np.mean(values)) for outcome, values in read_json(path).items()}


def merge_earlier(
    judged: Mapping[str, Sequence[dict[str, Any]]], earlier: Mapping[str, Sequence[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Add the encoders of an earlier page whose recipe and seed are missing here."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in dict.fromkeys([*judged, *earlier]):
        entries, old = list(judged.get(name, ())), earlier.get(name, ())
        if entries and old and not np.allclose(_values(entries[0]), _values(old[0]), rtol=0, atol=1e-5):
            raise SystemExit(f"{name}: the base's numbers differ between the earlier page and this work folder.")
        made = {(entry["recipe"], entry["seed"]) for entry in entries}
        entries += [entry for entry in old if (entry["recipe"], entry["seed"]) not in made]
        found[name] = sorted(entries, key=lambda entry: (ORDER.index(entry["recipe"]), entry["seed"]))
    order = {name: place for place, name in enumerate(SAMPLES)}
    return {name: found[name] for name in sorted(found, key=lambda name: (order.get(name, len(order)), name))}


def _values(entry: Mapping[str, Any]) -> list[float]:
    """Return an encoder's outcomes and measures."""
    return [entry["outcomes"][name]["value"] for name in sorted(entry["outcomes"])] + [
        entry["candidates"][name]["value"] for name in MEASURES
    ]


def _compare_with_base(value: Any, base: Any) -> dict[str, Any]:
    """Return the mean, and the mean difference from the base with its interval."""
    difference = np.asarray(value) - np.asarray(base)
    mean = float(np.mean(difference))
    interval = bootstrap_interval(difference) if difference.any() else (mean, mean)
    return {"value": float(np.mean(value)), "difference": mean, "low": interval[0], "high": interval[1]}
