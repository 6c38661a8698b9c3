"""The page: one file with its data, its script and bokeh's, which asks no other machine for anything."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simlte_st.data.columns import CLASSES, Column
from simlte_st.exploration.figure import bokeh, make_figure

SHOWN = 3_000
"""Characters of a document that the page holds."""

_HOVER = 160  # characters of a text where the mouse points
_DECIMALS = 4
_MAP_LINKS = {
    "map": "Map", "topics": "Topics", "copies": "Near copies", "outliers": "Outliers", "corpus": "Corpus"
}  # fmt: skip


def page_data(
    ids: Sequence[str],
    titles: Sequence[str],
    texts: Sequence[str],
    columns: Sequence[Column],
    *,
    assigned: NDArray[np.int64],
    topic_names: Sequence[str],
    short_names: Sequence[str],
    name_places: NDArray[np.float32],
    near: NDArray[np.int64],
    cosines: NDArray[np.float32],
    groups: NDArray[np.int64],
) -> dict[str, Any]:
    """Gather what the script of the page needs, as JSON values."""
    members: dict[int, list[int]] = {}
    for row, group in enumerate(groups.tolist()):
        members.setdefault(group, []).append(row)
    starts = [" ".join(text[: 2 * _HOVER].split())[:_HOVER] for text in texts]
    names = [topic_names[topic] if topic >= 0 else "no topic" for topic in assigned.tolist()]
    return {
        "ids": list(ids),
        "titles": list(titles),
        "texts": [text[:SHOWN] for text in texts],
        "lengths": [len(text) for text in texts],
        "about": [f"{name}: {start}" for name, start in zip(names, starts, strict=True)],
        "topics": assigned.tolist(),
        "topic_names": list(topic_names),
        "short_names": list(short_names),
        "places": np.round(name_places, _DECIMALS).tolist(),
        "near": near.tolist(),
        "cosines": np.round(cosines.astype(np.float64), _DECIMALS).tolist(),
        "groups": [members[group] if len(members[group]) > 1 else [] for group in groups.tolist()],
        "columns": {column.name: column.shown() for column in columns},
        "colours": [scheme for column in columns if (scheme := _colours(column)) is not None],
    }


def _colours(column: Column) -> dict[str, Any] | None:
    """Return what a menu of colours needs of a column; None for texts."""
    if column.kind in ("number", "date"):
        there = [number for number in column.numbers if number is not None]
        ends = {"low": min(there), "high": max(there), "date": column.kind == "date"}
        return {"name": column.name, "values": list(column.numbers), **ends}
    if column.kind != "category":
        return None
    shown = column.shown()
    classes = sorted({value for value in shown if value})[:CLASSES]
    places = {value: place for place, value in enumerate(classes)}
    return {"name": column.name, "classes": classes, "values": [places.get(value, -1) for value in shown]}


def write_page(
    title: str,
    about: str,
    map_note: str,
    sections: Sequence[str],
    places: NDArray[np.float32],
    data: Mapping[str, Any],
) -> str:
    """Write the page."""
    packed = gzip.compress(json.dumps(data, ensure_ascii=False).encode("utf-8"), 6, mtime=0)
    body = Template(_part("page.map.html")).substitute(
        map_note=map_note,
        sections="\n".join(sections),
        data=base64.b64encode(packed).decode("ascii"),
        figure=as_script(make_figure(places)),
    )
    return frame_page(title, about, _MAP_LINKS, body, "page.js", ["bokeh", "bokeh-gl"])


def frame_page(
    title: str, about: str, links: Mapping[str, str], body: str, script: str, components: Sequence[str] = ("bokeh",)
) -> str:
    """Write the page around its content: head, style, header, bokeh's script and its own."""
    resources = bokeh("bokeh.resources").Resources(mode="inline", components=list(components))
    return Template(_part("page.frame.html")).substitute(
        title=escape(title),
        about=about,
        links=" ".join(f'<a href="#{name}">{text}</a>' for name, text in links.items()),
        style=_part("page.css"),
        body=body,
        bokeh="\n".join(f"<script>{script}</script>" for script in resources.js_raw),
        script=_part(script),
    )


def as_script(item: Mapping[str, Any]) -> str:
    """Write JSON values as they may stand in a ``<script>``."""
    return json.dumps(item).replace("<", "\\u003c")


def _part(name: str) -> str:
    return files("simlte_st.exploration").joinpath(name).read_text(encoding="utf-8")
