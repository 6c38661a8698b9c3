"""Build the page about a corpus, with its data, map and sections, and the accompanying table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

import numpy as np
import pyarrow as pa

from simlte_st.exploration import html, search_data
from simlte_st.exploration.analysis import Layout, Topics, typical_documents
from simlte_st.exploration.corpus import TABLE_COLUMNS, EncodedCorpus
from simlte_st.exploration.duplicates import compare_duplicates
from simlte_st.files import to_json
from simlte_st.models.vectors import Floats, Ints, TokenVectors
from simlte_st.views.duplicates import Duplicates

MAX_CHARACTERS = 2_500
"""Maximum number of characters of a document on the page, on average; at least of 1,000 documents in total."""

_FEWER_CHARACTERS = (1_500, 500)  # for pages that would exceed MAX_BYTES, because their documents have many words

MAX_BYTES = 5_000
"""Size of a page with search per document, and of 1,000 documents: the finest vectors that fit are used."""

_FRAME_BYTES = 600_000  # of bokeh and the scripts
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
    def typical(self) -> list[list[int]]:
        """Rows of each topic's typical documents."""
        return [typical_documents(self.topics, topic, self.duplicates) for topic in range(len(self.terms))]

    @property
    def topic_names(self) -> list[str]:
        """Name of each topic: its terms, separated by commas; without terms, a typical document."""
        pairs = zip(self.terms, self.typical, strict=True)
        return [", ".join(terms) or f"like {self.corpus.titles[rows[0]]}" for terms, rows in pairs]

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
    corpus, model, tokens, vectors = exploration.corpus, "", None, ""
    if exploration.model:
        rows, documents = corpus.searched_vectors()
        model, tokens = search_data.pack_model(exploration.model, corpus.texts, rows)
    content, lengths = page_data(exploration), [len(text) for text in corpus.texts]
    for characters in (MAX_CHARACTERS, *_FEWER_CHARACTERS):
        limit = text_limit(lengths, characters)
        content["texts"] = [text[:limit] for text in corpus.texts]
        data = html.pack(to_json(content, indent=None).encode("utf-8"))
        room = MAX_BYTES * max(1_000, len(corpus.documents)) - len(data) - len(model) - _FRAME_BYTES
        if tokens is not None:
            vectors = search_data.pack_vectors(tokens, documents, room)
        if len(vectors) <= room:
            break
    scripts = "\n".join(map(html.read_asset, ("page.search.js", "page.sections.js")))
    assets = {"data": data, "model": model, "vectors": vectors, "scripts": scripts}
    body = Template(html.read_asset("page.map.html")).substitute(assets)
    about = f"{len(corpus.documents):,} documents · {len(exploration.terms)} topics"
    return html.frame_page(corpus.name, about, _LINKS, body, "page.js")


def page_data(exploration: Exploration) -> dict[str, object]:
    """Return the data for the page's script, except the texts, as JSON values."""
    corpus, topics, layout = exploration.corpus, exploration.topics, exploration.layout
    return {
        "ids": [document.id for document in corpus.documents],
        "titles": list(corpus.titles),
        "lengths": [len(text) for text in corpus.texts],
        "topics": topics.by_document.tolist(),
        "topic_names": exploration.topic_names,
        "terms": exploration.terms,
        "typical": exploration.typical,
        "agreement": topics.stability.agreement,
        "near": exploration.neighbours.tolist(),
        "cosines": np.round(exploration.cosines.astype(np.float64), 4).tolist(),
        "groups": exploration.duplicates.groups.tolist(),
        "duplicates": compare_duplicates(exploration.duplicates, exploration.similarity, corpus.texts),
        "columns": [
            {"name": column.name, "kind": column.kind, "values": column.short_values(), "numbers": column.numbers}
            for column in corpus.columns
        ],
        "figure": map_figure(layout.places),
        "trustworthiness": layout.trustworthiness,
        "truncation": [corpus.truncation.summary(), corpus.truncation.advice],
        "reading": corpus.reading.summary() if corpus.reading else "",
        "words": exploration.words,
    }


def text_limit(lengths: Sequence[int], characters: int) -> int:
    """Return the number of characters to show of each document: ``characters`` on average, where possible."""
    shortest = np.sort(lengths)
    remaining = characters * max(1_000, len(lengths)) - np.concatenate([[0], np.cumsum(shortest)[:-1]])
    return int(max(remaining // np.arange(len(lengths), 0, -1)))


def map_figure(places: Floats) -> dict[str, object]:
    """Return the map as JSON.

    It has three renderers: points, marks (around the open document and its nearest documents) and names (of topics).
    The page's script colours the points, fills in the marks and names, and sets their fonts.
    """
    models = html.bokeh("bokeh.models")
    figure = html.clear_figure(sizing_mode="stretch_both", match_aspect=True, toolbar_location="above")
    figure.output_backend = "webgl"  # bokeh falls back to a canvas if WebGL is missing
    figure.axis.visible = figure.grid.visible = False
    points = figure.scatter(places[:, 0], places[:, 1], size=6, color="gray", line_color=None, name="points")
    points.nonselection_glyph = points.selection_glyph = None  # the page's script fades points itself
    figure.scatter([], [], size=[], fill_color=None, line_width=2, name="marks")
    figure.text([], [], [], x_offset=[], y_offset=[], name="names")
    wheel, lasso = models.WheelZoomTool(), models.LassoSelectTool(renderers=[points], continuous=False)
    # One tooltip where many points overlap; the page's script sets its text.
    hover = models.HoverTool(renderers=[points], limit=1, point_policy="snap_to_data", attachment="horizontal")
    figure.add_tools(models.PanTool(), wheel, models.BoxZoomTool(), lasso, hover, models.ResetTool())
    figure.toolbar.active_scroll = wheel
    return html.figure_json(figure)
