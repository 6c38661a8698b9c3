"""Sources among several: paths told apart from texts, and names for them that tell their documents apart."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from simlte_st.data.columns import Columns, Event, Row
from simlte_st.data.formatted import FORMATTED_SUFFIXES
from simlte_st.data.tables import TABLE_SUFFIXES
from simlte_st.errors import DataError

FILE_SUFFIXES = (".txt", ".md", *FORMATTED_SUFFIXES)
"""Files that hold one document each."""
SHOWN_LENGTH = 200
"""No longer text is taken for a path in a list, and no more of one is shown."""

_SUFFIXES = (*FILE_SUFFIXES, *TABLE_SUFFIXES)
_HUB_NAME = re.compile(r"hub:\S+")


def is_hub(source: object) -> bool:
    """Tell whether a source is a data set of the Hugging Face Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def is_place(item: object) -> bool:
    """Tell whether an item of a list is a source of its own: a path, or the name of a file or folder that is there."""
    if isinstance(item, os.PathLike):
        return True
    if not isinstance(item, str) or len(item) > SHOWN_LENGTH:
        return False
    return _HUB_NAME.fullmatch(item) is not None or os.path.lexists(item)


def _seems_place(item: object) -> bool:
    """Tell whether an item of a list reads like a path: no word of a text stands beside another in it, or a suffix."""
    if not isinstance(item, str) or len(item) > SHOWN_LENGTH:
        return False
    return len(item.split()) == 1 or item.removesuffix(".gz").removesuffix(".zst").lower().endswith(_SUFFIXES)


def are_places(items: Sequence[object]) -> bool:
    """Tell whether a list is one of paths, or else of texts.

    Raises:
        DataError: Most items read like paths and some are there, but others are not: as texts, names would be learned.
    """
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
        f"There is no file or folder {str(missing)[:SHOWN_LENGTH]!r} (item {number:,} of the list), but there is "
        f"{str(there)!r}: are these paths? Mend or leave out what is not there. Texts are told apart from paths "
        "as mappings: [{'text': ...}, ...]."
    )


def place_labels(items: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Name each of several sources: by the last part of its path, or by all of it where others have the same."""
    given = [Path(item).as_posix() if not is_hub(item) else str(item) for item in items]
    names = [label if is_hub(label) else Path(os.path.abspath(label)).name or label for label in given]
    times = Counter(names)
    return [name if times[name] == 1 else label for name, label in zip(names, given, strict=True)]


def labelled(events: Iterator[Event], source: str | os.PathLike[str], label: str) -> Iterator[Event]:
    """Tell of the documents of one of several sources, by the ids made for them, which it is, and where they stand.

    Ids that the source gives stay as they are, unless an earlier source has the same. Of a folder the made ones become
    ``label/path/in/the/folder``, of a table ``label:number``; a file that is one document is called by its label.
    """
    folder = not is_hub(source) and os.path.isdir(source)
    whole = not is_hub(source) and not folder and Path(source).suffix.lower() in FILE_SUFFIXES

    def named(name: str) -> str:
        return label if whole else f"{label}/{name}" if folder else f"{label}:{name}"

    for event in events:
        if isinstance(event, Columns):
            yield event
            continue
        event = replace(event, where=named(event.where) if folder or whole else f"{label}, {event.where}")
        if isinstance(event, Row):
            event = replace(event, source=label, made_id=event.made_id and named(event.made_id))
        yield event
