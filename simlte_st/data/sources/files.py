"""Files of the known formats, and folders of those that hold a document each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.formats import DESCRIPTION, format_of
from simlte_st.data.formats.base import TextFormat
from simlte_st.data.rows import UNREADABLE, Event, ReadSettings, Skip
from simlte_st.data.sources import hub
from simlte_st.data.sources.base import Source
from simlte_st.data.tables import read_table
from simlte_st.errors import DataError
from simlte_st.files import is_model, nearest_place

PLACES = f"{DESCRIPTION}; or {hub.FORM}"
"""What a user can name as a source, in words."""

_SHOWN_LENGTH = 200  # of a path in a message


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a file or folder."""
    if not isinstance(source, (str, os.PathLike)):
        return None
    name: str = os.fspath(source)
    if not name.strip():  # Path takes an empty one for the working folder
        raise DataError(
            f"{name!r} names no file or folder. The working folder is '.'. Documents are read from {PLACES}."
        )
    path = Path(source)
    if not os.path.exists(path):
        shown = name if len(name) <= _SHOWN_LENGTH else name[:_SHOWN_LENGTH] + "..."
        if "://" in name:
            raise DataError(f"{shown!r} is an address: only training reads from there, with stream=True.")
        raise DataError(f"There is no file or folder {shown!r}.{nearest_place(path)} Documents are read from {PLACES}.")
    known = format_of(path)
    if path.is_dir() or isinstance(known, TextFormat):
        settings.columns.refuse(f"{path} holds text, which")
    if path.is_dir():
        return Source(name, lambda: _text_folder(path, settings), lambda: _count_texts(path), joint="/", places=(path,))
    if isinstance(known, TextFormat):
        known.check_library()  # in a folder, such files are counted where it is missing
        return Source(name, lambda: iter([known.row(path, path.name, settings)]), joint=None, places=(path,))
    if known is None:
        shown = "".join(path.suffixes[-2:]).lower() or "no suffix"
        raise DataError(f"{path} is of an unknown kind ({shown}). Documents are read from {PLACES}.")
    if not path.is_file():  # it is read more than once, and may never end
        raise DataError(f"{path} is a pipe or a device, not a file: write what it gives into a file first.")
    return Source(
        name,
        lambda: read_table(known.open(path, settings), settings.columns),
        lambda: known.count_rows(path),
        places=(path,),
    )


def _count_texts(folder: Path) -> int:
    return sum(isinstance(format_of(Path(name)), TextFormat) for _, _, names in os.walk(folder) for name in names)


def _text_folder(folder: Path, settings: ReadSettings, relative: str = "", root: Path | None = None) -> Iterator[Event]:
    """Return the files under a folder that hold a document each, in the order of their paths.

    Models are left out, whose cards and vocabularies are no documents, and files outside that a link leads to.
    """
    root = root or folder.resolve()
    # os.path, unlike Path and DirEntry, has an answer for links in a circle and for what may not be looked at.
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skip(relative or str(folder), UNREADABLE, error.strerror or str(error), id=relative)
        return
    for entry in entries:
        name, path = relative + entry.name, Path(entry.path)
        if entry.name.startswith("."):
            yield Skip(name, "hidden", ignored=True)
        elif entry.is_dir(follow_symlinks=False) and is_model(path):
            yield Skip(name, "model folder", ignored=True)
        elif entry.is_dir(follow_symlinks=False):
            yield from _text_folder(path, settings, name + "/", root)
        elif os.path.isdir(path):  # a link to a folder may lead back up here and never end
            yield Skip(name, "linked folder", ignored=True)
        elif not isinstance(known := format_of(path), TextFormat):
            yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)
        elif entry.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            yield Skip(name, "link out of the folder", ignored=True)
        else:
            yield known.row(path, name, settings)
