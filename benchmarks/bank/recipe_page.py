"""The page of the recipes: which one helps, and what the preset gains where its training or the pile is another one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bank.choice import PRESET, choices_section
from benchmarks.bank.make import BASE
from benchmarks.bank.outcomes import CITES, FEW, FULL
from benchmarks.bank.sets import FILES
from benchmarks.bank.trust import Chances, Judged, runs
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table
from simlte_st.evaluation.verdict import LIKELY

KEPT = f"{PRESET}, or the base by the verdict"
"""What ``simlte train`` makes of the preset: the base, where the verdict is not "helped"."""

OUTCOMES = (FEW, FULL, CITES)

Words = Mapping[str, Mapping[str, float]]
"""What :func:`~benchmarks.bank.judge.judge_words` gave, by set."""


def gains(judged: Judged, chances: Chances) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return each recipe's gain over the base at its end and half way back, of each seed, by outcome and set."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name, entries in judged.items():
        for entry in entries:
            if entry["recipe"] != BASE and entry["stage"] != "third":
                name_of = f"{entry['recipe']}, {entry['stage']}" if entry["stage"] else entry["recipe"]
                for outcome, value in entry["outcomes"].items():
                    found.setdefault(name_of, {}).setdefault(outcome, {}).setdefault(name, []).append(
                        value["difference"]
                    )
                    if name_of == PRESET:
                        kept = value["difference"] if chances.get(id(entry), 0.0) >= LIKELY else 0.0
                        found.setdefault(KEPT, {}).setdefault(outcome, {}).setdefault(name, []).append(kept)
    return found


def recipe_page(judged: Judged, words: Words, settings: Mapping[str, Any], chances: Chances) -> list[str]:
    """Lay out the page of the recipes."""
    where = settings["environment"]
    lines = [
        "# What helps a tuned encoder",
        "",
        f"all-MiniLM-L6-v2, {settings['steps']} steps of 32 unlabelled documents of each data set, 64 tokens a view; "
        "then documents that were not trained on, 256 tokens of each: points gained over the base's own pooling in "
        "macro-F1 with 5 labelled documents a class, with the labels of half of the documents, and in R@10 of "
        "citations. Logistic regression on vectors of length 1; TF-IDF reads all words. After ± is the standard "
        'deviation over seeds, where there are several. Recipes are in `benchmarks/bank/recipes.py`; "half way" is '
        f'half of the way back to the base. "{KEPT}": what `simlte train` gives, the base where the verdict on '
        f'these documents is not "helped", by a regression that has not seen the data set. In '
        f"{where['dtype']} (CPU: {where['cpu_bf16']}).",
        "",
    ]
    found = gains(judged, chances)
    whole = [name for name in judged if name in FILES] or list(judged)
    for outcome in OUTCOMES:
        names = [name for name in whole if outcome in judged[name][0]["outcomes"]]
        if not names:
            continue
        rows = []
        for title, values in (
            ("TF-IDF", [words[name][outcome] for name in names]),
            ("the base itself", [judged[name][0]["outcomes"][outcome]["value"] for name in names]),
        ):
            rows.append([title, *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.1f}"])
        of_recipes = {
            recipe: {name: gained for name, gained in by[outcome].items() if name in names}
            for recipe, by in found.items()
            if set(by.get(outcome, ())) & set(names)
        }
        for recipe, by in sorted(of_recipes.items(), key=lambda item: -_mean(item[1])):
            shown = [_gain(by.get(name, [])) for name in names]
            rows.append([recipe, *shown, _gain(_means(by)) if len(by) == len(names) else ""])
        header = ["recipe", *names, *(["mean"] if len(names) > 1 else [])]
        lines += [f"## {outcome}", "", markdown_table(header, [row[: len(header)] for row in rows]), ""]
    return [*lines, *lengths_section(judged, chances), *choices_section(judged, chances)]


def lengths_section(judged: Judged, chances: Chances) -> list[str]:
    """Lay out what the preset gains by other numbers of steps and lengths of views, other piles and another base."""
    columns = {PRESET: "30 steps, 64 tokens"}
    for _, entry in runs(judged):
        if entry["recipe"].startswith(f"{PRESET}, ") and entry["recipe"].endswith(" tokens"):
            columns[entry["recipe"]] = entry["recipe"].removeprefix(f"{PRESET}, ")
    if len(columns) == 1:
        return []
    rows = []
    for name, entries in judged.items():
        for outcome in entries[0]["outcomes"]:
            made = {entry["recipe"]: entry for entry in entries if entry["seed"] == 0 and not entry["stage"]}
            cells = []
            for recipe in columns:
                shown = ""
                if recipe in made:
                    gained = 100 * made[recipe]["outcomes"][outcome]["difference"]
                    chance = chances.get(id(made[recipe]))
                    shown = f"{gained:+.1f}" + ("" if chance is None else f" ({100 * chance:.0f}%)")
                cells.append(shown)
            if any(cells):
                rows.append([name, outcome, f"{100 * entries[0]['outcomes'][outcome]['value']:.1f}", *cells])
    return [
        "## Other lengths of training, other piles, another base",
        "",
        f'What "{PRESET}" (the preset of `simlte train` for tuned encoders) gains over the base, of one seed, and the '
        'probability that the verdict gives it, by a regression that has not seen the data set. "skewed": two thirds '
        'of the documents are of one class; "words": the first words of each document; "documents": so many to train '
        "on; a model: that base.",
        "",
        markdown_table(["set", "outcome", "base", *columns.values()], rows),
        "",
    ]


def _gain(seeds: Sequence[float]) -> str:
    """Write a gain in points, with its deviation over seeds."""
    return mean_deviation(seeds, sign="+") if len(seeds) else ""


def _mean(by_set: Mapping[str, Sequence[float]]) -> float:
    return float(np.mean([np.mean(seeds) for seeds in by_set.values()]))


def _means(by_set: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the mean over sets of each seed, where all sets have the same; else the one mean of all."""
    counts = {len(seeds) for seeds in by_set.values()}
    return np.mean(list(by_set.values()), axis=0).tolist() if len(counts) == 1 else [_mean(by_set)]
