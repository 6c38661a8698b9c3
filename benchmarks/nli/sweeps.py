"""The sweeps over the learning rate (Figure 9) and the weight of the reconstruction (Figure 6): tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import drawn_figure, finish_axes
from benchmarks.records import mean_deviation
from simlte_st.evaluation.table import markdown_table

Runs = Sequence[Mapping[str, Any]]

SWEEPS = (
    (
        "rates",
        "Learning rate, with the reconstruction loss and without",
        "Figure 9: the mean as pooling, no conversion. The paper: with the reconstruction loss, training stays "
        "stable where the learning rate grows.",
        "learning rate",
    ),
    (
        "weights",
        "Weight of the reconstruction loss",
        "Figure 6: all three parts. The paper: .017 is best among .001 to .02.",
        "weight",
    ),
)
"""Part, title, what it is about, and the name of what is varied."""

PANELS: dict[str, dict[str, dict[str, Callable[[Mapping[str, Any]], float]]]] = {
    "rates": {
        "cross-entropy": {
            "trained on": lambda run: run["nli"]["train"]["loss"],
            "others": lambda run: run["nli"]["test"]["loss"],
        },
        "accuracy on others, %": {"": lambda run: 100 * run["nli"]["test"]["accuracy"]},
    },
    "weights": {
        "Pearson on STSb, times 100": {"": lambda run: 100 * run["sts"]["STSb"]["pearson"]},
        "Spearman on STSb, times 100": {"": lambda run: 100 * run["sts"]["STSb"]["spearman"]},
    },
}
"""What the figure of a part shows: panels, and in each the scores by name; one line is solid, the next dotted."""


def found_in(results: Mapping[str, Any], part: str) -> tuple[list[str], dict[str, list[dict[str, Any]]]]:
    """Return the trainings of a sweep by name, and the names in the order of the values."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name, result in results.items():
        if name.startswith(f"{part}/"):
            found.setdefault(name.removeprefix(f"{part}/").rpartition("-")[0], []).append(result)
    return sorted(found, key=lambda name: (float(name.split("/")[0]), name)), found


def lines_of(results: Mapping[str, Any], part: str) -> dict[str, dict[float, Runs]]:
    """Return the lines of a sweep's figure; none where it has fewer than two values."""
    lines: dict[str, dict[float, Runs]] = {}
    ordered, found = found_in(results, part)
    for name in ordered:
        value, _, side = name.partition("/")
        lines.setdefault(side, {})[float(value)] = found[name]
    return lines if max(map(len, lines.values()), default=0) > 1 else {}


def sweeps(results: Mapping[str, Any]) -> Iterator[str]:
    """Write the part of the page."""
    for part, title, about, varied in SWEEPS:
        ordered, found = found_in(results, part)
        if not found:
            continue
        header = [varied, "loss, trained on", "loss, others", "accuracy, trained on", "accuracy, others"]
        header += ["STSb Pearson", "Spearman", "trainings"]
        rows = [[name.replace("/", ", "), *_cells(found[name]), str(len(found[name]))] for name in ordered]
        yield from (f"## {title}", "", about, "", markdown_table(header, rows), "")
        if lines_of(results, part):
            yield from (f"![scores over the {varied}](ta_sbert_{part}.svg)", "")


def draw_sweeps(results: Mapping[str, Any], folder: Path) -> None:
    """Draw a figure of each sweep that has at least two values."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, _, _, varied in SWEEPS:
        if lines := lines_of(results, part):
            draw(folder / f"ta_sbert_{part}.svg", lines, PANELS[part], varied)


def _cells(runs: Runs) -> list[str]:
    nli = [run["nli"] for run in runs]
    stsb = [run["sts"]["STSb"] for run in runs]
    return [
        *(mean_deviation([run[part]["loss"] for run in nli], 3, 1) for part in ("train", "test")),
        *(mean_deviation([run[part]["accuracy"] for run in nli]) for part in ("train", "test")),
        *(mean_deviation([run[metric] for run in stsb]) for metric in ("pearson", "spearman")),
    ]


def draw(
    path: Path,
    lines: Mapping[str, Mapping[float, Runs]],
    panels: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], float]]],
    varied: str,
) -> None:
    """Draw the mean of a sweep's scores over what is varied, and a point for each training."""
    with drawn_figure(path, (8.4, 3.2)) as figure:
        for axes, (title, scores) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
            for number, (side, runs) in enumerate(lines.items()):
                for style, (name, score) in zip(("o-", "o:"), scores.items(), strict=False):
                    points = {value: [score(run) for run in runs[value]] for value in runs}
                    label = ", ".join(part for part in (side, name) if part) or "mean"
                    means = [np.mean(values) for values in points.values()]
                    axes.plot(list(points), means, style, color=f"C{number}", markersize=4, label=label)
                    for value, values in points.items():
                        axes.plot([value] * len(values), values, ".", color=f"C{number}", alpha=0.5, markersize=3)
            axes.set_xscale("log")
            ticks = sorted({value for runs in lines.values() for value in runs})
            axes.set_xticks(ticks, [f"{value:g}" for value in ticks], rotation=60, fontsize=7)
            axes.minorticks_off()
            axes.set_xlabel(varied)
            axes.set_title(title, fontsize=9)
            finish_axes(axes)
