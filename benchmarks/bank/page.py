"""Pages of the bank (verdict and recipes), and the record that the package's verdict reads.

    python -m benchmarks.bank.page

Rebuilds the pages from ``results/verdict.json`` and ``results/recipe.json``, and the package's record of its verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.bank import documents
from benchmarks.bank.judge import MEASURES, SIMILARITIES, STRUCTURE
from benchmarks.bank.make import BASE
from benchmarks.bank.outcomes import CITES, FEW, FULL
from benchmarks.bank.sets import FILES
from benchmarks.bank.trust import (
    Entry,
    Judged,
    Judgement,
    base_of,
    calibration,
    coefficients,
    counted,
    family,
    happened,
    left_out,
    longer,
    of_kind,
    of_set,
    recipe_of,
    runs,
    training_of,
)
from benchmarks.records import RESULTS, mean_deviation
from simlte_st.evaluation.verdict import LIKELY, RECORD_FILE
from simlte_st.files import read_json, write_json

PRESET = "docsplit, temperature 0.5"
"""The recipe of the preset ``docsplit-tuned``."""

KEPT = f"{PRESET}, or the base by the verdict"
"""The result of ``simlte train`` with the preset: the base unless the verdict is "helped"."""

SAYS = {-1: "hurt", 0: "unclear", 1: "helped"}
STAGES = {"": "", "third": ", a third", "half way": ", half way back"}

Words = Mapping[str, Mapping[str, float]]
"""Results of :func:`~benchmarks.bank.judge.judge_words`, by set."""

Chances = Mapping[int, float]
"""Each encoder's probability with its data set left out, by the ``id`` of its entry."""


def write_pages(judged: Judged, words: Words, settings: Mapping[str, Any], folder: Path) -> None:
    """Write ``verdict.md`` and ``recipe.md``."""
    pages.write_page("verdict", verdict_page(judged, settings), folder, verbose=False)
    if encoders := of_kind(judged, False):
        pages.write_page("recipe", recipe_page(encoders, words, settings), folder, verbose=False)


def record(judged: Judged) -> dict[str, Any]:
    """Return the regression behind the package's verdict, and its calibration on unseen data sets."""
    encoders, static = (of_kind(judged, kind) for kind in (False, True))
    return {
        "command": "python -m benchmarks.bank.page",
        **_of_kind(encoders, "structure", "words", "split_half"),
        "longer": longer(left_out(encoders, of_set)),
        "static": _of_kind(static, "similarities"),
    }


def _of_kind(judged: Judged, *measures: str) -> dict[str, Any]:
    every = [entry for _, entry in runs(judged)]
    if not every:
        return {}
    return {
        "sets": len({of_set(name, entry) for name, entry in runs(judged)}),
        "encoders": len(every),
        "measures": list(measures),
        "regression": coefficients(every),
        "calibration": calibration(left_out(judged, of_set)),
    }


def probabilities(judged: Judged) -> Chances:
    """Predict each encoder's probability with its data set left out."""
    return {id(each.entry): each.probability for each in left_out(judged, of_set)}


def verdict_page(judged: Judged, settings: Mapping[str, Any]) -> str:
    """Return the page of the verdict."""
    where = settings["environment"]
    blocks = [
        "# How reliable the verdict is",
        "The encoders are all-MiniLM-L6-v2 with mean and with [CLS] pooling, and its adaptations by the recipes "
        f"of `recipe.md`, without labels: {settings['steps']} steps of 32 documents unless a recipe's name says "
        "otherwise, some also after a third of the steps and half way back to the base. A set named "
        "with another model uses that one as its base. The verdict sees only the halves of held-out "
        f"documents. In {where['dtype']} (CPU: {where['cpu_bf16']}).",
    ]
    for static in (False, True):
        part = of_kind(judged, static)
        every = [entry for _, entry in runs(part)]
        if len({happened(entry) == 1 for entry in every}) == 2:  # the regression needs both outcomes
            blocks += rule_section(part, static)
    for static in (False, True):
        part = of_kind(judged, static)
        chances = probabilities(part)
        for name, entries in part.items():
            blocks += [f"## {name}", set_table(entries, chances)]
    return pages.document(*blocks)


def rule_section(judged: Judged, static: bool) -> list[str]:
    """Describe the package's verdict and count how often it was right on unseen parts."""
    every = [entry for _, entry in runs(judged)]
    fitted, wider = coefficients(every), documents.record()["wider"]
    weights = fitted["weights"]
    blocks = [
        "## Static models",
        f"{len(every)} static models on {len(judged)} sets, trained by the recipes of "
"`benchmarks/bank/static.py` on views of whole documents, in float32. *static-minilm* is "
"all-MiniLM-L6-v2 distilled to 256 dimensions. Labels judge whole documents; the verdict sees "
"the same halves as above. Almost any training of a static model raises the other measures, so the "
f"verdict uses *{SIMILARITIES}* alone: how well the cosines of a document's first half to other "
"documents correlate with those of its second half, after subtracting the mean embedding. Each point "
f"adds {weights[0]} to the log-odds. There is no intercept, because most training runs help but one that "
"changes nothing must not count as helpful.",
    ]  # fmt: skip
    parts = {"data set left out": of_set, "recipe left out": recipe_of, "base left out": base_of}
    if not static:
        terms = "".join(f" {weight:+} {name}" for weight, name in zip(weights, MEASURES, strict=True))
        blocks = [
            "## The verdict of the package",
            f"A logistic regression on *{MEASURES[0]}* (structure), *{MEASURES[1]}* and *{MEASURES[2]}*, "
            "each the difference from the base in standard errors (10 at most), predicts the probability that "
            f"labels call an encoder better. The log-odds are {fitted['intercept']}{terms}; from {LIKELY} on "
            'the verdict is "helped". Both measures of neighbours count in favour of an encoder. Higher '
            "split-half retrieval counts against it, because contrastive training optimises it "
            "directly and memorising raises it too.",
            "Below, each part is judged by a regression fitted on all others; all samples of a data set, "
            "with either base, form one part. For the encoders called *helped*, the tables count better / "
            "unclear / worse by labels. *Over documents* counts with intervals that also cover other "
            f"documents of the same kind, {wider[FEW]} times as wide with few labels and {wider[FULL]} times "
            f"with all (`{documents.FILE}`). *Better, any verdict* is the share of better ones among all encoders.",
        ]
        parts = {
            "data set left out": of_set, "family of recipes left out": family, "training left out": training_of,
            "base left out": base_of,
        }  # fmt: skip
    return [
        *blocks,
        *(left_out_table(title, left_out(judged, part)) for title, part in parts.items()),
        "Calibration with each data set left out: encoders by predicted probability, and their outcomes by labels.",
        pages.table(
            {
                "probability": f"{each['from']} to {each['to']}",
                "mean": f"{100 * each['mean']:.0f}%",
                **{word: str(each[word]) for word in ("better", "unclear", "worse")},
            }
            for each in calibration(left_out(judged, of_set))
        ),
    ]


def left_out_table(title: str, judgements: Sequence[Judgement]) -> str:
    """Count the outcomes of encoders called helped, by part and in total."""
    wider, rows = documents.record()["wider"], []
    for left in [*dict.fromkeys(each.part for each in judgements), None]:
        here = [each for each in judgements if left in (None, each.part)]
        helped = [each.entry for each in here if each.helped]
        better = counted(each.entry for each in here)["better"]
        rows.append(
            {
                title: left or "all",
                "encoders": str(len(here)),
                "helped": " / ".join(map(str, counted(helped).values())),
                "over documents": " / ".join(map(str, counted(helped, wider).values())),
                "better, any verdict": f"{100 * better / max(1, len(here)):.0f}%",
            }
        )
    return pages.table(rows)


def set_table(entries: Sequence[Entry], chances: Chances) -> str:
    """Tabulate the encoders of a set, with the verdict's probability from a regression on other data sets."""

    def points(value: Mapping[str, float], base: bool) -> str:
        return f"{100 * value['value']:.1f}" + ("" if base else f" ({100 * value['difference']:+.1f})")

    rows = []
    for entry in entries:
        base, seed = entry["recipe"] == BASE, f" ({entry['seed']})" * bool(entry["seed"])
        rows.append(
            {
                "encoder": f"{entry['recipe']}{STAGES[entry['stage']]}{seed}",
                **{name: points(value, base) for name, value in entry["outcomes"].items()},
                STRUCTURE: points(entry["candidates"][STRUCTURE], base),
                "probability": f"{100 * chances[id(entry)]:.0f}%" if id(entry) in chances else "",
                "labels": "" if base else SAYS[happened(entry)],
            }
        )
    return pages.table(rows)


def recipe_page(judged: Judged, words: Words, settings: Mapping[str, Any]) -> str:
    """Return the page that compares the recipes."""
    where, chances = settings["environment"], probabilities(judged)
    found = gains(judged, chances)
    whole = [name for name in judged if name in FILES] or list(judged)
    blocks = []
    for outcome in (FEW, FULL, CITES):
        names = [name for name in whole if outcome in judged[name][0]["outcomes"]]
        values = {
            "TF-IDF": [100 * words[name][outcome] for name in names],
            "base": [100 * judged[name][0]["outcomes"][outcome]["value"] for name in names],
        }
        rows = [
            {"recipe": title, **{name: f"{each:.1f}" for name, each in zip(names, of_sets, strict=True)},
             "mean": f"{np.mean(of_sets):.1f}" if len(names) > 1 else ""}
            for title, of_sets in values.items()
        ]  # fmt: skip
        of_recipes = {recipe: {name: by[name, outcome] for name in names if (name, outcome) in by}
                      for recipe, by in found.items()}  # fmt: skip
        of_recipes = {recipe: by for recipe, by in of_recipes.items() if by}
        for recipe, by in sorted(of_recipes.items(), key=lambda item: -_mean(item[1])):
            cells = {name: mean_deviation(by[name], sign="+") if name in by else "" for name in names}
            every = len(by) == len(names) > 1
            rows.append({"recipe": recipe, **cells, "mean": mean_deviation(_means(by), sign="+") if every else ""})
        if names:
            blocks += [f"## {outcome}", pages.table(rows)]
    return pages.document(
        "# Training recipes for tuned encoders",
        f"all-MiniLM-L6-v2 is trained for {settings['steps']} steps of 32 unlabelled documents of each "
        "data set, 64 tokens per view, and evaluated on 256 tokens of unseen documents. Gains over the "
        "base's own pooling in points: macro-F1 with 5 labelled documents per class, with the labels of "
        "half of the documents, and R@10 of citations. The probe is a logistic regression on normalised "
        "vectors; TF-IDF reads all words. ± gives the standard deviation over seeds, if there are several. "
        f'Recipes are in `benchmarks/bank/recipes.py`; "half way" averages a model with its base. "{KEPT}" '
        "is the result of `simlte train`, which keeps the base unless the verdict on these documents is "
        f'"helped", by a regression that has not seen the data set. In {where["dtype"]} (CPU: '
        f"{where['cpu_bf16']}).",
        *blocks,
        "## Other training lengths, corpora and bases",
        f'Gain of "{PRESET}" (the preset of `simlte train` for tuned encoders) over the base with one seed, '
        "and in parentheses the verdict's probability, by a regression that has not seen the data set. "
        'In a set\'s name, "skewed" means that two thirds of the documents belong to one class, "words" '
        'that only the first words of each document are used, "documents" is the number of training '
        "documents, and a model is another base.",
        lengths_table(judged, chances),
    )


def gains(judged: Judged, chances: Chances) -> dict[str, dict[tuple[str, str], list[float]]]:
    """Return each recipe's gains over the base, final and half way back, one per seed, by set and outcome."""
    found: dict[str, dict[tuple[str, str], list[float]]] = {}
    for name, entry in runs(judged):
        if entry["stage"] == "third":
            continue
        recipe = ", ".join(filter(None, (entry["recipe"], entry["stage"])))
        for outcome, value in entry["outcomes"].items():
            found.setdefault(recipe, {}).setdefault((name, outcome), []).append(value["difference"])
            if recipe == PRESET:
                kept = value["difference"] if chances.get(id(entry), 0.0) >= LIKELY else 0.0
                found.setdefault(KEPT, {}).setdefault((name, outcome), []).append(kept)
    return found


def lengths_table(judged: Judged, chances: Chances) -> str:
    """Tabulate the preset's gains with other steps, view lengths, corpora and bases."""
    rows = []
    for name, entries in judged.items():
        of_preset = [
            (training_of(name, entry), entry)
            for entry in entries
            if (entry["recipe"] == PRESET or entry["recipe"].endswith(" tokens")) and not entry["seed"]
        ]
        for outcome, value in entries[0]["outcomes"].items() if of_preset else ():
            row = {"set": name, "outcome": outcome, "base": f"{100 * value['value']:.1f}"}
            for training, entry in of_preset:
                chance = f" ({100 * chances[id(entry)]:.0f}%)" if id(entry) in chances else ""
                row[training] = f"{100 * entry['outcomes'][outcome]['difference']:+.1f}{chance}"
            rows.append(row)
    return pages.table(rows)


def _mean(by_set: Mapping[str, Sequence[float]]) -> float:
    return float(np.mean([np.mean(seeds) for seeds in by_set.values()]))


def _means(by_set: Mapping[str, Sequence[float]]) -> list[float]:
    """Average over sets: one value per seed if all sets have equally many seeds, otherwise a single value."""
    counts = {len(seeds) for seeds in by_set.values()}
    return np.mean(list(by_set.values()), axis=0).tolist() if len(counts) == 1 else [_mean(by_set)]


if __name__ == "__main__":
    found, recipes = (read_json(RESULTS / f"{name}.json") for name in ("verdict", "recipe"))
    write_pages(found["judged"], recipes["words"], recipes, RESULTS)
    write_json(RECORD_FILE, record(found["judged"]))
