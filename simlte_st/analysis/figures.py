"""The figures: bars by part of speech (SimLTE, figure 3), and a heat map over the words of one document.

matplotlib draws them without a window and without touching its global state; the same numbers give the same bytes.
"""

from __future__ import annotations

import html
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.analysis.alignment import PUNCTUATION, WORD_CLASSES, WordWeight
from simlte_st.analysis.attention import AttentionResult
from simlte_st.analysis.drawing import CONTROL, DRAWN_FORMATS, check_figure, drawn_figure, plain
from simlte_st.extras import require
from simlte_st.files import atomic_path

__all__ = ["BAR_FORMATS", "HEAT_MAP_FORMATS", "HeatMapPanel", "check_figure", "write_bars", "write_heat_map"]

BAR_FORMATS = DRAWN_FORMATS
HEAT_MAP_FORMATS = (*DRAWN_FORMATS, ".html")

_COLUMNS = 100  # characters of a line in a drawn heat map
_FONT = 8.0  # points
_CHARACTER = 0.602 * _FONT / 72  # inches: the width of a DejaVu Sans Mono character
_LINE = 1.6 * _FONT / 72
_HEAT = (0.84, 0.19, 0.12)  # red, green, blue


@dataclass(frozen=True, slots=True)
class HeatMapPanel:
    """What one model attends to in a document.

    Attributes:
        title: Name of the model, and whatever else shall stand above.
        words: The words that it read, in order.
    """

    title: str
    words: Sequence[WordWeight]


def write_bars(path: str | os.PathLike[str], result: AttentionResult) -> None:
    """Draw the attention to a noun, verb, adjective and other word: a group of bars for each, a bar for each model.

    Args:
        path: A ``.svg`` or ``.png`` file; replaced at once when it is complete.
        result: What was measured; whiskers are the 95% intervals.

    Raises:
        ConfigurationError: Another format.
        MissingExtraError: matplotlib is not installed.
    """
    check_figure(path, BAR_FORMATS)
    with drawn_figure(path, (6.4, 3.6)) as figure:
        axes = figure.add_subplot()
        width = 0.8 / len(result.models)
        for number, (name, model) in enumerate(result.models.items()):
            for place, kind in enumerate(WORD_CLASSES):
                weight = model.classes[kind].weight
                if weight.mean is None:
                    continue
                at = place + (number - (len(result.models) - 1) / 2) * width
                height = 100 * weight.mean
                axes.bar(at, height, 0.92 * width, color=f"C{number}", label=plain(name) if not place else None)
                if weight.low is not None and weight.high is not None:
                    low, high = height - 100 * weight.low, 100 * weight.high - height
                    axes.errorbar(at, height, [[max(0.0, low)], [max(0.0, high)]], color="black", capsize=2, lw=0.8)
        axes.set_xticks(range(len(WORD_CLASSES)), WORD_CLASSES)
        axes.set_ylabel("attention from [CLS] to a word, %")
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
        legend = axes.legend(frameon=False, fontsize=8)
        for text in legend.get_texts():
            text.set_parse_math(False)
        figure.tight_layout()


def write_heat_map(
    path: str | os.PathLike[str], text: str, panels: Sequence[HeatMapPanel], title: str, note: str = ""
) -> None:
    """Show a document with each word on a ground as dark as ``[CLS]`` attends to it; all panels on one scale.

    Args:
        path: A ``.html`` (one file that needs no other), ``.svg`` or ``.png`` file; replaced at once when complete.
        text: The document.
        panels: A panel for each model.
        title: What stands above all.
        note: What stands below: what of the document was not read.

    Raises:
        ConfigurationError: Another format.
        MissingExtraError: matplotlib is needed and not installed.
    """
    check_figure(path, HEAT_MAP_FORMATS)
    darkest = max((_shown(word) for panel in panels for word in panel.words), default=0.0)
    scale = f"The darkest word has {100 * darkest:.3g}% of the attention; punctuation is not coloured."
    below = f"{scale} {note}".strip()
    if Path(path).suffix.lower() == ".html":
        with atomic_path(path) as temporary:
            temporary.write_text(_html(text, panels, title, below, darkest), encoding="utf-8")
        return
    drawn = [list(_layout(text, panel.words)) for panel in panels]
    lines = [max((line for line, _, _, _ in words), default=0) + 1 for words in drawn]
    notes = textwrap.wrap(plain(below), _COLUMNS)
    height = 2 + sum(lines) + 2 * len(panels) + len(notes)
    with drawn_figure(path, ((_COLUMNS + 4) * _CHARACTER, (height + 1) * _LINE)) as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(-2, _COLUMNS + 2)
        axes.set_ylim(height, -1)
        axes.axis("off")
        write: dict[str, Any] = {"fontsize": _FONT, "va": "center", "parse_math": False}
        axes.text(0, 0, plain(title), weight="bold", **write)
        top = 1
        for panel, words, count in zip(panels, drawn, lines, strict=True):
            axes.text(0, top + 0.5, plain(panel.title), style="italic", **write)
            for line, column, shown, weight in words:
                ground = {"facecolor": (*_HEAT, _darkness(weight, darkest)), "edgecolor": "none"}
                place = (column, top + 1 + line)
                axes.add_patch(_rectangle(place, len(shown), ground))
                axes.text(column, top + 1.5 + line, shown, family="monospace", **write)
            top += count + 2
        for number, part in enumerate(notes):
            axes.text(0, top + 0.5 + number, part, color="0.4", **write)


def _rectangle(place: tuple[float, float], width: float, style: Mapping[str, Any]) -> Any:
    patches: Any = require("matplotlib.patches", "figures", "drawing figures")
    return patches.Rectangle(place, width, 1, **style)


def _layout(text: str, words: Sequence[WordWeight]) -> Iterator[tuple[int, int, str, float]]:
    """Place words in lines of :data:`_COLUMNS` characters: line, column, what is shown, weight.

    White space between words becomes one space, or a new line where it holds one; a longer word is cut into lines.
    """
    line = column = 0
    before = words[0].start if words else 0
    for word in words:
        gap = text[before : word.start]
        shown = text[word.start : word.stop]
        before = word.stop
        if "\n" in gap + (shown if shown.isspace() else ""):
            if column:
                line, column = line + 1, 0
        elif gap and column:
            column += 1
        if shown.isspace():
            continue
        shown = plain(shown)
        if column + len(shown) > _COLUMNS and column:
            line, column = line + 1, 0
        for start in range(0, len(shown), _COLUMNS):
            if start:
                line, column = line + 1, 0
            part = shown[start : start + _COLUMNS]
            yield line, column, part, _shown(word)
            column += len(part)


def _html(text: str, panels: Sequence[HeatMapPanel], title: str, below: str, darkest: float) -> str:
    red, green, blue = (round(255 * part) for part in _HEAT)
    parts = [
        "<!DOCTYPE html>",
        '<html><head><meta charset="utf-8">',
        f"<title>{_escaped(title)}</title>",
        "<style>body{font:16px/1.7 sans-serif;max-width:48em;margin:2em auto;padding:0 1em;color:#111;background:#fff}"
        "p{white-space:pre-wrap;overflow-wrap:anywhere}small{color:#666}span{border-radius:2px}</style>",
        f"</head><body><h1>{_escaped(title)}</h1>",
    ]
    for panel in panels:
        parts.append(f"<h2>{_escaped(panel.title)}</h2>")
        pieces = []
        before = panel.words[0].start if panel.words else 0
        for word in panel.words:
            pieces.append(_escaped(text[before : word.start]))
            shown = _escaped(text[word.start : word.stop])
            before = word.stop
            darkness = _darkness(_shown(word), darkest)
            pieces.append(
                f'<span style="background:rgba({red},{green},{blue},{darkness:.3f})" '
                f'title="{_escaped(word.kind)}: {100 * word.weight:.3g}%">{shown}</span>'
            )
        parts.append(f"<p>{''.join(pieces)}</p>")
    parts.append(f"<small>{_escaped(below)}</small></body></html>")
    return "\n".join(parts) + "\n"


def _shown(word: WordWeight) -> float:
    """Give the weight that a word is coloured by: punctuation, which often takes most, would pale everything else."""
    return 0.0 if word.kind == PUNCTUATION else word.weight


def _darkness(weight: float, darkest: float) -> float:
    return 0.85 * weight / darkest if darkest else 0.0


def _escaped(text: str) -> str:
    return html.escape(CONTROL.sub("\ufffd", text), quote=True)
