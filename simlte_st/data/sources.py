"""The forms documents come in, told apart: text files, tables, data sets, data frames, the Hub, items of an iterable.

Nothing here judges a text; that is the reader's work (``documents.py``). What can go wrong before there is a text (a
malformed line, a file that cannot be decoded) is given as a ``Skip``, so that the reader can count it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.data.columns import MISSING_COLUMN, Columns, Event, RawRow, Row, Skip, read_table
from simlte_st.data.document import Document
from simlte_st.data.formatted import FORMATTED_SUFFIXES, MISSING_EXTRA, formatted_text, require_reader
from simlte_st.data.json_files import json_items
from simlte_st.data.places import FILE_SUFFIXES, SHOWN_LENGTH, are_places, is_hub, is_place, labelled, place_labels
from simlte_st.data.streams import TOO_LONG, BadTextError, BrokenSourceError, decode_text
from simlte_st.data.tables import dataset_table, frame_table, mappings_table, open_table, table_suffix
from simlte_st.errors import DataError, MissingExtraError
from simlte_st.files import is_model

UNREADABLE = "unreadable"
NO_FILE = "pipe, socket or device"
NOT_A_STRING = "not a string"
PLACES = (
    "a folder of .txt, .md, .html, .pdf or .docx files, or one such file; a .jsonl, .ndjson, .json, .csv or .tsv file "
    "(also .gz or .zst) or a .parquet file; hub:NAME[:CONFIG][:SPLIT]"
)
FORMS = (
    f"{PLACES}; a list of these; a datasets.Dataset or IterableDataset; a pandas or polars DataFrame, or a column of "
    "one; or an iterable of strings, of Documents or of mappings with a text"
)

_SPLIT = re.compile(r"(train|training|validation|valid|val|dev|test|unsupervised)([^a-z].*)?")
_HUB_SECONDS = 5

Events = Callable[[], Iterator[Event]]
"""Reads a source from its beginning."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read: the columns asked for, the encoding of files, and the longest text wanted."""

    asked: Columns
    encoding: str
    max_characters: int


def open_source(source: Any, how: Reading) -> tuple[str, Events]:
    """Tell which form a source has.

    Args:
        source: Anything :func:`~simlte_st.data.read_documents` takes, but its own readers.
        how: How to read it.

    Returns:
        Its name, and what reads it.

    Raises:
        DataError: It does not exist, or is of no known form.
    """
    if isinstance(source, str) and is_hub(source):
        return source, _hub(source, how.asked)
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source), _path(Path(source), os.fspath(source), how)
    name = f"the {type(source).__name__}"
    if isinstance(source, (list, tuple)) and are_places(source):
        if len(source) == 1:
            return open_source(source[0], how)
        opened = [open_source(each, how)[1] for each in source]
        return f"{len(source)} sources", lambda: itertools.chain.from_iterable(
            labelled(events(), *place) for events, *place in zip(opened, source, place_labels(source), strict=True)
        )
    if _is(source, "pyarrow", "Table"):
        import datasets

        source = datasets.Dataset(source)
    if _is(source, "datasets", "Dataset", "IterableDataset"):
        return name, lambda: read_table(dataset_table(source, name), how.asked)
    if _is(source, "pandas", "DataFrame") or _is(source, "polars", "DataFrame"):
        return name, lambda: read_table(frame_table(source, name), how.asked)
    if isinstance(source, (Mapping, bytes, bytearray)) or not hasattr(source, "__iter__") or hasattr(source, "columns"):
        # All of these can be iterated, or nearly, but would give column names, splits or numbers for documents.
        raise DataError(
            f"A {type(source).__name__} is no source of documents (of a DatasetDict, pass one split; collect a "
            f"LazyFrame). Documents are read from {FORMS}."
        )
    return name, lambda: _items(source, name, how.asked)


def source_size(source: Any) -> int | None:
    """Tell how many rows, items or text files a source has, where that costs nothing to know; else None."""
    if isinstance(source, (str, os.PathLike)):
        place: str = os.fspath(source)
        if os.path.isdir(place):
            return sum(name.lower().endswith(FILE_SUFFIXES) for _, _, names in os.walk(place) for name in names)
        if table_suffix(Path(place)) == ".parquet" and os.path.isfile(place):
            import pyarrow
            import pyarrow.parquet as pq

            with contextlib.suppress(OSError, pyarrow.ArrowException):  # who reads it is told what is wrong with it
                return int(pq.read_metadata(place).num_rows)
        return None
    if isinstance(source, (list, tuple)) and source and is_place(source[0]):
        return None  # each may be a table
    size = int(operator.length_hint(source, -1))
    return None if size < 0 else size


def _is(source: object, module: str, *names: str) -> bool:
    """Whether a source is of a library's class; who holds one has imported the library, so it is not imported here."""
    library = sys.modules.get(module)
    return isinstance(source, tuple(getattr(library, name) for name in names if hasattr(library, name)))


def _path(path: Path, given: str, how: Reading) -> Events:
    if not os.path.exists(path):
        shown = given if len(given) <= SHOWN_LENGTH else given[:SHOWN_LENGTH] + "..."
        raise DataError(f"There is no file or folder {shown!r}. Documents are read from {PLACES}.")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in FILE_SUFFIXES:
        how.asked.refuse(f"{path} holds text, which")
        if suffix in FORMATTED_SUFFIXES and not path.is_dir():
            require_reader(suffix)  # in a folder, such files are counted where the extra is missing
        return lambda: _text_folder(path, how) if path.is_dir() else iter([text_row(path, path.name, how)])
    if table_suffix(path) is None:
        shown = "".join(path.suffixes[-2:]).lower() or "no suffix"
        raise DataError(f"{path} is of an unknown kind ({shown}). Documents are read from {PLACES}.")
    if not path.is_file():  # it is read more than once, and may never end
        raise DataError(f"{path} is a pipe or a device, not a file: write what it gives into a file first.")
    return lambda: _table_file(path, how)


def _table_file(path: Path, how: Reading) -> Iterator[Event]:
    if table_suffix(path) == ".json":
        items = json_items(path, how.encoding, how.max_characters)
        if items is not None:
            return _items(items, str(path), how.asked)
    return read_table(open_table(path, how.encoding, how.max_characters), how.asked)


def text_row(path: Path, name: str, how: Reading) -> Row | Skip:
    """Read a file that holds one document as a row, or tell why it gives none; the name is its id."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):  # a pipe or a device may never end
            return Skip(name, NO_FILE)
        if path.suffix.lower() in FORMATTED_SUFFIXES:
            return Row(name, name, formatted_text(path, how.encoding, how.max_characters))
        # No encoding in use takes more than four bytes a character: a larger file need not be read to be too long.
        if (size := found.st_size) > 4 * how.max_characters + 4:
            return Skip(name, TOO_LONG, f"{size:,} bytes")
        return Row(name, name, decode_text(path.read_bytes(), how.encoding))
    except BadTextError as error:
        return Skip(name, *error.args)
    except MissingExtraError:
        return Skip(name, MISSING_EXTRA)
    except OSError as error:
        return Skip(name, UNREADABLE, error.strerror or str(error))


def _text_folder(folder: Path, how: Reading, relative: str = "", root: Path | None = None) -> Iterator[Event]:
    """Give the files under a folder that hold a document each, in the order of their paths.

    Models are left out, whose cards and vocabularies are no documents, and files outside that a link leads to.
    """
    root = root or folder.resolve()
    # os.path, unlike Path and DirEntry, has an answer for links in a circle and for what may not be looked at.
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield Skip(relative or str(folder), UNREADABLE, error.strerror or str(error))
        return
    for entry in entries:
        name, path = relative + entry.name, Path(entry.path)
        if entry.name.startswith("."):
            yield Skip(name, "hidden", ignored=True)
        elif entry.is_dir(follow_symlinks=False) and is_model(path):
            yield Skip(name, "model folder", ignored=True)
        elif entry.is_dir(follow_symlinks=False):
            yield from _text_folder(path, how, name + "/", root)
        elif os.path.isdir(path):  # a link to a folder may lead back up here and never end
            yield Skip(name, "linked folder", ignored=True)
        elif path.suffix.lower() not in FILE_SUFFIXES:
            yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)
        elif entry.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
            yield Skip(name, "link out of the folder", ignored=True)
        else:
            yield text_row(path, name, how)


def _items(source: Iterable[Any], name: str, asked: Columns) -> Iterator[Event]:
    """Give the items of an iterable of strings, Documents or mappings."""

    def rows() -> Iterator[RawRow | Row | Skip]:
        mappings = False
        for index, item in enumerate(source):
            where = f"item {index:,}"
            if hasattr(item, "as_py"):  # a scalar of pyarrow
                item = item.as_py()
            if isinstance(item, Document):
                yield Row(where, None, item.text, item.id, item.label, True, item.split, True, item.metadata)
            elif isinstance(item, str) and asked.named() and mappings:
                yield Skip(where, MISSING_COLUMN, "a bare string has no columns")
            elif isinstance(item, str):
                asked.refuse(f"{where} of {name} is a bare string, which")
                yield Row(where, None, item)
            elif isinstance(item, Mapping):
                mappings = True
                yield RawRow(where, str(index), item)
            elif isinstance(item, os.PathLike):
                raise DataError(
                    f"{where} of {name} is a path ({os.fspath(item)!r}), not a text: pass one path, a list of them, "
                    "or the texts themselves, [path.read_text() for path in paths]."
                )
            else:
                yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")

    stream = rows()
    for row in stream:
        if isinstance(row, RawRow):  # what comes before needs no columns, so it needs no look ahead
            yield from read_table(mappings_table(name, itertools.chain([row], stream)), asked)
            return
        yield row


def _hub(source: str, asked: Columns) -> Events:
    name, config, split = parse_hub(source)  # a malformed name is told at once

    @functools.cache  # opened once: it asks the hub, and the stream itself starts over at each iteration
    def stream() -> Any:
        return load_hub(name, [split], config, streaming=True)[0]

    def events() -> Iterator[Event]:
        import datasets
        import pyarrow

        opened = stream()
        try:
            yield from read_table(dataset_table(opened, source), asked)
        except (OSError, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
            raise BrokenSourceError(f"{source} broke off ({error})") from error

    return events


def parse_hub(source: str) -> tuple[str, str | None, str]:
    """Take ``hub:NAME[:CONFIG][:SPLIT]`` apart.

    With one part after the name, it is the split if it begins like one (train, validation, valid, val, dev, test,
    unsupervised) or holds a ``[``, else the configuration. An empty part stands for the default, so
    ``hub:NAME::SPLIT`` and ``hub:NAME:CONFIG:`` are always understood.

    Returns:
        Name, configuration (or None) and split (``"train"`` where none is given).

    Raises:
        DataError: There is no name, or there are too many parts.
    """
    # A colon inside brackets belongs to a slice: train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} is not of the form hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT.")
    config = split = ""
    if len(parts) == 2:
        config, split = parts
    elif parts and ("[" in parts[0] or _SPLIT.fullmatch(parts[0])):
        split = parts[0]
    elif parts:
        config = parts[0]
    return name, config or None, split or "train"


def load_hub(name: str, splits: Sequence[str], config: str | None = None, *, streaming: bool = False) -> list[Any]:
    """Load splits of a data set of the Hugging Face Hub, which is first asked whether it has it.

    The question takes at most five seconds, so that a machine without a network does not wait. It is not asked for
    what the cache of ``datasets`` has, unless that is to be streamed.

    Args:
        name: The data set's repository.
        splits: Its splits.
        config: Its configuration; None for the default.
        streaming: Give ``IterableDataset``s, which fetch rows as they are read.

    Returns:
        A ``Dataset`` or ``IterableDataset`` for each split.

    Raises:
        DataError: The Hub does not answer or has no such data set, or it cannot be loaded.
    """
    import datasets
    from huggingface_hub import HfApi

    cache = Path(datasets.config.HF_DATASETS_CACHE)
    folder = name.replace("/", "___").lower()
    if streaming or not (cache.is_dir() and any(path.name.lower() == folder for path in cache.iterdir())):
        try:
            HfApi().dataset_info(name, timeout=_HUB_SECONDS)
        except Exception as error:  # no network, no such data set, offline: each library version has its own class
            why = ": ".join([type(error).__name__, *str(error).splitlines()[:1]])
            raise DataError(f"{name} on the Hub cannot be reached ({why})") from error
    loaded = []
    for split in splits:
        try:
            loaded.append(datasets.load_dataset(name, config, split=split, streaming=streaming))
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(
                f"{name} on the Hub (configuration {config or 'default'}, split {split!r}) cannot be loaded: {error}"
            ) from error
    return loaded
