"""Open sources of documents: files, folders, data sets, data frames, iterables and lists of these.

Texts are checked in ``reader.py``. Anything that fails before there is a text, such as a malformed line, becomes a
:class:`~simlte_st.reading.rows.Skip`, which the reader counts.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO, cast

from simlte_st.errors import DataError
from simlte_st.extras import check_installed
from simlte_st.files import is_model
from simlte_st.reading.arrow import FORM, dataset_table, frame_table, is_frame, is_hub, is_instance, open_hub
from simlte_st.reading.formats import (
    DESCRIPTION,
    MAIL,
    PLAIN_TEXT,
    TableFormat,
    TextFormat,
    format_by_content,
    format_by_suffix,
)
from simlte_st.reading.formats.html import has_tags, html_text
from simlte_st.reading.formats.mail import is_mail, looks_like_mail, read_mail
from simlte_st.reading.rows import (
    EXTRA,
    UNREADABLE,
    BrokenSourceError,
    Columns,
    Event,
    RawRow,
    Reading,
    Row,
    Skip,
    make_skip,
)
from simlte_st.reading.tables import folder_columns, item_rows, mappings_table, read_table, refuse_columns

PLACES = f"{DESCRIPTION}; {FORM}; or - for JSON lines from standard input"
"""The sources that a user can name, in words."""

_SHOWN_LENGTH = 200  # maximum length of a path in a message; longer items of a list are texts
_HUB_NAME = re.compile(r"hub:\S+")


@dataclass(frozen=True, slots=True)
class Source:
    """An open source; ``events`` reads it from the beginning."""

    name: str
    events: Callable[[], Iterator[Event]]
    size: Callable[[], int | None] = lambda: None  # maximum number of documents, if counting is cheap
    once: bool = False  # whether it can be read only once
    prefix: str = ""  # of positions and generated ids, if it is one of several sources
    places: tuple[Path, ...] = ()  # files and folders to read


def open_source(source: Any, reading: Reading) -> Source:
    """Open a source of any type."""
    opened = _opened(source, reading)
    if reading.mails:
        opened = _parsing(opened, looks_like_mail, functools.partial(_as_mail, reading=reading))
    if reading.html:
        check_installed("selectolax", EXTRA, "reading HTML")
        opened = _parsing(opened, has_tags, lambda row: replace(row, text=html_text(cast(str, row.text))))
    return opened


def _parsing(source: Source, suits: Callable[[str], bool], parse: Callable[[Row], Row]) -> Source:
    """Parse the texts that ``suits`` accepts; skip those that cannot be parsed."""

    def events() -> Iterator[Event]:
        for event in source.events():
            if isinstance(event, Row) and isinstance(event.text, str) and suits(event.text):
                try:
                    event = parse(event)
                except Exception as error:
                    event = make_skip(error, event.where, event.made_id)
            yield event

    return replace(source, events=events)


def _as_mail(row: Row, reading: Reading) -> Row:
    """Parse a raw e-mail; columns of the source take precedence."""
    mail = read_mail(cast(str, row.text).encode("utf-8", "surrogatepass"), reading)
    metadata = {**mail.columns, **(row.metadata or {})} if reading.metadata else None
    return replace(row, text=mail.text, metadata=metadata)


def _opened(source: Any, reading: Reading) -> Source:
    if isinstance(source, (str, os.PathLike)):
        return _open_place(source, reading)
    if isinstance(source, (list, tuple)) and _are_places(source):
        return _open_several(source, reading)
    name = f"the {type(source).__name__}"
    size = functools.partial(_length, source)
    if is_instance(source, "datasets", "Dataset", "IterableDataset"):
        return Source(name, lambda: read_table(dataset_table(source, name), reading), size)
    if is_frame(source):
        return Source(name, lambda: read_table(frame_table(source, name), reading), size)
    # Iterating over these would give column names, splits or numbers.
    other = isinstance(source, (Mapping, bytes, bytearray)) or hasattr(source, "columns")
    if hasattr(source, "__iter__") and not other:
        return Source(name, lambda: _items(source, name, reading), size, isinstance(source, Iterator))
    raise DataError(
        f"{type(source).__name__}: not a source of documents (pass one split of a DatasetDict; collect a "
        f"LazyFrame). Documents are read from {PLACES}; a list of these; a data set, data frame or a column of one; "
        "an iterable of strings, Documents or mappings with a text."
    )


def _length(source: Any) -> int | None:
    return None if (size := int(operator.length_hint(source, -1))) < 0 else size


def _items(source: Iterable[Any], name: str, reading: Reading) -> Iterator[Event]:
    rows = item_rows(source, name, reading)
    for row in rows:
        if isinstance(row, RawRow):  # rows before the first mapping need no columns
            yield from read_table(mappings_table(name, itertools.chain([row], rows)), reading)
            return
        yield row


# One place: a file, a folder or a data set on the Hub.


def _open_place(source: str | os.PathLike[str], reading: Reading) -> Source:
    if is_hub(source):
        return _open_hub(str(source), reading)
    name: str = os.fspath(source)
    if name == "-":
        name, source = "standard input (JSON lines)", _spool(sys.stdin)[1]
    path = Path(source)
    if not name or not os.path.exists(path):  # Path would treat an empty name as the working folder
        hint = " Addresses are read with stream=True." if "://" in name else ""
        raise DataError(f"There is no file or folder {name[:_SHOWN_LENGTH]!r}.{hint} Documents are read from {PLACES}.")
    known = _format(path, reading) or (format_by_content(path) if path.is_file() else None)
    if path.is_dir() or isinstance(known, TextFormat):
        refuse_columns(replace(reading, label_column=None), f"{path} holds text, which")
    if path.is_dir():
        return Source(
            name, lambda: _folder(path, reading), prefix=f"{os.path.basename(os.path.abspath(path))}/", places=(path,)
        )
    if isinstance(known, TextFormat):
        known.check_library()  # in a folder, such files are counted
        return Source(name, lambda: iter([known.row(path, path.name, reading)]), places=(path,))
    if known is None:
        raise DataError(f"{path} has an unknown format and is not text. Documents are read from {PLACES}.")
    if not path.is_file():  # tables are read more than once
        raise DataError(f"{path} is a pipe or a device, not a file: write its content to a file first.")
    size = functools.partial(known.count_rows, path)

    def events() -> Iterator[Event]:
        return read_table(replace(known.open(path, reading), name=name, folders=folder_columns(path)), reading)

    return Source(name, events, size, prefix=f"{path.name}:", places=(path,))


@functools.cache
def _spool(stream: TextIO) -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Keep a stream in a file until the process ends, since sources are read more than once."""
    folder = tempfile.TemporaryDirectory(prefix="simlte-")
    with (path := Path(folder.name, "standard-input.jsonl")).open("wb") as file:
        shutil.copyfileobj(stream.buffer, file)
    return folder, path


def _format(path: Path, reading: Reading) -> TextFormat | TableFormat | None:
    known = format_by_suffix(path)
    if reading.mails and known in (None, PLAIN_TEXT):
        return MAIL if is_mail(path) else known
    return known


def _open_hub(source: str, reading: Reading) -> Source:
    stream = functools.cache(functools.partial(open_hub, source))  # opened on first use

    def events() -> Iterator[Event]:
        opened = stream()
        import datasets
        import pyarrow

        try:
            yield from read_table(dataset_table(opened, source), reading)
        except (OSError, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
            raise BrokenSourceError(f"{source} broke off ({error})") from error

    return Source(source, events, prefix=f"{source}:")


def _folder(folder: Path, reading: Reading, relative: str = "") -> Iterator[Event]:
    """Yield the documents of the files in a folder, in the order of their paths.

    Model folders and linked folders, which may be circular, are ignored.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skip(relative or str(folder), UNREADABLE, error.strerror or str(error), id=relative)
        return
    for entry in entries:
        name, path = relative + entry.name, Path(entry.path)
        if entry.name.startswith("."):
            yield Skip(name, "hidden", ignored=True)
        elif entry.is_dir(follow_symlinks=False) and not is_model(path):
            yield from _folder(path, reading, name + "/")
        elif os.path.isdir(path):  # unlike Path and DirEntry, does not raise for circular links
            yield Skip(name, "linked folder" if entry.is_symlink() else "model folder", ignored=True)
        elif isinstance(known := _format(path, reading), TextFormat):
            yield known.row(path, name, reading)
        else:
            yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)


# Several places: paths are distinguished from texts, and ids contain the source.


def _open_several(places: Sequence[str | os.PathLike[str]], reading: Reading) -> Source:
    sources = [_open_place(place, reading) for place in places]
    if len(sources) == 1:
        return sources[0]
    folders = _distinct_folders([os.path.abspath(each.places[0]) if each.places else "" for each in sources])
    sources = [replace(each, prefix=folder + each.prefix) for each, folder in zip(sources, folders, strict=True)]

    def events() -> Iterator[Event]:
        for source in sources:
            yield from _prefixed(source)

    paths = tuple(place for source in sources for place in source.places)
    return Source(f"{len(sources)} sources", events, places=paths)


def _distinct_folders(paths: Sequence[str]) -> Iterator[str]:
    """Yield the fewest parent folders that distinguish each path from others with the same name."""
    parts = [Path(path).parts for path in paths]
    counts = Counter(own[-depth:] for own in {*parts} for depth in range(1, len(own)))
    for own in parts:
        depth = next((depth for depth in range(1, len(own)) if counts[own[-depth:]] == 1), 1)
        yield "".join(f"{folder}/" for folder in own[-depth:-1])


def is_place(item: object) -> bool:
    """Return whether an item of a list is a path, an existing file or folder, or a Hub name."""
    if isinstance(item, os.PathLike):
        return True
    if not isinstance(item, str) or len(item) > _SHOWN_LENGTH:
        return False
    return _HUB_NAME.fullmatch(item) is not None or os.path.lexists(item)


def _are_places(items: Sequence[object]) -> bool:
    """Return whether a list holds paths, not texts; the first item decides."""
    return bool(items) and is_place(items[0]) and all(isinstance(item, (str, os.PathLike)) for item in items)


def _prefixed(source: Source) -> Iterator[Event]:
    """Prefix positions and generated ids with the name of one of several sources."""
    for event in source.events():
        if not isinstance(event, Columns):
            event = replace(event, where=f"{source.prefix}{event.where}")
        if isinstance(event, Row) and event.made_id is not None:
            event = replace(event, made_id=f"{source.prefix}{event.made_id}")
        elif isinstance(event, Skip) and event.id is not None and source.prefix.endswith("/"):  # tables have ids
            event = replace(event, id=f"{source.prefix}{event.id}")
        yield event
