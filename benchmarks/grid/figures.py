"""The figures of the grid, from plain numbers: learning curves, scores, gains with intervals, redundancies.

The same numbers give the same bytes, and matplotlib's global state is not touched. Each system has a colour that the
colour-blind can tell from the others, and a marker or a hatching, so that the figures can be read in grey as well.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.figures import drawn_figure

_COLOURS = (  # Okabe and Ito's, with olive for their yellow, which is faint on white, and two of Tol's
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255", "#999933", "#999999"),
)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "*")
_HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "", "||||", "oo", "++++", "")
_TEXT = 8.0  # points
_CHARACTER = 0.58 * _TEXT / 72  # inches: about the mean width of a character


def learning_curves(
    path: str | os.PathLike[str],
    curves: Mapping[str, Mapping[int, tuple[float, float]]],
    *,
    title: str,
    y_label: str,
) -> None:
    """Draw scores over the number of labelled examples a class, on a scale of powers of two (DocSplit, figure 2)."""
    shots = sorted({count for curve in curves.values() for count in curve})
    # The legend has the order in which the curves end, so that the eye finds a curve's name beside it.
    ends = sorted(range(len(curves)), key=lambda number: -_end(list(curves.values())[number]))
    with drawn_figure(path, (4.6 + _legend_width(curves), max(3.4, 0.22 * len(curves) + 1.0))) as figure:
        axes = _axes(figure, title)
        lines = []
        for number, curve in enumerate(curves.values()):
            aside = 2 ** (0.035 * (number - (len(curves) - 1) / 2))
            points = sorted(curve.items())
            bars = axes.errorbar(
                [count * aside for count, _ in points],
                [mean for _, (mean, _) in points],
                [deviation for _, (_, deviation) in points],
                color=_colour(number),
                marker=_marker(number),
                markersize=5,
                markeredgecolor="white",
                markeredgewidth=0.3,
                lw=1.3,
                elinewidth=0.7,
                zorder=3,
            )
            lines.append(bars)
        axes.set_xscale("log", base=2)
        axes.set_xlim(shots[0] / 1.35, shots[-1] * 1.35)
        axes.set_xticks(shots, [str(count) for count in shots])
        axes.minorticks_off()
        axes.set_xlabel("labelled examples a class", fontsize=_TEXT)
        axes.set_ylabel(y_label, fontsize=_TEXT)
        _legend(figure, [lines[number] for number in ends], [list(curves)[number] for number in ends])


def score_bars(
    path: str | os.PathLike[str],
    groups: Mapping[str, Mapping[str, tuple[float, float]]],
    *,
    title: str,
    y_label: str,
) -> None:
    """Draw the scores of systems on data sets: a group of bars for each data set."""
    systems = _keys(groups)
    styles = [{"color": _colour(number), "hatch": _HATCHES[number % len(_HATCHES)]} for number in range(len(systems))]
    with drawn_figure(path, (_bars_width(groups, systems), max(3.2, 0.22 * len(systems) + 1.0))) as figure:
        axes = _axes(figure, title)
        _bars(figure, axes, groups, systems, styles)
        axes.set_ylabel(y_label, fontsize=_TEXT)


def gain_intervals(
    path: str | os.PathLike[str], rows: Mapping[str, tuple[float, float, float]], *, title: str, x_label: str
) -> None:
    """Draw gains with their intervals, a row for each, beside a line at no gain; the numbers stand at the right.

    A gain's square is filled where its interval leaves zero out.
    """
    digits = 1 if max(abs(value) for value, _, _ in rows.values()) >= 1 else 3
    with drawn_figure(path, (5.0 + _names_width(rows), 0.27 * len(rows) + 1.1)) as figure:
        axes = _axes(figure, title)
        axes.axvline(0, color="0.35", lw=0.9, ls=(0, (4, 3)), zorder=1)
        for place, (value, low, high) in enumerate(rows.values()):
            known = not math.isnan(low)
            sure = known and (low > 0 or high < 0)
            if known:
                axes.plot([low, high], [place, place], color=_COLOURS[0], lw=1.4, marker="|", markersize=6, zorder=2)
            axes.plot(
                [value],
                [place],
                marker="s",
                markersize=5.5,
                color=_COLOURS[0],
                markerfacecolor=_COLOURS[0] if sure else "white",
                zorder=3,
            )
            text = f"{value:+.{digits}f}" + (f"  [{low:+.{digits}f}, {high:+.{digits}f}]" if known else "")
            axes.annotate(
                text.replace("-", "\N{MINUS SIGN}"),
                (1.02, place),
                xycoords=("axes fraction", "data"),
                va="center",
                fontsize=_TEXT,
                annotation_clip=False,
            )
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color="0.9", lw=0.6)
        axes.margins(x=0.06)
        axes.set_yticks(range(len(rows)), list(rows), fontsize=_TEXT)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(x_label, fontsize=_TEXT)


def redundancy_bars(path: str | os.PathLike[str], values: Mapping[str, Mapping[str, float]], *, title: str) -> None:
    """Draw the redundancy of data sets, a bar for each length of their documents (SimLTE, equation 2 and table 3)."""
    dark = [length for length in _keys(values) if length != "all"]
    names = dark + ["all"] * any("all" in lengths for lengths in values.values())
    styles: list[dict[str, Any]] = []
    for length in names:
        if length == "all":
            styles.append({"color": "white", "hatch": "/////", "edgecolor": "0.3"})
        else:  # from a light to a dark blue: longer is darker, in grey too
            part = dark.index(length) / max(1, len(dark) - 1)
            ends = zip((0.80, 0.88, 0.95), (0.03, 0.19, 0.38), strict=True)
            styles.append({"color": tuple(light + part * (deep - light) for light, deep in ends)})
    scores = {data: {length: (value, 0.0) for length, value in lengths.items()} for data, lengths in values.items()}
    with drawn_figure(path, (_bars_width(values, names), 3.2)) as figure:
        axes = _axes(figure, title)
        _bars(figure, axes, scores, names, styles, bottom=1.0, heading="words of a document", written=".2f")
        axes.set_ylabel("nouns and verbs / distinct ones", fontsize=_TEXT)


def _keys(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what any group has, in the order of the group that has most."""
    ordered = sorted(groups.values(), key=len, reverse=True)
    return list(dict.fromkeys(key for group in ordered for key in group))


def _end(curve: Mapping[int, tuple[float, float]]) -> float:
    return curve[max(curve)][0]


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _marker(number: int) -> str:
    return _MARKERS[number % len(_MARKERS)]  # eleven and ten: the 110 first systems differ in one or the other


def _names_width(names: Iterable[str]) -> float:
    return _CHARACTER * max(len(name) for name in names)


def _legend_width(names: Iterable[str]) -> float:
    return 0.55 + _names_width(names)


def _bars_width(groups: Mapping[str, Any], names: Sequence[str]) -> float:
    wanted = max(0.12 * len(names), _names_width(groups)) + 0.2
    return max(3.6, wanted * len(groups) + 0.8) + _legend_width(names)


def _axes(figure: Any, title: str) -> Any:
    figure.set_layout_engine("constrained")
    axes = figure.add_subplot()
    axes.set_title(title, fontsize=_TEXT + 1.5, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=_TEXT)
    axes.grid(axis="y", color="0.9", lw=0.6)
    axes.set_axisbelow(True)
    return axes


def _legend(figure: Any, handles: Sequence[Any], names: Sequence[str], heading: str | None = None) -> None:
    legend = figure.legend(handles, names, loc="outside right upper", frameon=False, fontsize=_TEXT, title=heading)
    legend.get_title().set_fontsize(_TEXT)


def _bars(
    figure: Any,
    axes: Any,
    groups: Mapping[str, Mapping[str, tuple[float, float]]],
    names: Sequence[str],
    styles: Sequence[Mapping[str, Any]],
    bottom: float = 0.0,
    heading: str | None = None,
    written: str | None = None,
) -> None:
    """Draw groups of bars from a bottom, their whiskers, a legend, and the values where a format for them is given."""
    width = 0.84 / len(names)
    handles = []
    for number, (name, style) in enumerate(zip(names, styles, strict=True)):
        aside = (number - (len(names) - 1) / 2) * width
        there = [(place + aside, scores[name]) for place, scores in enumerate(groups.values()) if name in scores]
        at, means = [x for x, _ in there], [mean for _, (mean, _) in there]
        shape = {"edgecolor": "white", "linewidth": 0.5, **style}
        handles.append(axes.bar(at, [mean - bottom for mean in means], 0.94 * width, bottom=bottom, **shape))
        for x, mean in zip(at, means, strict=True) if written else ():
            where = {"textcoords": "offset points", "ha": "center", "va": "bottom", "rotation": 90}
            axes.annotate(f"{mean:{written}}", (x, mean), (0, 2), fontsize=_TEXT - 2, **where)
        whiskers = [(x, mean, deviation) for x, (mean, deviation) in there if deviation]
        if whiskers:
            axes.errorbar(*zip(*whiskers, strict=True), fmt="none", ecolor="0.15", elinewidth=0.8, capsize=1.5)
    axes.set_xlim(-0.55, len(groups) - 0.45)
    axes.margins(y=0.12 if written else 0.05)  # room for what is written above the highest
    axes.set_ylim(bottom=bottom)
    axes.set_xticks(range(len(groups)), list(groups), fontsize=_TEXT)
    axes.tick_params(axis="x", length=0)
    _legend(figure, handles, names, heading)
