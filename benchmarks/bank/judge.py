"""Judge the encoders of a set by labels and by label-free measures."""

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
"""The measures behind the verdict. None of twelve alternatives agreed with the labels more often."""

SIMILARITIES = "same similarities"
"""The measure behind the verdict for static models."""


def judge(bank: Bank, name: str) -> list[dict[str, Any]]:
    """Judge all encoders of a set, reusing results in the work folder."""
    data = bank.sets[name]
    near = neighbours_by_words(*bank.halves(data))
    judged: list[dict[str, Any]] = []
    base: dict[str, Any] = {}
    for recipe, seed, stage, vectors in bank.entries(name):
        path = bank.work.folder / "judged" / name / f"{encoder_file_name(recipe, seed, stage)}.json"
        if not path.exists():
            candidates = measures(vectors, near, bank.is_static(name))
            write_json(path, {"outcomes": outcomes(data, vectors.whole), "candidates": candidates})
        values = read_json(path)
        base = values if recipe == BASE else base
        compared = {
            part: {key: _compare_with_base(numbers, base[part][key]) for key, numbers in by_name.items()}
            for part, by_name in values.items()
        }
        judged.append({"recipe": recipe, "seed": seed, "stage": stage, **compared})
    return judged


def measures(vectors: HeldOutVectors, near: Neighbours, static: bool) -> dict[str, list[float]]:
    """Measure an encoder on the halves of held-out documents, with one value per document."""
    first, second = vectors.first, vectors.second
    scores = {
        STRUCTURE: structure_agreement(first, second).scores,
        WORDS: words_agreement(first, second, near).scores,
        RETRIEVAL: 1.0 / split_half_retrieval(first, second).ranks,
    }
    if static:
        scores[SIMILARITIES] = similarity_agreement(first, second).scores
    return {name: np.asarray(values).tolist() for name, values in scores.items()}


def judge_words(bank: Bank, name: str) -> dict[str, float]:
    """Return the mean of each outcome with TF-IDF on a set."""
    path = bank.work.folder / "judged" / name / "tfidf.json"
    if not path.exists():
        write_json(path, word_outcomes(bank.sets[name]))
    return {outcome: float(np.mean(values)) for outcome, values in read_json(path).items()}


def merge_earlier(
    judged: Mapping[str, Sequence[dict[str, Any]]], earlier: Mapping[str, Sequence[dict[str, Any]]]
) -> dict[str, list[dict[str, Any]]]:
    """Add encoders of an earlier page if their recipe and seed are missing."""
    merged: dict[str, list[dict[str, Any]]] = {}
    for name in dict.fromkeys([*judged, *earlier]):
        entries, previous = list(judged.get(name, ())), earlier.get(name, ())
        if entries and previous and not np.allclose(_values(entries[0]), _values(previous[0]), rtol=0, atol=1e-5):
            raise SystemExit(f"{name}: the base has different numbers on the earlier page and in this work folder.")
        pairs = {(entry["recipe"], entry["seed"]) for entry in entries}
        entries += [entry for entry in previous if (entry["recipe"], entry["seed"]) not in pairs]
        merged[name] = sorted(entries, key=lambda entry: (ORDER.index(entry["recipe"]), entry["seed"]))
    order = {name: position for position, name in enumerate(SAMPLES)}
    return {name: merged[name] for name in sorted(merged, key=lambda name: (order.get(name, len(order)), name))}


def _values(entry: Mapping[str, Any]) -> list[float]:
    """Return the mean outcomes and measures of an encoder."""
    labelled, candidates = entry["outcomes"], entry["candidates"]
    return [labelled[name]["value"] for name in sorted(labelled)] + [candidates[name]["value"] for name in MEASURES]


def _compare_with_base(values: Any, base_values: Any) -> dict[str, Any]:
    """Return the mean, and the mean difference from the base with its bootstrap interval."""
    difference = np.asarray(values) - np.asarray(base_values)
    mean = float(np.mean(difference))
    interval = bootstrap_interval(difference) if difference.any() else (mean, mean)
    return {"value": float(np.mean(values)), "difference": mean, "low": interval[0], "high": interval[1]}
