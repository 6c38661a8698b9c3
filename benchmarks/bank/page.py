"""The pages of the bank: which verdict can be trusted, and which recipe helps; and the verdict's record.

    python -m benchmarks.bank.page

makes the pages again of the numbers in ``results/verdict.json`` and ``results/recipe.json``, and writes what the
package says of its record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bank.candidates import CANDIDATES
from benchmarks.bank.make import BASE, Bank
from benchmarks.bank.outcomes import CITES, FEW, FULL
from benchmarks.bank.trust import (
    MEASURES,
    Judged,
    confusion,
    family,
    finding,
    findings,
    fitted,
    happened,
    of_set,
    rank_correlation,
    runs,
    said,
    signs_right,
)
from benchmarks.records import RESULTS, environment, mean_deviation, write_results
from simlte_st.analysis.figures import drawn_figure
from simlte_st.evaluation.table import markdown_table
from simlte_st.evaluation.verdict import RECORD_FILE
from simlte_st.files import read_json, write_json

STRUCTURE = MEASURES[0]
"""The candidate that the package's verdict asks first."""

CLEAR = 0.8
"""Probability from which the logistic regression that is tried beside the rule says "helped"."""

PRESET = "docsplit, temperature 0.5"
"""The preset ``docsplit-tuned``, and what ``simlte train`` makes of it: the base, where the verdict is not "helped"."""
KEPT = f"{PRESET}, or the base by the verdict"

WORDS = {-1: "hurt", 0: "unclear", 1: "helped"}
OUTCOMES = (FEW, FULL, CITES)

Words = Mapping[str, Mapping[str, float]]
"""What :func:`~benchmarks.bank.judge.judge_words` gave, by set."""


def write_page(judged: Judged, words: Words, settings: Mapping[str, Any], folder: Path) -> None:
    """Write ``verdict.md``, ``verdict.json`` and ``verdict.svg``, and ``recipe.md`` and ``recipe.json``.

    Args:
        judged: All encoders.
        words: What TF-IDF is worth.
        settings: Of :func:`settings_of`.
        folder: Where to.
    """
    trust = {name: trust_of(judged, name) for name in CANDIDATES}
    write_results(
        "verdict",
        verdict_page(judged, trust, settings),
        rounded({**settings, "trust": trust, "judged": judged}),
        folder,
    )
    write_results(
        "recipe", recipe_page(judged, words, settings), {**settings, "words": words, "gains": gains(judged)}, folder
    )
    draw(judged, folder / "verdict.svg")


def settings_of(judged: Judged, bank: Bank) -> dict[str, Any]:
    """Give what the pages say of how the bank was made."""
    where = environment(bank.work.dtype)
    return {"steps": bank.steps, "sets": {name: sizes(bank, name) for name in judged}, "environment": where}


def record(judged: Judged) -> dict[str, Any]:
    """Count what labels say of the encoders of each finding: the record of the verdict that the package has."""
    encoders = sum(1 for _ in runs(judged))
    return {
        "command": "python -m benchmarks.bank.page",
        "sets": len(judged),
        "encoders": encoders,
        "findings": findings(judged),
    }


def rounded(value: Any) -> Any:
    """Round all numbers in JSON values to five places: there are tens of thousands of them."""
    if isinstance(value, Mapping):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(part) for part in value]
    return round(value, 5) if isinstance(value, float) else value


def sizes(bank: Bank, name: str) -> dict[str, int]:
    """Count what a set has."""
    data = bank.sets[name]
    return {
        "train": len(data.train), "held_out": len(data.held), "classes": len(set(data.labels)), "links": len(data.links)
    }  # fmt: skip


def trust_of(judged: Judged, candidate: str) -> dict[str, Any]:
    """Give all that speaks for and against a candidate."""
    table = confusion(judged, candidate)
    return {
        "rank_correlation": {outcome: rank_correlation(judged, candidate, outcome) for outcome in OUTCOMES},
        "signs_right": signs_right(judged, candidate),
        "said_and_happened": table.tolist(),
    }


def verdict_page(judged: Judged, trust: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Lay out the page of the verdict."""
    encoders = sum(len(entries) for entries in judged.values())
    lines = [
        "# Which verdict can be trusted",
        "",
        f"{encoders} encoders on {len(judged)} data sets: all-MiniLM-L6-v2 by mean and by [CLS], and adapted without "
        f"labels by the recipes of `recipe.md`, {settings['steps']} steps of 32 documents where a recipe's name has no "
        "other number; some also after a third of the steps, and half way back to the base. In "
        f"{settings['environment']['dtype']} (CPU: {settings['environment']['cpu_bf16']}).",
        "",
        "Each candidate sees the halves of held-out documents and nothing else. *Order*: Spearman's correlation with "
        "what labels say, over the encoders of a set, mean over sets. *Side*: of the encoders that labels tell from "
        "the base, how many the candidate puts on the right side of it; mean and worst set. *Said helped*: where its "
        "own 95% interval lies above the base, how often labels say helped / nothing clear / hurt; *said hurt* "
        "likewise. A candidate without an interval always speaks.",
        "",
    ]
    rows = []
    for name, found in sorted(trust.items(), key=lambda item: -np.mean(list(item[1]["signs_right"].values()) or [0])):
        sides = list(found["signs_right"].values())
        orders = [list(found["rank_correlation"][outcome].values()) for outcome in OUTCOMES]
        told = found["said_and_happened"]
        rows.append(
            [name]
            + [f"{np.mean(values):+.2f}" if values else "" for values in orders]
            + ([f"{100 * np.mean(sides):.0f}%", f"{100 * min(sides):.0f}%"] if sides else ["", ""])
            + [" / ".join(str(told[row][n]) for n in (2, 1, 0)) for row in (2, 0)]
        )
    header = [
        "candidate",
        *(f"order: {outcome}" for outcome in OUTCOMES),
        "side",
        "worst set",
        "said helped",
        "said hurt",
    ]
    lines += [
        markdown_table(header, rows), "", *best_of_others(judged), "", *rule_section(judged),
        "![structure against labels](verdict.svg)", "",
    ]  # fmt: skip
    for name, entries in judged.items():
        lines += ["", f"## {name}", "", set_table(entries)]
    return lines


def best_of_others(judged: Judged) -> list[str]:
    """Choose the best candidate on all sets but one, and say how it does there."""
    lines = ["With each set left out in turn, the candidate that is best on the others, and its side there:", ""]
    for name in judged:
        others = {key: value for key, value in judged.items() if key != name}
        if not others:
            continue
        best = max(
            CANDIDATES, key=lambda candidate: float(np.mean(list(signs_right(others, candidate).values()) or [0]))
        )
        here = signs_right({name: judged[name]}, best).get(name)
        own = signs_right({name: judged[name]}, STRUCTURE).get(name)
        told = (
            "labels tell no encoder from the base"
            if here is None
            else f"{100 * here:.0f}%; {STRUCTURE}: {100 * own:.0f}%"
        )  # type: ignore[operator]
        lines.append(f"- {name}: {best}: {told}")
    return lines


def rule_section(judged: Judged) -> list[str]:
    """Lay out what the package's verdict says, how often it is right, and how it would do on what it has not seen."""
    counts = findings(judged)
    rows = [
        [kind, *(str(count[what]) for what in ("better", "unclear", "worse")), _share(count["better"], count)]
        for kind, count in counts.items()
    ]
    lines = [
        "## The verdict of the package",
        "",
        f'"Helped" needs three things: *{MEASURES[0]}* clearly up, *{MEASURES[1]}* not down ("collapsing"), and '
        f'*{MEASURES[2]}* not clearly up ("memorising"). Nothing in it is fitted. What labels say of '
        "the encoders of each finding, and the share of those that they call better:",
        "",
        markdown_table(["the verdict", "better", "unclear", "worse", "share better"], rows),
        "",
        "Each set and each family of recipes left out in turn: labels there (better / unclear / worse) of the "
        'encoders that the verdict calls "helped"; of all whose *'
        f"{STRUCTURE}* is clearly up, which was the whole verdict before; and of those that a logistic regression of "
        f"the same three measures, fitted on all others, gives a probability of {CLEAR} or more. *Stated* is the share "
        'of better ones among the others that the verdict calls "helped", *came true* that share here.',
        "",
    ]
    for title, part in (("set left out", of_set), ("family left out", family)):
        lines += [
            markdown_table(
                [title, "encoders", "helped", "stated", "came true", "structure alone", "regression"],
                _left_out(judged, part),
            ),
            "",
        ]
    lines += [
        "Calibration of that regression, each set left out: encoders by the probability that it gives, and the share "
        "that labels call better.",
        "",
        markdown_table(["probability", "encoders", "mean probability", "share better"], _calibration(judged)),
        "",
    ]
    return lines


def _left_out(judged: Judged, part: Callable[[str, Mapping[str, Any]], str]) -> list[list[str]]:
    """Count, part by part, what labels say of encoders that three judges call helped."""
    every = [(part(name, entry), entry) for name, entry in runs(judged)]
    chances = fitted(judged, part)
    rows = []
    for left in dict.fromkeys(name for name, _ in every):
        here = [entry for name, entry in every if name == left]
        helped, rest = (
            Counter(happened(entry) for name, entry in every if (name == left) is inside and finding(entry) == "helped")
            for inside in (True, False)
        )
        alone = Counter(happened(entry) for entry in here if said(entry, STRUCTURE) > 0)
        regression = Counter(says for name, chance, says in chances if name == left and chance >= CLEAR)
        rows.append(
            [left, str(len(here)), _counts(helped), _share(rest[1], rest), _share(helped[1], helped), _counts(alone),
             _counts(regression)]
        )  # fmt: skip
    return rows


def _calibration(judged: Judged) -> list[list[str]]:
    """Count encoders by the probability of the regression that has not seen their set."""
    chances = fitted(judged, of_set)
    rows = []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = [(chance, says) for _, chance, says in chances if low <= chance < low + 0.2]
        if inside:
            mean = np.mean([chance for chance, _ in inside])
            better = sum(says == 1 for _, says in inside)
            rows.append(
                [
                    f"{low:.1f} to {low + 0.2:.1f}",
                    str(len(inside)),
                    f"{100 * mean:.0f}%",
                    f"{100 * better / len(inside):.0f}%",
                ]
            )
    return rows


def _counts(count: Mapping[int, int]) -> str:
    return " / ".join(str(count[sign]) for sign in (1, 0, -1))


def _share(part: int, count: Mapping[Any, int]) -> str:
    return f"{100 * part / sum(count.values()):.0f}%" if sum(count.values()) else ""


def set_table(entries: Sequence[Mapping[str, Any]]) -> str:
    """Lay out the encoders of a set: what labels say, and what the verdict says."""
    names = list(entries[0]["outcomes"])
    rows = []
    for entry in entries:
        base = entry["recipe"] == BASE
        stage = {"": "", "third": ", a third", "half way": ", half way back"}[entry["stage"]]
        agreement = entry["candidates"][STRUCTURE]
        rows.append(
            [f"{entry['recipe']}{stage}" + (f" ({entry['seed']})" if entry["seed"] else "")]
            + [points(entry["outcomes"][name], base) for name in names]
            + [
                points(agreement, base),
                "" if base else finding(entry),
                "" if base else WORDS[happened(entry)],
            ]
        )
    return markdown_table(["encoder", *names, STRUCTURE, "verdict", "labels"], rows)


def points(value: Mapping[str, float], base: bool) -> str:
    """Write a number in percent, and its difference to the base's."""
    return f"{100 * value['value']:.1f}" + ("" if base else f" ({100 * value['difference']:+.1f})")


def gains(judged: Judged) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Give each recipe's gain over the base at its end and half way back, of each seed, by outcome and set."""
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
                        kept = value["difference"] if finding(entry) == "helped" else 0.0
                        found.setdefault(KEPT, {}).setdefault(outcome, {}).setdefault(name, []).append(kept)
    return found


def recipe_page(judged: Judged, words: Words, settings: Mapping[str, Any]) -> list[str]:
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
        f'these documents is not "helped". In {where["dtype"]} (CPU: {where["cpu_bf16"]}).',
        "",
    ]
    found = gains(judged)
    for outcome in OUTCOMES:
        names = [name for name, entries in judged.items() if outcome in entries[0]["outcomes"]]
        if not names:
            continue
        rows = []
        for title, values in (
            ("TF-IDF", [words[name][outcome] for name in names]),
            ("the base itself", [judged[name][0]["outcomes"][outcome]["value"] for name in names]),
        ):
            rows.append([title, *(f"{100 * value:.1f}" for value in values), f"{100 * np.mean(values):.1f}"])
        of_recipes = {recipe: by[outcome] for recipe, by in found.items() if outcome in by}
        for recipe, by in sorted(of_recipes.items(), key=lambda item: -_mean(item[1])):
            shown = [_gain(by.get(name, [])) for name in names]
            rows.append([recipe, *shown, _gain(_means(by)) if len(by) == len(names) else ""])
        header = ["recipe", *names, *(["mean"] if len(names) > 1 else [])]
        lines += [f"## {outcome}", "", markdown_table(header, [row[: len(header)] for row in rows]), ""]
    return lines


def _gain(seeds: Sequence[float]) -> str:
    """Write a gain in points, with its deviation over seeds."""
    return mean_deviation(seeds, sign="+") if len(seeds) else ""


def _mean(by_set: Mapping[str, Sequence[float]]) -> float:
    return float(np.mean([np.mean(seeds) for seeds in by_set.values()]))


def _means(by_set: Mapping[str, Sequence[float]]) -> list[float]:
    """Give the mean over sets of each seed, where all sets have the same; else the one mean of all."""
    counts = {len(seeds) for seeds in by_set.values()}
    return np.mean(list(by_set.values()), axis=0).tolist() if len(counts) == 1 else [_mean(by_set)]


def draw(judged: Judged, path: Path) -> None:
    """Draw what the verdict says of each encoder against what labels say."""
    with drawn_figure(path, (6, 4)) as figure:
        axes = figure.subplots()
        for number, (name, entries) in enumerate(judged.items()):
            outcome = FEW if FEW in entries[0]["outcomes"] else CITES
            pairs = [
                (100 * entry["candidates"][STRUCTURE]["difference"], 100 * entry["outcomes"][outcome]["difference"])
                for entry in entries
                if entry["recipe"] != BASE
            ]
            axes.scatter(*zip(*pairs, strict=True), s=18, color=f"C{number}", label=f"{name} ({outcome})")
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.axvline(0, color="grey", linewidth=0.8)
        axes.set_xlabel("structure: neighbours that both halves agree on, points over the base")
        axes.set_ylabel("labels: points over the base")
        axes.legend(fontsize=7)
        figure.tight_layout()


if __name__ == "__main__":
    saved = read_json(RESULTS / "verdict.json")
    made = {name: saved[name] for name in ("steps", "sets", "environment")}
    write_page(saved["judged"], read_json(RESULTS / "recipe.json")["words"], made, RESULTS)
    write_json(RECORD_FILE, record(saved["judged"]))
