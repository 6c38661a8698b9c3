"""Build self-contained HTML pages: the frame, tables and figures. All texts are escaped in this module."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING

from simlte_st.extras import require

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure


def bokeh(module: str) -> ModuleType:
    """Import a module of bokeh."""
    return require(module, "explore", "the page")


def frame_page(title: str, about: str, links: Mapping[str, str], body: str, script: str) -> str:
    """Return a complete page, with its style, header, body and scripts (bokeh's and the page's own)."""
    resources = bokeh("bokeh.resources").Resources(mode="inline", components=["bokeh", "bokeh-gl"])
    return Template(read_asset("page.frame.html")).substitute(
        title=escape(title),
        about=about,
        links=" ".join(f'<a href="#{name}">{text}</a>' for name, text in links.items()),
        style=read_asset("page.css"),
        body=body,
        bokeh=pack("\n".join(resources.js_raw).encode("utf-8")),
        script=read_asset(script),
    )


def read_asset(name: str) -> str:
    """Read a template, style sheet or script of a page."""
    return files("simlte_st.exploration").joinpath(name).read_text(encoding="utf-8")


def pack(content: bytes, strategy: int = zlib.Z_DEFAULT_STRATEGY) -> str:
    """Compress content in gzip's format, and encode it in base64, for ``unpack`` in the page."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS, 9, strategy)
    return base64.b64encode(compressor.compress(content) + compressor.flush()).decode("ascii")


def as_script(figure: Mapping[str, object]) -> str:
    """Return JSON that is safe inside a ``<script>``."""
    return json.dumps(figure).replace("<", "\\u003c")


def section(name: str, title: str, *parts: str) -> str:
    """Return a section with a heading."""
    return f'<section id="{name}" aria-label="{title}"><h2>{title}</h2>{"".join(parts)}</section>'


def about(text: str) -> str:
    """Return an explanatory paragraph, or an empty string if there is no text."""
    return f'<p class="about">{escape(text)}</p>' if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table. The cells are HTML; the columns in ``right`` are right-aligned."""
    attributes = [' class="right"' if column in right else "" for column in range(len(header))]

    def line(cells: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}{attribute}>{cell}</{tag}>" for cell, attribute in zip(cells, attributes, strict=True))

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{line(header, "th")}</tr></thead><tbody>{body}</tbody></table></div>'


def clear_figure(**options: object) -> Figure:
    """Return a bokeh figure with a transparent background and no tools."""
    clear = {"background_fill_alpha": 0, "border_fill_alpha": 0, "outline_line_color": None}
    figure: Figure = bokeh("bokeh.plotting").figure(tools="", **clear, **options)
    return figure


def figure_json(figure: Figure) -> dict[str, object]:
    """Return a figure as JSON for ``Bokeh.embed.embed_item``."""
    figure.toolbar.logo = None
    return dict(bokeh("bokeh.embed").json_item(figure))


def make_curve(steps: Sequence[int], values: Sequence[float], name: str) -> dict[str, object]:
    """Plot a curve of logged values and return it as JSON."""
    models = bokeh("bokeh.models")
    figure = clear_figure(sizing_mode="stretch_width", height=280, x_axis_label="step", y_axis_label=name)
    figure.line(list(steps), list(values), line_width=2)
    points = figure.scatter(list(steps), list(values), size=5)
    hover = models.HoverTool(renderers=[points], tooltips=[("step", "@x"), (name, "@y{0.0000}")], mode="vline")
    figure.add_tools(hover, models.BoxZoomTool(), models.ResetTool())
    return figure_json(figure)
