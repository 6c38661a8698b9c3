"""Write the page of a corpus: one file with the data, the map and the sections."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.exploration.corpus import Corpus
from simlte_st.exploration.html import as_script, bokeh, clear_figure, figure_json, frame_page, page_part
from simlte_st.exploration.layout import Layout
from simlte_st.exploration.sections import Link, corpus_section, duplicates_section, topics_section
from simlte_st.exploration.topics import Topics
from simlte_st.reading.columns import CLASSES, Column
from simlte_st.views.duplicates import Duplicates

SHOWN = 3_000
"""Characters of each document that the page holds."""

_TIP_CHARACTERS = 160  # of a text in a tooltip
_TIP = (
    '<div style="max-width: 22rem; white-space: normal; font: 13px/1.4 system-ui, sans-serif">'
    "<b>@title</b><div>@about</div></div>"
)
_DECIMALS = 4
_SHORT = 2  # terms of a topic's name on the map
_LINKS = {"map": "Map", "topics": "Topics", "duplicates": "Near-duplicates", "corpus": "Corpus"}


@dataclass(frozen=True, slots=True)
class Exploration:
    """The content of the page, the table and the report.

    ``terms`` has the terms of each topic; ``near`` the rows of each document's nearest documents, and ``cosines`` their
    cosines. ``similarity`` is the threshold of near-duplicates.
    """

    corpus: Corpus
    topics: Topics
    terms: Sequence[Sequence[str]]
    near: NDArray[np.int64]
    cosines: NDArray[np.float32]
    layout: Layout
    duplicates: Duplicates
    similarity: float

    @property
    def topic_names(self) -> list[str]:
        """The name of each topic: its terms, joined by commas."""
        return [", ".join(terms) or f"topic {number}" for number, terms in enumerate(self.terms, start=1)]

    def name_places(self) -> NDArray[np.float32]:
        """Return a position for each topic's name: the document nearest to the median of the topic's positions."""
        middles = np.zeros((len(self.terms), 2), dtype=np.float32)
        for topic in range(len(middles)):
            own = self.layout.places[self.topics.assigned == topic]
            if len(own):
                middles[topic] = own[np.linalg.norm(own - np.median(own, axis=0), axis=1).argmin()]
        return middles


def build_page(found: Exploration) -> str:
    """Return the page as HTML."""
    corpus = found.corpus
    link: Link = lambda row: f'<a href="#document={row}"><bdi>{escape(corpus.titles[row])}</bdi></a>'  # noqa: E731
    sections = (
        topics_section(found.topic_names, found.topics, found.duplicates, link),
        duplicates_section(found.duplicates, found.similarity, corpus.texts, link),
        corpus_section(corpus.truncation, corpus.reading),
    )
    data = gzip.compress(json.dumps(page_data(found), ensure_ascii=False).encode("utf-8"), 6, mtime=0)
    map_note = (
        "Neighbours on the map are similar documents; directions and long distances mean nothing. "
        f"Trustworthiness {found.layout.trustworthiness:.2f} (1: all neighbours on the map are also nearest by vector)."
    )
    body = Template(page_part("page.map.html")).substitute(
        map_note=escape(map_note),
        sections="\n".join(sections),
        data=base64.b64encode(data).decode("ascii"),
        figure=as_script(map_figure(found.layout.places)),
    )
    about = f"{len(corpus.documents):,} documents · {len(found.terms)} topics"
    return frame_page(corpus.name, about, _LINKS, body, "page.js", ["bokeh", "bokeh-gl"])


def page_data(found: Exploration) -> dict[str, Any]:
    """Return the data of the page's script as JSON values."""
    corpus, names, assigned = found.corpus, found.topic_names, found.topics.assigned.tolist()
    starts = [" ".join(text[: 2 * _TIP_CHARACTERS].split())[:_TIP_CHARACTERS] for text in corpus.texts]
    named = [names[topic] if topic >= 0 else "no topic" for topic in assigned]
    return {
        "ids": [document.id for document in corpus.documents],
        "titles": list(corpus.titles),
        "texts": [text[:SHOWN] for text in corpus.texts],
        "lengths": [len(text) for text in corpus.texts],
        "about": [f"{name}: {start}" for name, start in zip(named, starts, strict=True)],
        "topics": assigned,
        "topic_names": names,
        "short_names": [", ".join(terms[:_SHORT]) for terms in found.terms],
        "places": np.round(found.name_places(), _DECIMALS).tolist(),
        "near": found.near.tolist(),
        "cosines": np.round(found.cosines.astype(np.float64), _DECIMALS).tolist(),
        "groups": found.duplicates.groups.tolist(),
        "columns": {column.name: column.short_values() for column in corpus.columns},
        "colours": [colours for column in corpus.columns if (colours := _colours(column)) is not None],
    }


def _colours(column: Column) -> dict[str, Any] | None:
    """Return the colour scheme of a column; None for texts."""
    if column.kind in ("number", "date"):
        known = [number for number in column.numbers if number is not None]
        ends = {"low": min(known), "high": max(known), "date": column.kind == "date"}
        return {"name": column.name, "values": list(column.numbers), **ends}
    if column.kind != "category":
        return None
    shown = column.short_values()
    classes = sorted({value for value in shown if value})[:CLASSES]
    places = {value: place for place, value in enumerate(classes)}
    return {"name": column.name, "classes": classes, "values": [places.get(value, -1) for value in shown]}


def map_figure(places: NDArray[np.float32]) -> dict[str, Any]:
    """Return the map as JSON.

    Its renderers are points, marks (around the open document and its nearest ones) and names (of topics). The page's
    script colours the points and fills the other two.
    """
    models = bokeh("bokeh.models")
    points = models.ColumnDataSource({"x": places[:, 0], "y": places[:, 1]})
    marks = models.ColumnDataSource({"x": [], "y": [], "size": []})
    names = models.ColumnDataSource({"x": [], "y": [], "text": [], "aside": [], "lower": []})
    figure = clear_figure(
        sizing_mode="stretch_both",
        output_backend="webgl",  # bokeh falls back to a canvas
        match_aspect=True,
        toolbar_location="above",
    )
    figure.axis.visible = False
    figure.grid.visible = False
    drawn = figure.scatter("x", "y", source=points, size=6, color="gray", line_color=None, name="points")
    drawn.nonselection_glyph = drawn.selection_glyph = None  # the script fades points
    figure.scatter("x", "y", source=marks, size="size", fill_color=None, line_width=2, name="marks")
    figure.text(
        "x",
        "y",
        "text",
        source=names,
        name="names",
        text_font={"value": "sans-serif"},  # the script measures names in this font
        text_font_size="12px",
        text_font_style="bold",
        x_offset="aside",
        y_offset="lower",
        text_align="center",
        text_baseline="middle",
        background_fill_alpha=0.75,
        padding=3,
        border_radius=3,
    )
    wheel, lasso = models.WheelZoomTool(), models.LassoSelectTool(renderers=[drawn], continuous=False)
    hover = models.HoverTool(
        renderers=[drawn],
        tooltips=_TIP,
        point_policy="snap_to_data",
        attachment="horizontal",
        limit=1,  # one tooltip where many points overlap
    )
    figure.add_tools(models.PanTool(), wheel, models.BoxZoomTool(), lasso, hover, models.ResetTool())
    figure.toolbar.active_scroll = wheel
    return figure_json(figure)
