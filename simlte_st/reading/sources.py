"""Open sources of documents: files, folders, data sets, data frames, iterables and lists of these.

``reader.py`` checks the texts. Anything that fails before that, such as a malformed line, becomes a
:class:`~simlte_st.reading.rows.Skip`, which the reader counts.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from simlte_st.errors import DataError
from simlte_st.extras import check_installed
from simlte_st.files import is_model, refuse_full_disk, standard_input
from simlte_st.reading import tables
from simlte_st.reading.document import DocumentSource
from simlte_st.reading.formats import DESCRIPTION, TextFormat, find_format, format_by_content
from simlte_st.reading.formats.html import has_tags, html_text
from simlte_st.reading.formats.mail import looks_like_mail, read_mail
from simlte_st.reading.formats.records import item_rows
from simlte_st.reading.rows import EXTRA, BrokenSourceError, Columns, Event, RawRow, Reading, Row, Skip, make_skip

PLACES = f"{DESCRIPTION}; {tables.FORM}; or - for JSON lines from standard input"
"""Description of the sources that can be given by name."""

_MAX_PATH = 200  # characters; longer paths are cut in messages, and longer items of a list are texts
_HUB_NAME = re.compile(r"hub:\S+")


@dataclass(frozen=True, slots=True)
class Source:
    """An open source; each call to :meth:`events` reads it from the beginning."""

    name: str
    open: Callable[[], tables.Table | Iterator[Event | RawRow]]
    reading: Reading
    size: Callable[[], int | None] = lambda: None  # returns the maximum number of documents, if counting is cheap
    once: bool = False  # whether it can only be read once
    prefix: str = ""  # of positions and generated ids, if this is one of several sources
    places: tuple[Path, ...] = ()  # files and folders to read
    origin: DocumentSource = ()  # as passed by the user, to reopen it with other options

    def events(self) -> Iterator[Event]:
        """Yield the rows and, for a table, the chosen columns."""
        rows, reading = self.open(), self.reading
        if isinstance(rows, tables.Table):
            yield from tables.read_table(rows, reading)
            return
        for row in rows:
            if isinstance(row, RawRow):  # rows before the first mapping need no columns; the table reads the rest
                yield from tables.read_table(tables.mappings_table(self.name, itertools.chain([row], rows)), reading)
            else:
                yield row


def open_source(source: DocumentSource, reading: Reading) -> Source:
    """Open a source of any type."""
    plain = replace(_open(source, reading), origin=source)
    if reading.html:
        check_installed("selectolax", EXTRA, "reading HTML")
    if not (reading.mails or reading.html):
        return plain
    return replace(plain, open=lambda: (_parse_text(event, reading) for event in plain.events()))


def _parse_text(event: Event, reading: Reading) -> Event:
    """Parse a raw e-mail or HTML text, if requested, or skip it if that fails."""
    if not isinstance(event, Row) or not isinstance(event.text, str):
        return event
    text, metadata = event.text, event.metadata
    try:
        if reading.mails and looks_like_mail(text):
            mail = read_mail(text.encode("utf-8", "surrogatepass"), reading)
            text = mail.text
            metadata = {**mail.columns, **(metadata or {})} if reading.metadata else None
        text = html_text(text) if reading.html and has_tags(text) else text
    except Exception as error:
        return make_skip(error, event.where, event.generated_id)
    return replace(event, text=text, metadata=metadata)


def _open(source: DocumentSource, reading: Reading) -> Source:
    if isinstance(source, (str, os.PathLike)):
        return _open_place(source, reading)
    if isinstance(source, (list, tuple)) and _are_places(source):
        return _open_several(source, reading)
    name = f"the {type(source).__name__}"
    size = functools.partial(_length, source)
    if (open_table := tables.table_opener(source, name)) is not None:
        return Source(name, open_table, reading, size)
    # Iterating over these would yield column names, splits or numbers.
    is_other = isinstance(source, (Mapping, bytes, bytearray)) or hasattr(source, "columns")
    if isinstance(source, Iterable) and not is_other:
        return Source(name, lambda: item_rows(source, name, reading), reading, size, isinstance(source, Iterator))
    raise DataError(
        f"{type(source).__name__}: not a source of documents (for a DatasetDict, pass one split; for a "
        f"LazyFrame, call collect()). Pass {PLACES}; a list of these; a data set or data frame, or a column of one; "
        "an iterable of strings, Documents or mappings with a text."
    )


def _length(source: object) -> int | None:
    return None if (size := operator.length_hint(source, -1)) < 0 else size


# A single place: a file, a folder or a data set on the Hub.


def _open_place(source: str | os.PathLike[str], reading: Reading) -> Source:
    if tables.is_hub(source):
        return _open_hub(source, reading)
    name = os.fspath(source)
    if name == "-":
        name, source = "standard input (JSON lines)", _spool(standard_input())[1]
    path = Path(source)
    if not name or not os.path.exists(path):  # Path would take an empty name for the working folder
        hint = " Addresses are read with stream=True." if "://" in name else ""
        raise DataError(f"There is no file or folder {name[:_MAX_PATH]!r}.{hint} The source can be {PLACES}.")
    file_format = find_format(path, reading.mails) or (format_by_content(path) if path.is_file() else None)
    if path.is_dir() or isinstance(file_format, TextFormat):
        replace(reading, label_column=None).refuse_columns(f"{path} is a text file, which")
    if path.is_dir():
        prefix = f"{os.path.basename(os.path.abspath(path))}/"
        return Source(name, lambda: _folder_rows(path, reading), reading, prefix=prefix, places=(path,))
    if isinstance(file_format, TextFormat):
        file_format.check_library()  # in a folder, such files are skipped and counted instead
        return Source(name, lambda: iter([file_format.row(path, path.name, reading)]), reading, places=(path,))
    if file_format is None:
        raise DataError(f"{path} has an unknown format and is not text. The source can be {PLACES}.")
    if not path.is_file():  # tables are opened more than once
        raise DataError(f"{path} is a pipe or a device, not a file: write its contents to a file first.")
    size = functools.partial(file_format.count_rows, path)

    def open_table() -> tables.Table | Iterator[Event]:
        table = file_format.open(path, reading)
        folders = tables.folder_columns(path)
        return replace(table, name=name, folders=folders) if isinstance(table, tables.Table) else table

    return Source(name, open_table, reading, size, prefix=f"{path.name}:", places=(path,))


@functools.cache
def _spool(stream: BinaryIO) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Copy a stream to a file that lasts until the process ends, because sources are read more than once."""
    folder = tempfile.TemporaryDirectory(prefix="simlte-")
    path = Path(folder.name, "standard-input.jsonl")
    try:
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        refuse_full_disk(f"The temporary file {path}", error)
        raise
    return folder, path


def _open_hub(name: str, reading: Reading) -> Source:
    load = functools.cache(lambda: tables.load_hub(name))  # loaded on first use
    source = Source(name, lambda: tables.dataset_table(load(), name), reading, prefix=f"{name}:")

    def events() -> Iterator[Event]:
        import datasets
        import pyarrow

        try:
            yield from source.events()
        except (OSError, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
            raise BrokenSourceError(f"{name} was interrupted ({error})") from error

    return replace(source, open=events)


def _folder_rows(folder: Path, reading: Reading) -> Iterator[Row | Skip]:
    """Yield the documents in a folder's files, ordered by path.

    Model folders and linked folders (which may be circular) are ignored.
    """
    pending: list[tuple[str, os.DirEntry[str] | None]] = [("", None)]  # not recursion, because folders may be deep
    while pending:
        name, entry = pending.pop()
        path = folder if entry is None else Path(entry.path)
        if entry is None or (name.endswith("/") and not is_model(path)):
            try:
                entries = sorted(os.scandir(path), key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                yield make_skip(error, name or str(folder), name)
                continue
            for each in entries:
                is_folder = each.is_dir(follow_symlinks=False) and not each.name.startswith(".")
                pending.append((name + each.name + "/" * is_folder, each))
        elif entry.name.startswith("."):
            yield Skip(name, "hidden", ignored=True)
        elif os.path.isdir(path):  # os.path, because Path and DirEntry raise for circular links
            yield Skip(name, "linked folder" if entry.is_symlink() else "model folder", ignored=True)
        elif isinstance(file_format := find_format(path, reading.mails), TextFormat):
            yield file_format.row(path, name, reading)
        else:
            yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)


# Several places: ids start with the source's name.


def _open_several(places: Sequence[str | os.PathLike[str]], reading: Reading) -> Source:
    sources = [_open_place(place, reading) for place in places]
    if len(sources) == 1:
        return sources[0]
    folders = _distinct_folders([os.path.abspath(source.places[0]) if source.places else "" for source in sources])
    sources = [replace(source, prefix=folder + source.prefix) for source, folder in zip(sources, folders, strict=True)]
    paths = tuple(place for source in sources for place in source.places)
    name = f"{len(sources)} sources"
    return Source(name, lambda: itertools.chain.from_iterable(map(_prefix_events, sources)), reading, places=paths)


def _distinct_folders(paths: Sequence[str]) -> Iterator[str]:
    """Yield, for each path, the fewest parent folders that distinguish it from others with the same name."""
    parts = [Path(path).parts for path in paths]
    counts = Counter(names[-depth:] for names in {*parts} for depth in range(1, len(names)))
    for names in parts:
        depth = next((depth for depth in range(1, len(names)) if counts[names[-depth:]] == 1), 1)
        yield "".join(f"{folder}/" for folder in names[-depth:-1])


def is_place(item: object) -> bool:
    """Return whether an item of a list is a path, an existing file or folder, or a Hub name."""
    if isinstance(item, str) and len(item) <= _MAX_PATH:
        return _HUB_NAME.fullmatch(item) is not None or os.path.lexists(item)
    return isinstance(item, os.PathLike)


def _are_places(items: Sequence[object]) -> bool:
    """Return whether a list contains paths rather than texts, judging by the first item."""
    return bool(items) and is_place(items[0]) and all(isinstance(item, (str, os.PathLike)) for item in items)


def _prefix_events(source: Source) -> Iterator[Event]:
    """Prefix positions and generated ids with the name of one of several sources."""
    for event in source.events():
        if not isinstance(event, Columns):
            event = replace(event, where=f"{source.prefix}{event.where}")
        if isinstance(event, Row) and event.generated_id is not None:
            event = replace(event, generated_id=f"{source.prefix}{event.generated_id}")
        elif isinstance(event, Skip) and event.id is not None and source.prefix.endswith("/"):  # in a folder
            event = replace(event, id=f"{source.prefix}{event.id}")
        yield event
