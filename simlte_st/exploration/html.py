"""Build self-contained HTML pages: the frame, tables, figures, and the sections about a corpus.

The sections show topics, near-duplicates with their differences, and the share of the text that the model reads. All
document texts are escaped in this module.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from importlib.resources import files
from itertools import islice, takewhile
from string import Template
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from simlte_st.exploration.analysis import Topics
from simlte_st.extras import require
from simlte_st.models.limits import Truncation
from simlte_st.reading.document import word_spans
from simlte_st.reading.documents import ReadReport
from simlte_st.views.duplicates import Duplicates, find_duplicates, run_similarity

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure

TYPICAL = 3
"""Number of typical documents shown for each topic."""

MAX_GROUPS = 100
"""Maximum number of groups of near-duplicates shown, largest first."""

MAX_COMPARED = 5
"""Maximum number of documents in a group that are compared with its first document."""

_BELOW = 2 / 3  # of the similarity of near-duplicates: pairs above this are shown as just below
_MAX_SCANNED = 20_000  # maximum number of documents compared to find such pairs
_MAX_WORDS = 2_000  # maximum number of words compared per text
_CONTEXT = 6  # number of words shown on each side of a difference
_MAX_EXCERPTS = 8  # maximum number of excerpts shown per pair of texts
_MAX_RUN = 40  # maximum number of words shown in a run of equal, deleted or inserted words

Link = Callable[[int], str]
"""Function that returns a link to the document at a row."""


def bokeh(module: str) -> ModuleType:
    """Import a module of bokeh."""
    return require(module, "explore", "the page")


def frame_page(
    title: str, about: str, links: Mapping[str, str], body: str, script: str, components: Sequence[str] = ("bokeh",)
) -> str:
    """Return a complete page, with its style, header, body and scripts (bokeh's and the page's own)."""
    resources = bokeh("bokeh.resources").Resources(mode="inline", components=list(components))
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


def plain_list(entries: Iterable[str]) -> str:
    """Return a list without bullets; the entries are HTML."""
    return f'<ul class="plain-list">{"".join(f"<li>{entry}</li>" for entry in entries)}</ul>'


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
    source = models.ColumnDataSource({"x": list(steps), "y": list(values)})
    figure = clear_figure(sizing_mode="stretch_width", height=280, x_axis_label="step", y_axis_label=name)
    figure.line("x", "y", source=source, line_width=2)
    points = figure.scatter("x", "y", source=source, size=5)
    hover = models.HoverTool(renderers=[points], tooltips=[("step", "@x"), (name, "@y{0.0000}")], mode="vline")
    figure.add_tools(hover, models.BoxZoomTool(), models.ResetTool())
    return figure_json(figure)


def difference(first: str, second: str) -> str:
    """Return a word-level diff of two texts as HTML, with up to eight excerpts from 2,000 words around the first."""
    old, new = ([text[start:stop] for start, stop in word_spans(text)] for text in (first, second))
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    start = max(0, common - _CONTEXT)
    old, new = (words[start : start + _MAX_WORDS] for words in (old, new))
    excerpts = []
    for operations in islice(SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT), _MAX_EXCERPTS):
        runs = []
        for operation, old_start, old_stop, new_start, new_stop in operations:
            old_run, new_run = _to_html(old[old_start:old_stop]), _to_html(new[new_start:new_stop])
            if operation == "equal":
                runs.append(old_run)
            else:
                runs += [f"<del>{old_run}</del>" * bool(old_run), f"<ins>{new_run}</ins>" * bool(new_run)]
        excerpts.append(" ".join(filter(None, runs)))
    return " … ".join(excerpts) or ("the same text" if first == second else "the same words")


def _to_html(words: Sequence[str]) -> str:
    return escape(" ".join(words[:_MAX_RUN])) + " …" * (len(words) > _MAX_RUN)


def topics_section(names: Sequence[str], topics: Topics, duplicates: Duplicates, link: Link) -> str:
    """Return the section with the table of topics and the agreement between document halves."""
    rows = []
    for topic, (name, size) in enumerate(zip(names, topics.sizes.tolist(), strict=True)):
        topic_link = f'<a href="#map" data-topic="{topic}"><bdi>{escape(name)}</bdi></a>'
        rows.append([topic_link, f"{size:,}", plain_list(map(link, typical_documents(topics, topic, duplicates)))])
    agreement = (
        f"{len(topics.centres)} topics. Random halves of the documents, clustered separately, agree by "
        f"{topics.stability.agreement:.2f} (adjusted mutual information: 0 is chance, 1 is full agreement)."
    )
    outliers = f"{topics.outliers:,} documents have no topic, because their halves would often land in different ones."
    notes = about(agreement) + about(outliers if topics.outliers else "")
    return section("topics", "Topics", notes, table(["Topic", "Documents", "Typical documents"], rows, (1,)))


def typical_documents(topics: Topics, topic: int, duplicates: Duplicates) -> list[int]:
    """Return the documents nearest to a topic's centre, skipping near-duplicates."""
    members = np.flatnonzero(topics.by_document == topic)
    nearest = members[np.argsort(-topics.cosines[members], kind="stable")]
    _, first = np.unique(duplicates.groups[nearest], return_index=True)
    typical: list[int] = nearest[np.sort(first)][:TYPICAL].tolist()
    return typical


def duplicates_section(duplicates: Duplicates, similarity: float, texts: Sequence[str], link: Link) -> str:
    """Return the section with the groups of near-duplicates, and with the pairs just below their similarity.

    Each document is shown with its similarity to the first document of its group, and the difference between the two.
    """
    report, overlap = duplicates.report, f"at least {similarity:.0%} of their five-word runs"

    def entry(first: int, row: int, start: str = "") -> tuple[float, str]:
        share = run_similarity(texts[first], texts[row])
        changes = f'<div class="difference">{difference(texts[first], texts[row])}</div>'
        return share, f'{start}{link(row)} <span class="number">{share:.1%}</span>{changes}'

    numbers, sizes = np.unique(duplicates.groups, return_counts=True)
    groups = []
    for place in np.argsort(-sizes, kind="stable")[: min(MAX_GROUPS, report.groups)].tolist():
        first, *rows = np.flatnonzero(duplicates.groups == numbers[place]).tolist()
        differences = plain_list(html for _, html in (entry(first, row) for row in rows[:MAX_COMPARED]))
        more = about(f"and {len(rows) - MAX_COMPARED:,} more" if len(rows) > MAX_COMPARED else "")
        size = f'<span class="number">{sizes[place]:,} documents</span>'
        groups.append(f"<div><h3>{link(first)} {size}</h3>{differences}{more}</div>")
    firsts = numbers[:_MAX_SCANNED]
    similar = firsts[find_duplicates([texts[row] for row in firsts], similarity=_BELOW * similarity).groups]
    pairs = [(first, row) for first, row in zip(similar.tolist(), firsts.tolist(), strict=True) if first != row]
    entries = sorted((entry(first, row, f"{link(first)} and ") for first, row in pairs[:MAX_GROUPS]), reverse=True)
    smaller = report.groups - len(groups)
    return section(
        "duplicates",
        "Near-duplicates",
        about(f"{report.summary()}; near-duplicates share {overlap}."),
        f'<div class="columns">{"".join(groups)}</div>' * bool(groups),
        about(f"and {smaller:,} smaller groups" if smaller else ""),
        "<h3>Just below</h3>" * bool(pairs),
        plain_list(html for _, html in entries) * bool(pairs),
        about(f"and {len(pairs) - MAX_GROUPS:,} more pairs" if len(pairs) > MAX_GROUPS else ""),
    )


def corpus_section(truncation: Truncation, reading: ReadReport | None) -> str:
    """Return the section with the share of the text that the model reads and the documents skipped."""
    parts = [f"<p>{escape(truncation.summary())}</p>"]
    if truncation.advice:
        parts.append(f'<p class="text">{escape(truncation.advice)}</p>')
    if reading is not None:
        parts.append(plain_list(map(escape, reading.summary().split("\n"))))
    return section("corpus", "The corpus", *parts)
