"""The pages of the bank: which verdict can be trusted, and which recipe helps; and the verdict's record.

    python -m benchmarks.bank.page

makes the pages again of the numbers in ``results/verdict.json`` and ``results/recipe.json``, and writes what the
package says of its record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import pages
from benchmarks.bank import documents
from benchmarks.bank.candidates import CANDIDATES
from benchmarks.bank.make import BASE, Bank
from benchmarks.bank.outcomes import CITES, FEW, FULL
from benchmarks.bank.recipe_page import OUTCOMES, Words, gains, recipe_page
from benchmarks.bank.static_page import calibration_table, counts, share, static_section
from benchmarks.bank.trust import (
    MEASURES,
    Chances,
    Judged,
    Judgement,
    base_of,
    calibration,
    coefficients,
    confusion,
    family,
    happened,
    left_out,
    longer,
    of_kind,
    of_set,
    probabilities,
    rank_correlation,
    runs,
    said,
    signs_right,
    training_of,
)
from benchmarks.figures import drawn_figure
from benchmarks.records import RESULTS, environment
from simlte_st.evaluation.table import markdown_table
from simlte_st.evaluation.verdict import LIKELY, RECORD_FILE
from simlte_st.files import read_json, write_json

STRUCTURE = MEASURES[0]
"""The candidate that the package's verdict asks first."""

WORDS = {-1: "hurt", 0: "unclear", 1: "helped"}


def write_page(judged: Judged, words: Words, settings: Mapping[str, Any], folder: Path) -> None:
    """Write ``verdict.md``, ``verdict.json`` and ``verdict.svg``, and ``recipe.md`` and ``recipe.json``."""
    encoders, static = (of_kind(judged, kind) for kind in (False, True))
    trust = {name: trust_of(encoders, name) for name in CANDIDATES}
    judgements = left_out(encoders, of_set)
    chances = probabilities(judgements)
    lines = verdict_page(encoders, trust, settings, judgements) if encoders else ["# Which verdict can be trusted", ""]
    lines += [*static_section(static, encoders), *_set_tables(static, probabilities(left_out(static, of_set)))]
    write_json(folder / "verdict.json", rounded({**settings, "trust": trust, "judged": judged}))
    pages.write_page("verdict", "\n".join(lines), folder)
    write_json(folder / "recipe.json", {**settings, "words": words, "gains": gains(encoders, chances)})
    if encoders:
        pages.write_page("recipe", "\n".join(recipe_page(encoders, words, settings, chances)), folder)
        draw(encoders, folder / "verdict.svg")
        draw_calibration(judgements, folder / "verdict_calibration.svg")


def settings_of(bank: Bank, shown: Mapping[str, str]) -> dict[str, Any]:
    """Return what the pages say of how the bank was made."""
    where = environment(bank.work.dtype)
    sets = {title: sizes(bank, name) for name, title in shown.items()}
    return {"steps": bank.steps, "sets": sets, "environment": where}


def record(judged: Judged) -> dict[str, Any]:
    """Return the regression that the package's verdict is, and how it did on sets that it had not seen."""
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
    """Return all that speaks for and against a candidate."""
    table = confusion(judged, candidate)
    return {
        "rank_correlation": {outcome: rank_correlation(judged, candidate, outcome) for outcome in OUTCOMES},
        "signs_right": signs_right(judged, candidate),
        "said_and_happened": table.tolist(),
    }


def verdict_page(
    judged: Judged, trust: Mapping[str, Any], settings: Mapping[str, Any], judgements: Sequence[Judgement]
) -> list[str]:
    """Lay out the page of the verdict; the judgements are those with each data set left out."""
    encoders = sum(len(entries) for entries in judged.values())
    lines = [
        "# Which verdict can be trusted",
        "",
        f"{encoders} encoders on {len(judged)} data sets: all-MiniLM-L6-v2 by mean and by [CLS], and adapted without "
        f"labels by the recipes of `recipe.md`, {settings['steps']} steps of 32 documents where a recipe's name has no "
        "other number; some also after a third of the steps, and half way back to the base. Where a set is named with "
        "another model, that is the base. In "
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
        markdown_table(header, rows), "", *best_of_others(judged), "", *rule_section(judged, judgements),
        "![structure against labels](verdict.svg)", "",
    ]  # fmt: skip
    return lines + _set_tables(judged, probabilities(judgements))


def _set_tables(judged: Judged, chances: Chances) -> list[str]:
    return [line for name, entries in judged.items() for line in ("", f"## {name}", "", set_table(entries, chances))]


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


def rule_section(judged: Judged, judgements: Sequence[Judgement]) -> list[str]:
    """Lay out what the package's verdict is, and how often it was right about what it had not seen."""
    every = [entry for _, entry in runs(judged)]
    if len({happened(entry) == 1 for entry in every}) < 2:
        return []  # a small bank, of which there is nothing to learn
    fitted, wider = coefficients(every), documents.record()["wider"]
    terms = " + ".join(f"{weight} {name}" for weight, name in zip(fitted["weights"], MEASURES, strict=True))
    lines = [
        "## The verdict of the package",
        "",
        f"A logistic regression of *{MEASURES[0]}* (structure), *{MEASURES[1]}* and *{MEASURES[2]}*, each the "
        "difference to the base in its standard errors (10 at most): the probability that labels call an encoder "
        f"better. The log-odds are {fitted['intercept']} + {terms}".replace("+ -", "- ")
        + f'; from {LIKELY} on the verdict is "helped". Structure has to agree more, on documents that share words. A '
        "half that finds its other half more often speaks against it: that is what contrastive training trains, and "
        "memorising does it too.",
        "",
        "Below, each part is judged by a regression fitted on all others; all samples of a data set, with either base, "
        "are one part. Of the encoders that it calls *helped*, labels say better / unclear / worse. *Over documents*: "
        f"the same with intervals that allow for other documents of the kind, {wider[FEW]} times as wide with few "
        f"labels and {wider[FULL]} with all (`{documents.FILE}`: medians of encoders whose vectors are kept). "
        "*Structure alone*: what that, clearly up, would call helped.",
        "",
    ]
    for title, part in (
        ("data set left out", judgements),
        ("family of recipes left out", left_out(judged, family)),
        ("training left out", left_out(judged, training_of)),
        ("base left out", left_out(judged, base_of)),
    ):
        rows = _left_out(part)
        if rows:
            header = [title, "encoders", "helped", "over documents", "structure alone", "better without a verdict"]
            lines += [markdown_table(header, rows), ""]
    lines += [
        "Calibration, each data set left out: encoders by the probability that they were given, and what labels say.",
        "",
        calibration_table(judgements),
        "",
        "![calibration](verdict_calibration.svg)",
        "",
    ]
    return lines


def _left_out(judgements: Sequence[Judgement]) -> list[list[str]]:
    """Count, part by part and in all, what labels say of encoders that two judges call helped."""
    wider, rows = documents.record()["wider"], []
    parts: list[str | None] = list(dict.fromkeys(each.part for each in judgements))
    for left in [*parts, None] if len(parts) > 1 else parts:
        here = [each for each in judgements if left in (None, each.part)]
        helped = Counter(happened(each.entry) for each in here if each.helped)
        wide = Counter(happened(each.entry, wider) for each in here if each.helped)
        alone = Counter(happened(each.entry) for each in here if said(each.entry, STRUCTURE) > 0)
        every = Counter(happened(each.entry) for each in here)
        told = [counts(count) for count in (helped, wide, alone)]
        rows.append([left or "all", str(len(here)), *told, share(every[1], len(here))])
    return rows


def set_table(entries: Sequence[Mapping[str, Any]], chances: Chances) -> str:
    """Lay out the encoders of a set: what labels say, and the verdict's probability, fitted on other data sets."""
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
                f"{100 * chances[id(entry)]:.0f}%" if id(entry) in chances else "",
                "" if base else WORDS[happened(entry)],
            ]
        )
    return markdown_table(["encoder", *names, STRUCTURE, "probability", "labels"], rows)


def points(value: Mapping[str, float], base: bool) -> str:
    """Write a number in percent, and its difference to the base's."""
    return f"{100 * value['value']:.1f}" + ("" if base else f" ({100 * value['difference']:+.1f})")


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


def draw_calibration(judgements: Sequence[Judgement], path: Path) -> None:
    """Draw the share of encoders that labels call better, and worse, against the probability that they were given."""
    bins = [each for each in calibration(judgements) if each["better"] + each["unclear"] + each["worse"]]
    with drawn_figure(path, (4, 4)) as figure:
        axes = figure.subplots()
        for word, colour in (("better", "C0"), ("worse", "C3")):
            shares = [each[word] / (each["better"] + each["unclear"] + each["worse"]) for each in bins]
            axes.plot([each["mean"] for each in bins], shares, "o-", color=colour, label=f"labels say {word}")
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        axes.set_xlabel("probability, its data set left out")
        axes.set_ylabel("share of encoders")
        axes.legend()
        figure.tight_layout()


if __name__ == "__main__":
    saved = read_json(RESULTS / "verdict.json")
    made = {name: saved[name] for name in ("steps", "sets", "environment")}
    write_page(saved["judged"], read_json(RESULTS / "recipe.json")["words"], made, RESULTS)
    write_json(RECORD_FILE, record(saved["judged"]))
