"""Lists of sources: paths told apart from texts, and names for them that tell their documents apart."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simlte_st.data.formats import format_of
from simlte_st.data.rows import Columns, Event, ReadSettings, Row
from simlte_st.data.sources import files, hub
from simlte_st.data.sources.base import Source
from simlte_st.errors import DataError

_LONGEST_PATH = 200
"""No longer text is taken for a path in a list."""
_HUB_NAME = re.compile(r"hub:\S+")


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a list of paths and names of the Hub, to be read one after the other."""
    if not isinstance(source, (list, tuple)) or not _are_places(source):
        return None
    opened = [hub.open_source(place, settings) or files.open_source(place, settings) for place in source]
    sources = [each for each in opened if each is not None]  # a place is one or the other
    if len(sources) == 1:
        return sources[0]

    def events() -> Iterator[Event]:
        for each, label in zip(sources, _labels(source), strict=True):
            yield from _labelled(each, label)

    return Source(f"{len(sources)} sources", events, places=tuple(place for each in sources for place in each.places))


def is_place(item: object) -> bool:
    """Return whether an item of a list is a source of its own: a path, or the name of an existing file or folder."""
    if isinstance(item, os.PathLike):
        return True
    if not isinstance(item, str) or len(item) > _LONGEST_PATH:
        return False
    return _HUB_NAME.fullmatch(item) is not None or os.path.lexists(item)


def _seems_place(item: object) -> bool:
    """Return whether an item of a list reads like a path: words with nothing between them, or a suffix."""
    if not isinstance(item, str) or len(item) > _LONGEST_PATH:
        return False
    return len(item.split()) == 1 or format_of(Path(item)) is not None


def _are_places(items: Sequence[object]) -> bool:
    """Return whether a list is one of paths, or else of texts."""
    if not items or not all(isinstance(item, (str, os.PathLike)) for item in items):
        return False
    if all(map(is_place, items)):
        return True
    paths = [item for item in items if isinstance(item, os.PathLike) or _seems_place(item)]
    there = next((item for item in paths if is_place(item)), None)
    if there is None or 2 * len(paths) <= len(items):
        return False
    number, missing = next((number, item) for number, item in enumerate(items) if not is_place(item))
    raise DataError(
        f"There is no file or folder {str(missing)[:_LONGEST_PATH]!r} (item {number:,} of the list), but there is "
        f"{str(there)!r}: are these paths? Mend or leave out what is not there. Texts are told apart from paths "
        "as mappings: [{'text': ...}, ...]."
    )


def _labels(items: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Name each of several sources: by the last part of its path, or by all of it where others have the same."""
    paths = [Path(item).as_posix() if not hub.is_hub(item) else str(item) for item in items]
    names = [path if hub.is_hub(path) else Path(os.path.abspath(path)).name or path for path in paths]
    times = Counter(names)
    return [name if times[name] == 1 else path for name, path in zip(names, paths, strict=True)]


def _labelled(source: Source, label: str) -> Iterator[Event]:
    """Put the label of one of several sources into where its documents stand, and into the ids made for them.

    Ids that the source has stay as they are, unless an earlier source has the same. Of a folder the made ones become
    ``label/path/in/the/folder``, of a table ``label:number``; a file that is one document is called by its label.
    """

    def with_label(name: str) -> str:
        return label if source.joint is None else f"{label}{source.joint}{name}"

    for event in source.events():
        if isinstance(event, Columns):
            yield event
            continue
        event = replace(event, where=f"{label}, {event.where}" if source.joint == ":" else with_label(event.where))
        if isinstance(event, Row):
            event = replace(event, source=label, made_id=event.made_id and with_label(event.made_id))
        elif event.id is not None and source.joint != ":":  # ids that a table has stay as they are
            event = replace(event, id=with_label(event.id))
        yield event
