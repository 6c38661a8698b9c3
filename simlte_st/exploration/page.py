"""Build the page about a corpus, with its data, map and sections, and the accompanying table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from string import Template

import numpy as np
import pyarrow as pa

from simlte_st.exploration import html, search_data
from simlte_st.exploration.analysis import Layout, Topics
from simlte_st.exploration.corpus import TABLE_COLUMNS, EncodedCorpus
from simlte_st.files import to_json
from simlte_st.models.vectors import Floats, Ints, TokenVectors
from simlte_st.reading.document import CLASSES, Column
from simlte_st.views.duplicates import Duplicates

MAX_CHARACTERS = 2_500
"""Maximum number of characters of a document on the page, on average; at least of 1,000 documents in total."""

MAX_BYTES = 5_000
"""Size of a page with search per document, and of 1,000 documents: the finest vectors that fit are used."""

_TIP = (
    '<div style="max-width: 22rem; white-space: normal; font: 13px/1.4 system-ui, sans-serif">'
    "<b>@title</b><div>@about</div></div>"
)
_FRAME_BYTES = 600_000  # of bokeh and the scripts
_DECIMALS = 4
_MAP_TERMS = 2  # number of terms in a topic's name on the map
_LINKS = {"map": "Map", "topics": "Topics", "duplicates": "Near-duplicates", "corpus": "Corpus"}


@dataclass(frozen=True, slots=True)
class Exploration:
    """Content of the page, the table and the report.

    ``terms`` holds the terms of each topic; ``neighbours`` holds the rows of each document's nearest documents, and
    ``cosines`` their cosine similarities. ``similarity`` is the threshold for near-duplicates. ``words`` holds the
    words to search, and ``model`` a static model that the page's script can use.
    """

    corpus: EncodedCorpus
    topics: Topics
    terms: Sequence[Sequence[str]]
    neighbours: Ints
    cosines: Floats
    layout: Layout
    duplicates: Duplicates
    similarity: float
    words: Mapping[str, object] | None = None
    model: TokenVectors | None = None

    @property
    def topic_names(self) -> list[str]:
        """Name of each topic: its terms, separated by commas; without terms, a typical document."""
        typical = [html.typical_documents(self.topics, topic, self.duplicates)[0] for topic in range(len(self.terms))]
        names = [", ".join(terms) for terms in self.terms]
        return [name or f"like {self.corpus.titles[row]}" for name, row in zip(names, typical, strict=True)]

    def name_places(self) -> Floats:
        """Return a position for each topic's name: that of the document nearest to the topic's median position."""
        name_places = np.zeros((len(self.terms), 2), dtype=np.float32)
        for topic in range(len(name_places)):
            places = self.layout.places[self.topics.by_document == topic]
            if len(places):
                name_places[topic] = places[np.linalg.norm(places - np.median(places, axis=0), axis=1).argmin()]
        return name_places

    def table(self) -> pa.Table:
        """Return a table with a row per document, :data:`TABLE_COLUMNS` and the columns of the source."""
        topics, groups = self.topics.by_document.tolist(), self.duplicates.groups
        ids, names, sizes = [document.id for document in self.corpus.documents], self.topic_names, np.bincount(groups)
        arrays = [
            pa.array(ids, pa.string()),
            pa.array(self.layout.places[:, 0], pa.float32()),
            pa.array(self.layout.places[:, 1], pa.float32()),
            pa.array(topics, pa.int32()),
            pa.array([names[topic] if topic >= 0 else None for topic in topics], pa.string()),
            pa.array([ids[group] if sizes[group] > 1 else None for group in groups], pa.string()),
            pa.array(self.corpus.texts, pa.string()),
        ]
        columns = {column.name: column.to_arrow() for column in self.corpus.columns}
        return pa.table({**dict(zip(TABLE_COLUMNS, arrays, strict=True)), **columns})


def build_page(exploration: Exploration) -> str:
    """Return the page as HTML."""
    corpus, duplicates = exploration.corpus, exploration.duplicates

    def link(row: int) -> str:
        return f'<a href="#document={row}"><bdi>{escape(corpus.titles[row])}</bdi></a>'

    def link_with_id(row: int) -> str:
        return f'{link(row)} <span class="id">{escape(corpus.documents[row].id)}</span>'

    sections = (
        html.topics_section(exploration.topic_names, exploration.topics, duplicates, link),
        html.duplicates_section(duplicates, exploration.similarity, corpus.texts, link_with_id),
        html.corpus_section(corpus.truncation, corpus.reading),
    )
    map_note = (
        "Neighbours on the map are similar documents; directions and long distances mean nothing. Trustworthiness: "
        f"{exploration.layout.trustworthiness:.2f} (1 if all neighbours on the map are also nearest by vector)."
    )
    parts, vectors = page_data(exploration), ""
    if model := exploration.model:
        seen = search_data.seen_tokens(model, corpus.texts)
        parts["model"] = search_data.tokens(model, seen)
    data = html.pack(to_json(parts, indent=None).encode("utf-8"))
    if model:
        room = MAX_BYTES * max(1_000, len(corpus.documents)) - len(data) - _FRAME_BYTES
        vectors = search_data.pack_vectors(model.table[seen], corpus.vectors, room)
    body = Template(html.read_asset("page.map.html")).substitute(
        map_note=escape(map_note),
        sections="\n".join(sections),
        data=data,
        vectors=vectors,
        search=html.read_asset("page.search.js"),
        figure=html.as_script(map_figure(exploration.layout.places)),
    )
    about = f"{len(corpus.documents):,} documents · {len(exploration.terms)} topics"
    return html.frame_page(corpus.name, about, _LINKS, body, "page.js", components=["bokeh", "bokeh-gl"])


def page_data(exploration: Exploration) -> dict[str, object]:
    """Return the data for the page's script as JSON values."""
    corpus, names, topics = exploration.corpus, exploration.topic_names, exploration.topics.by_document.tolist()
    limit = text_limit([len(text) for text in corpus.texts])
    return {
        "ids": [document.id for document in corpus.documents],
        "titles": list(corpus.titles),
        "texts": [text[:limit] for text in corpus.texts],
        "lengths": [len(text) for text in corpus.texts],
        "topics": topics,
        "topic_names": names,
        "short_names": [", ".join(terms[:_MAP_TERMS]) for terms in exploration.terms],
        "places": np.round(exploration.name_places(), _DECIMALS).tolist(),
        "near": exploration.neighbours.tolist(),
        "cosines": np.round(exploration.cosines.astype(np.float64), _DECIMALS).tolist(),
        "groups": exploration.duplicates.groups.tolist(),
        "columns": {column.name: column.short_values() for column in corpus.columns},
        "colours": [_colours(column) for column in corpus.columns if column.kind != "text"],
        "words": exploration.words,
    }


def text_limit(lengths: Sequence[int]) -> int:
    """Return the number of characters to show of each document: :data:`MAX_CHARACTERS` on average, where possible."""
    shortest = np.sort(lengths)
    remaining = MAX_CHARACTERS * max(1_000, len(lengths)) - np.concatenate([[0], np.cumsum(shortest)[:-1]])
    return int(max(remaining // np.arange(len(lengths), 0, -1)))


def _colours(column: Column) -> dict[str, object]:
    """Return the colour scheme of a column of numbers, dates or classes."""
    if column.kind != "category":
        numbers = [number for number in column.numbers if number is not None]
        ends = {"low": min(numbers), "high": max(numbers), "date": column.kind == "date"}
        return {"name": column.name, "values": list(column.numbers), **ends}
    values = column.short_values()
    classes = sorted({*values} - {""})[:CLASSES]
    indices = {value: index for index, value in enumerate(classes)}
    return {"name": column.name, "classes": classes, "values": [indices.get(value, -1) for value in values]}


def map_figure(places: Floats) -> dict[str, object]:
    """Return the map as JSON.

    It has three renderers: points, marks (around the open document and its nearest documents) and names (of topics).
    The page's script colours the points and fills in the marks and names.
    """
    models = html.bokeh("bokeh.models")
    documents = models.ColumnDataSource({"x": places[:, 0], "y": places[:, 1]})
    marks = models.ColumnDataSource({"x": [], "y": [], "size": []})
    names = models.ColumnDataSource({"x": [], "y": [], "text": [], "aside": [], "lower": []})
    figure = html.clear_figure(sizing_mode="stretch_both", match_aspect=True, toolbar_location="above")
    figure.output_backend = "webgl"  # bokeh falls back to a canvas if WebGL is missing
    figure.axis.visible = False
    figure.grid.visible = False
    points = figure.scatter("x", "y", source=documents, size=6, color="gray", line_color=None, name="points")
    points.nonselection_glyph = points.selection_glyph = None  # the page's script fades points itself
    figure.scatter("x", "y", source=marks, size="size", fill_color=None, line_width=2, name="marks")
    font = {"text_font_size": "12px", "text_font_style": "bold"}
    position = {"x_offset": "aside", "y_offset": "lower", "text_align": "center", "text_baseline": "middle"}
    box = {"background_fill_alpha": 0.75, "padding": 3, "border_radius": 3}
    names_font = {"value": "sans-serif"}  # the page's script measures the names in this font
    figure.text("x", "y", "text", source=names, name="names", text_font=names_font, **font, **position, **box)
    wheel, lasso = models.WheelZoomTool(), models.LassoSelectTool(renderers=[points], continuous=False)
    hover = models.HoverTool(renderers=[points], tooltips=_TIP, point_policy="snap_to_data", attachment="horizontal")
    hover.limit = 1  # show one tooltip where many points overlap
    figure.add_tools(models.PanTool(), wheel, models.BoxZoomTool(), lasso, hover, models.ResetTool())
    figure.toolbar.active_scroll = wheel
    return html.figure_json(figure)
