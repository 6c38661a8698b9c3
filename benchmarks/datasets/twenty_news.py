"""20 Newsgroups (Lang, 1995), in the version split by date."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.datasets.labelled import class_folders
from simlte_st.data.tables import Event, Row

_FOLDERS = {"20news-bydate-train": "train", "20news-bydate-test": "test"}


def posts(path: Path) -> Iterator[Event]:
    """Read the folder that ``20news-bydate.tar.gz`` unpacks to: a folder a split, a folder a newsgroup, Latin-1.

    A folder of newsgroups without splits (20news-18828, 20news-19997) is read too. Of each post the header, all before
    the first blank line, is left out.
    """
    splits: list[tuple[Path, str | None]] = [
        (path / name, part) for name, part in _FOLDERS.items() if (path / name).is_dir()
    ]
    for place, part in splits or [(path, None)]:
        for event in class_folders(place, "latin-1", part):
            if isinstance(event, Row) and isinstance(event.text, str):
                event = replace(event, text=event.text.partition("\n\n")[2])
            yield event
