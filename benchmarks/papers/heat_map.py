"""A heat map over a text: a page of HTML that needs no other file, nor matplotlib."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.figures import UNSHOWABLE, check_figure
from simlte_st.errors import DataError
from simlte_st.files import atomic_path

HEAT_MAP_FORMATS = (".html",)

_STRONGEST = 0.85  # opacity of the ground of the heaviest word: its text is readable in dark and in light
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.7 sans-serif; max-width: 48em; margin: 2em auto; padding: 0 1em }
p { white-space: pre-wrap; overflow-wrap: anywhere }
mark { color: inherit; background: rgb(214 48 31 / var(--heat)); border-radius: 2px }
i { display: inline-block; width: 10em; height: 1em; margin: 0 0.5em; vertical-align: middle;
    background: linear-gradient(to right, rgb(214 48 31 / 0), rgb(214 48 31 / 0.85)) }
"""


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
    """Show a text with each of its parts on a ground as strong as its weight, as a page of HTML, dark or light."""
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
    return html.escape(UNSHOWABLE.sub("\ufffd", text), quote=True)
