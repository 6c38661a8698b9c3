"""The figures: bars by part of speech (SimLTE, figure 3), and heat maps over the words of a text.

Bars are drawn by matplotlib, without a window and without touching its global state: the same numbers give the same
bytes. A heat map is a page of HTML that needs no other file, nor matplotlib.
"""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from simlte_st.analysis.attention import PUNCTUATION, WORD_CLASSES, AttentionResult, DocumentAttention
from simlte_st.analysis.reading import cut_notes
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.extras import require
from simlte_st.files import atomic_path

DRAWN_FORMATS = (".svg", ".png")
"""What matplotlib writes here."""

HEAT_MAP_FORMATS = (".html",)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no figure or page can show these
_STRONGEST = 0.85  # opacity of the ground of the heaviest word: its text is readable in dark and in light
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.7 sans-serif; max-width: 48em; margin: 2em auto; padding: 0 1em }
p { white-space: pre-wrap; overflow-wrap: anywhere }
mark { color: inherit; background: rgb(214 48 31 / var(--heat)); border-radius: 2px }
i { display: inline-block; width: 10em; height: 1em; margin: 0 0.5em; vertical-align: middle;
    background: linear-gradient(to right, rgb(214 48 31 / 0), rgb(214 48 31 / 0.85)) }
"""


def check_figure(path: str | os.PathLike[str], formats: Sequence[str] = DRAWN_FORMATS) -> None:
    """Check that a figure can be written, before anything is computed for it."""
    suffix = Path(path).suffix.lower()
    if suffix not in formats:
        raise ConfigurationError(f"{path}: a figure of this kind ends in {', '.join(formats)}, not in {suffix!r}.")
    if suffix in DRAWN_FORMATS:
        require("matplotlib", "figures", f"drawing {suffix} figures")


def plain(text: str) -> str:
    """Replace what a figure cannot show, and end of lines and tabs by spaces.

    matplotlib would still read ``$`` as mathematics: its texts take ``parse_math=False``.
    """
    return _CONTROL.sub("\ufffd", text).replace("\n", " ").replace("\t", " ")


@contextmanager
def drawn_figure(path: str | os.PathLike[str], size: tuple[float, float]) -> Iterator[Any]:
    """Return an empty figure of a size in inches, and write it when the block ends: the same bytes each time."""
    check_figure(path)
    matplotlib: Any = require("matplotlib", "figures", "drawing figures")
    figures: Any = require("matplotlib.figure", "figures", "drawing figures")
    # Names in a vector figure are drawn from a hash with a salt, and it is dated: both would differ each time.
    with matplotlib.rc_context({"svg.hashsalt": "simlte"}):
        figure = figures.Figure(figsize=size)
        yield figure
        kind = Path(path).suffix.lower()[1:]
        with atomic_path(path) as temporary:
            figure.savefig(temporary, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)


def write_bars(path: str | os.PathLike[str], result: AttentionResult) -> None:
    """Draw the attention to a noun, verb, adjective and other word: a group of bars for each, a bar for each model.

    Args:
        path: A ``.svg`` or ``.png`` file; replaced at once when it is complete.
        result: What was measured; whiskers are the 95% intervals.

    Raises:
        ConfigurationError: Another format.
        MissingExtraError: matplotlib is not installed.
    """
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
        finish_axes(axes)


def finish_axes(axes: Any, **legend: Any) -> None:
    """Return axes their legend, in which names of models are no formulas, and no frame; ``legend`` says where it is."""
    axes.spines[["top", "right"]].set_visible(False)
    for text in axes.legend(frameon=False, fontsize=8, **legend).get_texts():
        text.set_parse_math(False)
    axes.figure.tight_layout()


class Span(NamedTuple):
    """A word, token or other part of a text, and its weight in a heat map.

    Attributes:
        start: Index of its first character in the text.
        stop: Index after its last character.
        weight: At least 0; the heavier, the stronger its colour.
        label: What it is; shown with the weight where the mouse points at it.
        coloured: Whether it has a colour, and a say in the scale.
    """

    start: int
    stop: int
    weight: float
    label: str = ""
    coloured: bool = True


def write_heat_map(
    path: str | os.PathLike[str],
    text: str,
    panels: Mapping[str, Sequence[Span]],
    title: str,
    *,
    unit: str = "",
    note: str = "",
    from_zero: bool = True,
) -> None:
    """Show a text with each of its parts on a ground as strong as its weight, as a page of HTML, dark or light.

    Args:
        path: A ``.html`` file; replaced at once when it is complete.
        text: The text. What stands before the first part of a panel and behind the last is not shown there.
        panels: By title, such as a model's or a layer's name, the parts of the text: in order, none overlapping
            another. All panels have one scale.
        title: What stands above all.
        unit: What follows a weight, such as ``"%"``.
        note: What stands below all.
        from_zero: Begin the scale at 0; otherwise at the lowest weight, so that weights that differ little can be told
            apart. Its ends stand above the panels.

    Raises:
        ConfigurationError: Another format.
        DataError: A part lies outside of the text or overlaps the one before, or its weight is below 0 or no number.
    """
    check_figure(path, HEAT_MAP_FORMATS)
    scale = _Scale([span.weight for spans in panels.values() for span in spans if span.coloured], unit, from_zero)
    parts = [
        '<!DOCTYPE html>\n<html><head><meta charset="utf-8">',
        f"<title>{_escaped(title)}</title><style>{_STYLE}</style></head>",
        f"<body><h1>{_escaped(title)}</h1>",
        f"<small>{_escaped(scale.shown(scale.least))}<i></i>{_escaped(scale.shown(scale.most))}</small>",
    ]
    for name, spans in panels.items():
        parts.append(f"<h2>{_escaped(name)}</h2>\n<p>{_marked(text, spans, scale)}</p>")
    parts.append(f"<small>{_escaped(note)}</small></body></html>\n")
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(parts), encoding="utf-8")


def write_attention_map(
    path: str | os.PathLike[str], text: str, attention: Mapping[str, DocumentAttention], title: str
) -> None:
    """Draw a heat map of what ``[CLS]`` attends to in a document, a panel for each model.

    Punctuation, which often takes most, has no colour: it would pale everything else.

    Args:
        path: A ``.html`` file; replaced at once when it is complete.
        text: The document's text.
        attention: What :func:`~simlte_st.analysis.document_attention` gave for it.
        title: What stands above.

    Raises:
        ConfigurationError: Another format.
    """
    panels = {
        name: [
            Span(word.start, word.stop, 100 * word.weight, word.kind, coloured=word.kind != PUNCTUATION)
            for word in of_model.words
        ]
        for name, of_model in attention.items()
    }
    notes = ["Attention from [CLS] to each word; punctuation is not coloured."]
    for name, of_model in attention.items():
        notes += cut_notes(name, of_model.tokens, of_model.cut)
    write_heat_map(path, text, panels, title, unit="%", note=" ".join(notes))


def whole_characters(spans: Iterable[Span]) -> list[Span]:
    """Join spans that share a character, with the sum of their weights: tokens of some tokenizers are parts of one."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start < joined[-1].stop:
            last = joined.pop()
            span = last._replace(stop=max(last.stop, span.stop), weight=last.weight + span.weight)
        joined.append(span)
    return joined


class _Scale:
    """What colours mean: from the weight that has none to the one that has the strongest."""

    def __init__(self, weights: Sequence[float], unit: str, from_zero: bool) -> None:
        self.unit, self.most = unit, max(weights, default=0.0)
        self.least = 0.0 if from_zero else min(weights, default=0.0)
        width = self.most - self.least
        # As many digits as tell the ends of a narrow scale apart.
        self.digits = max(3, 2 + math.ceil(math.log10(self.most / width))) if 0 < width < math.inf else 3

    def heat(self, span: Span) -> float:
        width = self.most - self.least
        return _STRONGEST * (span.weight - self.least) / width if span.coloured and width else 0.0

    def shown(self, weight: float) -> str:
        return f"{weight:.{self.digits}g}{self.unit}"


def _marked(text: str, spans: Sequence[Span], scale: _Scale) -> str:
    """Mark the parts of a text, from the first to the last of them."""
    pieces = []
    before = spans[0].start if spans else 0
    for span in spans:
        if not 0 <= before <= span.start <= span.stop <= len(text):
            raise DataError(
                f"{span}: the parts of a heat map follow one another in its text, of {len(text):,} characters."
            )
        if not 0 <= span.weight < math.inf:
            raise DataError(f"{span}: a weight in a heat map is a number from 0 up.")
        hint = f"{span.label}: " * bool(span.label) + scale.shown(span.weight)
        pieces.append(
            f"{_escaped(text[before : span.start])}"
            f'<mark style="--heat:{scale.heat(span):.3f}" title="{_escaped(hint)}">'
            f"{_escaped(text[span.start : span.stop])}</mark>"
        )
        before = span.stop
    return "".join(pieces)


def _escaped(text: str) -> str:
    return html.escape(_CONTROL.sub("\ufffd", text), quote=True)
