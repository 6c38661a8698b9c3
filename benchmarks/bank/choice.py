"""Whether it pays to train several times, or keep checkpoints, and let the verdict choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.bank.trust import Chances, Judged
from simlte_st.evaluation.table import markdown_table
from simlte_st.evaluation.verdict import LIKELY

PRESET = "docsplit, temperature 0.5"
"""The recipe that is the preset ``docsplit-tuned``."""

CHOICES: dict[str, list[tuple[str, str]]] = {
    PRESET: [(PRESET, "")],
    "that, or at a learning rate of 3e-5": [(PRESET, ""), (f"{PRESET}, 3e-5", "")],
    "that, or at temperature 0.05, or gentler": [(PRESET, ""), ("docsplit", ""), ("docsplit-gentle", "")],
    **{
        title: choices
        for recipe in ("docsplit", "smooth", "tuned")
        for title, choices in (
            (recipe, [(recipe, "")]),
            (f"{recipe}, its end, a third or half way back", [(recipe, stage) for stage in ("", "third", "half way")]),
        )
    },
}
"""What the verdict chooses among: recipes, each with its stage."""


def chosen(
    entries: Sequence[Mapping[str, Any]], choices: Sequence[tuple[str, str]], chances: Chances
) -> Mapping[str, Any] | None:
    """Choose the encoder that is most likely to have helped; the base, the first, where none is likely."""
    made = {(entry["recipe"], entry["stage"]): entry for entry in entries if entry["seed"] == 0}
    if not all(id(made.get(choice)) in chances for choice in choices):
        return None
    best = max((made[choice] for choice in choices), key=lambda entry: chances[id(entry)])
    return best if chances[id(best)] >= LIKELY else entries[0]


def choices_section(judged: Judged, chances: Chances) -> list[str]:
    """Lay out what each choice gains, over the sets that have all of what is chosen from."""
    picked: dict[str, list[Mapping[str, Any]]] = {}
    for name, entries in judged.items():
        found = [entry for choices in CHOICES.values() if (entry := chosen(entries, choices, chances))]
        if FEW in entries[0]["outcomes"] and len(found) == len(CHOICES):
            picked[name] = found
    if not picked:
        return []
    rows = []
    for title, entries in zip(CHOICES, zip(*picked.values(), strict=True), strict=True):
        few, full = ([100 * entry["outcomes"][name]["difference"] for entry in entries] for name in (FEW, FULL))
        rows.append([title, *(f"{value:+.1f}" for value in few), f"{np.mean(few):+.2f}", f"{np.mean(full):+.2f}"])
    return [
        "## One training, or the best of several by the verdict",
        "",
        "Points over the base with few labels, where the encoder with the highest probability is taken (by a "
        f"regression that has not seen the data set), and the base where none has {LIKELY}. One seed.",
        "",
        markdown_table(["choice", *picked, "mean", "mean, all labels"], rows),
        "",
    ]
