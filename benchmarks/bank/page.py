"""Pages of the bank (verdict and recipes), and the record that the package's verdict reads.

    python -m benchmarks.bank.page

Rebuilds the pages from ``results/verdict.json`` and ``results/recipe.json``, and the package's record of its verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import pages
from benchmarks.bank import documents, trust
from benchmarks.bank.judge import STRUCTURE
from benchmarks.bank.make import BASE
from benchmarks.bank.outcomes import CITES, FEW, FULL
from benchmarks.bank.sets import FILES
from benchmarks.bank.trust import Judged, Judgement, left_out, select_kind, set_name, trained_encoders
from benchmarks.records import RESULTS, mean_deviation
from simlte_st.evaluation.verdict import LIKELY, RECORD_FILE
from simlte_st.files import read_json, write_json

PRESET = "docsplit, temperature 0.5"
"""The recipe of the preset ``docsplit-tuned``."""

KEPT = f"{PRESET}, or the base by the verdict"
"""The result of ``simlte train`` with the preset: the base unless the verdict is "helped"."""

SAYS = {-1: "hurt", 0: "unclear", 1: "helped"}
STAGES = {"": "", "third": ", a third", "half way": ", half way back"}
PARTS = {
    "data set left out": set_name,
    "family of recipes left out": trust.recipe_family,
    "training left out": trust.training_length,
    "base left out": trust.base_name,
}
"""The parts to leave out, by title. Static models have fewer recipes."""

STATIC_PARTS = {"data set left out": set_name, "recipe left out": trust.recipe_name, "base left out": trust.base_name}

Words = Mapping[str, Mapping[str, float]]
"""Results of :func:`~benchmarks.bank.judge.judge_words`, by set."""

Chances = Mapping[int, float]
"""Each encoder's probability with its data set left out, by the ``id`` of its entry."""


def write_pages(judged: Judged, words: Words, settings: Mapping[str, Any], folder: Path) -> None:
    """Write ``verdict.md`` and ``recipe.md``."""
    pages.write_page("verdict", verdict_page(judged, settings), folder, verbose=False)
    if encoders := select_kind(judged, False):
        pages.write_page("recipe", recipe_page(encoders, words, settings), folder, verbose=False)


def record(judged: Judged) -> dict[str, Any]:
    """Return the regression behind the package's verdict, and its calibration on unseen data sets."""
    encoders, static = (select_kind(judged, kind) for kind in (False, True))
    return {
        "command": "python -m benchmarks.bank.page",
        **_describe_regression(encoders, "structure", "words", "split_half"),
        "static": _describe_regression(static, "similarities"),
    }


def _describe_regression(judged: Judged, *measures: str) -> dict[str, Any]:
    entries = [entry for _, entry in trained_encoders(judged)]
    if not entries:
        return {}
    return {
        "sets": len({set_name(name, entry) for name, entry in trained_encoders(judged)}),
        "encoders": len(entries),
        "measures": list(measures),
        "regression": trust.coefficients(entries),
        "calibration": trust.calibration(left_out(judged, set_name)),
    }


def probabilities(judged: Judged) -> Chances:
    """Predict each encoder's probability with its data set left out."""
    return {id(judgement.entry): judgement.probability for judgement in left_out(judged, set_name)}


def verdict_page(judged: Judged, settings: Mapping[str, Any]) -> str:
    """Return the page of the verdict."""
    kinds = {"encoders": (select_kind(judged, False), PARTS), "static": (select_kind(judged, True), STATIC_PARTS)}
    sections, sets = {}, {}
    for kind, (judged_kind, parts) in kinds.items():
        entries, chances = [entry for _, entry in trained_encoders(judged_kind)], probabilities(judged_kind)
        sets |= {name: set_rows(encoders, chances) for name, encoders in judged_kind.items()}
        if len({trust.label_outcome(entry) == 1 for entry in entries}) == 2:  # the regression needs both outcomes
            judgements = {title: left_out(judged_kind, part) for title, part in parts.items()}
            sections[kind] = {
                "count": len(entries),
                "sets": len(judged_kind),
                "regression": trust.coefficients(entries),
                "tables": [left_out_cells(title, unseen) for title, unseen in judgements.items()],
                "calibration": calibration_rows(judgements["data set left out"]),
            }
    wider = documents.read_record()["wider"]
    return pages.fill("verdict.md", settings=settings, sections=sections, sets=sets, wider=wider, likely=LIKELY)


def left_out_cells(title: str, judgements: Sequence[Judgement]) -> pd.DataFrame:
    """Count the outcomes of encoders called helped, by part and in total."""
    wider, rows = documents.read_record()["wider"], {}
    for part in [*dict.fromkeys(judgement.part for judgement in judgements), None]:
        seen = [judgement for judgement in judgements if part in (None, judgement.part)]
        helped = [judgement.entry for judgement in seen if judgement.says_helped]
        better = trust.count_outcomes(judgement.entry for judgement in seen)["better"]
        rows[part or "all"] = {
            "encoders": str(len(seen)),
            "helped": " / ".join(map(str, trust.count_outcomes(helped).values())),
            "over documents": " / ".join(map(str, trust.count_outcomes(helped, wider).values())),
            "better, any verdict": f"{100 * better / max(1, len(seen)):.0f}%",
        }
    return pd.DataFrame(rows).T.rename_axis(title)


def calibration_rows(judgements: Sequence[Judgement]) -> list[dict[str, str]]:
    """Count the outcomes of encoders by predicted probability."""
    return [
        {"probability": f"{row['from']} to {row['to']}", "mean": f"{100 * row['mean']:.0f}%",
         **{outcome: str(row[outcome]) for outcome in ("better", "unclear", "worse")}}
        for row in trust.calibration(judgements)
    ]  # fmt: skip


def set_rows(entries: Sequence[trust.Entry], chances: Chances) -> list[dict[str, str]]:
    """Return the rows of a set's encoders, with the verdict's probability from a regression on other data sets."""
    rows = []
    for entry in entries:
        trained, seed = entry["recipe"] != BASE, f" ({entry['seed']})" * bool(entry["seed"])
        row = {"encoder": f"{entry['recipe']}{STAGES[entry['stage']]}{seed}"}
        for name, number in {**entry["outcomes"], STRUCTURE: entry["candidates"][STRUCTURE]}.items():
            row[name] = f"{100 * number['value']:.1f}" + f" ({100 * number['difference']:+.1f})" * trained
        row["probability"] = f"{100 * chances[id(entry)]:.0f}%" if id(entry) in chances else ""
        rows.append({**row, "labels": SAYS[trust.label_outcome(entry)] if trained else ""})
    return rows


def recipe_page(judged: Judged, words: Words, settings: Mapping[str, Any]) -> str:
    """Return the page that compares the recipes."""
    chances = probabilities(judged)
    table, sets = gains(judged, chances), [name for name in judged if name in FILES] or list(judged)
    outcomes = {}
    for outcome in (FEW, FULL, CITES):
        if names := [name for name in sets if outcome in judged[name][0]["outcomes"]]:
            references = {
                "TF-IDF": {name: words[name][outcome] for name in names},
                "base": {name: judged[name][0]["outcomes"][outcome]["value"] for name in names},
            }
            outcomes[outcome] = gain_cells(table[table["outcome"].eq(outcome) & table["set"].isin(names)], references)
    lengths = length_cells(judged, chances)
    return pages.fill("recipe.md", settings=settings, kept=KEPT, preset=PRESET, outcomes=outcomes, lengths=lengths)


def gains(judged: Judged, chances: Chances) -> pd.DataFrame:
    """Return the gain over the base of each recipe, final and half way back, by set, outcome and run."""
    table = pd.DataFrame(
        {"recipe": ", ".join(filter(None, (entry["recipe"], entry["stage"]))), "set": name, "outcome": outcome,
         "gain": value["difference"], "chance": chances.get(id(entry), 0.0)}
        for name, entry in trained_encoders(judged) if entry["stage"] != "third"
        for outcome, value in entry["outcomes"].items()
    )  # fmt: skip
    preset = table[table["recipe"] == PRESET]
    chosen = preset.assign(recipe=KEPT, gain=preset["gain"].where(preset["chance"] >= LIKELY, 0.0))
    table = pd.concat([table, chosen], ignore_index=True)
    return table.assign(run=table.groupby(["recipe", "set", "outcome"]).cumcount())


def gain_cells(table: pd.DataFrame, references: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Return the cells of an outcome: the references' values, then gains by recipe, the best first."""
    values = 100 * pd.DataFrame(references).T
    cells = values.assign(mean=values.mean(axis=1)).map("{:.1f}".format)
    names, signed = [*values], partial(mean_deviation, sign="+")
    runs_by_set = table.pivot_table("gain", ["recipe", "run"], "set", sort=False).reindex(columns=names)
    means = runs_by_set.groupby(level="recipe", sort=False).mean().mean(axis=1)
    rows = {}
    for recipe in means.sort_values(ascending=False, kind="stable").index:
        seeds = runs_by_set.loc[recipe]
        rows[recipe] = {name: signed(seeds[name].dropna()) for name in names if seeds[name].notna().any()}
        if len(rows[recipe]) == len(names):
            # One value per seed if all sets have equally many seeds.
            rows[recipe]["mean"] = signed(seeds.mean(axis=1) if seeds.notna().all(axis=None) else [means[recipe]])
    cells = pd.concat([cells, pd.DataFrame(rows).T]).rename_axis("recipe")
    return cells if len(names) > 1 else cells.drop(columns="mean")


def length_cells(judged: Judged, chances: Chances) -> list[dict[str, str]]:
    """Return the cells of the preset's gains with other steps, view lengths, corpora and bases."""
    rows = []
    for name, entries in judged.items():
        trainings = {
            trust.training_length(name, entry): entry
            for entry in entries
            if (entry["recipe"] == PRESET or entry["recipe"].endswith(" tokens")) and not entry["seed"]
        }
        for outcome, base in entries[0]["outcomes"].items() if trainings else ():
            row = {"set": name, "outcome": outcome, "base": f"{100 * base['value']:.1f}"}
            for training, entry in trainings.items():
                chance = f" ({100 * chances[id(entry)]:.0f}%)" if id(entry) in chances else ""
                row[training] = f"{100 * entry['outcomes'][outcome]['difference']:+.1f}{chance}"
            rows.append(row)
    return rows


if __name__ == "__main__":
    verdict, recipes = (read_json(RESULTS / f"{name}.json") for name in ("verdict", "recipe"))
    write_pages(verdict["judged"], recipes["words"], recipes, RESULTS)
    write_json(RECORD_FILE, record(verdict["judged"]))
