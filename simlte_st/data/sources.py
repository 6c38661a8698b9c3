"""The forms a corpus comes in: one function per form, each giving raw rows as they are asked for.

Nothing here judges a text; that is the reader's work (``documents.py``). What can go wrong before there is a text (a
malformed line, a file that cannot be decoded) is given as a ``Skip``, so that the reader can count it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.data.columns import (
    NOT_A_STRING,
    Columns,
    Event,
    RawRow,
    Row,
    Skip,
    choose_columns,
    make_row,
    rows_by_look_ahead,
)
from simlte_st.data.document import Document
from simlte_st.data.streams import TOO_LONG, BadTextError, BrokenSourceError, decode_text
from simlte_st.data.tables import json_objects, label_name, parquet_rows, parquet_schema, separated_rows
from simlte_st.errors import DataError

TEXT_SUFFIXES = (".txt", ".md")
UNREADABLE = "unreadable"

_SPLIT = re.compile(r"(train|training|validation|valid|val|dev|test|unsupervised)([^a-z].*)?")


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read: the columns asked for, the encoding of files, and the longest text wanted."""

    asked: Columns
    encoding: str
    max_characters: int


def _no_columns(source: str, asked: Columns) -> None:
    if asked.named():
        named = ", ".join(f"{parameter}={name!r}" for parameter, name in asked.named().items())
        raise DataError(f"{source}: text files have no columns, so {named} cannot be used with it.")


def text_row(path: Path, name: str, made_id: str, how: Reading) -> Row | Skip:
    """Read a text file as a row, or tell why it gives none."""
    try:
        # No encoding in use takes more than four bytes a character: a larger file need not be read to be too long.
        if (size := path.stat().st_size) > 4 * how.max_characters + 4:
            return Skip(name, TOO_LONG, f"{size:,} bytes")
        return Row(name, made_id, decode_text(path.read_bytes(), how.encoding))
    except BadTextError as error:
        return Skip(name, error.reason, error.what)
    except OSError as error:
        return Skip(name, UNREADABLE, error.strerror or str(error))


def text_file(path: Path, how: Reading) -> Iterator[Event]:
    """Give the one document of a text file; its id is the file's name."""
    _no_columns(str(path), how.asked)
    yield text_row(path, path.name, path.name, how)


def text_folder(folder: Path, how: Reading) -> Iterator[Event]:
    """Give the ``.txt`` and ``.md`` files under a folder, in the order of their paths."""
    _no_columns(str(folder), how.asked)

    def walk(place: Path) -> Iterator[Event]:
        relative = "" if place == folder else place.relative_to(folder).as_posix() + "/"
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except OSError as error:
            yield Skip(relative or str(folder), UNREADABLE, error.strerror or str(error))
            return
        for entry in entries:
            name, path = relative + entry.name, Path(entry.path)
            if entry.name.startswith("."):
                yield Skip(name, "hidden", ignored=True)
            elif entry.is_dir(follow_symlinks=False):
                yield from walk(path)
            elif entry.is_dir():  # a link to a folder may lead back up here and never end
                yield Skip(name, "linked folder", ignored=True)
            elif path.suffix.lower() in TEXT_SUFFIXES:
                yield text_row(path, name, name, how)
            else:
                yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)

    yield from walk(folder)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def json_lines(path: Path, how: Reading) -> Iterator[Event]:
    """Give the objects of a JSON lines file, plain or compressed; the made id is the line's index from 0."""
    return rows_by_look_ahead(json_objects(path, how.encoding, how.max_characters), how.asked, str(path), _is_string)


def _is_words(value: object) -> bool:
    """Whether a CSV field, always a string, is more than a number."""
    if not isinstance(value, str) or not value.strip():
        return False
    if len(value) > 64:
        return True
    try:
        float(value)
    except ValueError:
        return True
    return False


def separated(path: Path, how: Reading, delimiter: str) -> Iterator[Event]:
    """Give the rows of a CSV or TSV file with a header; the made id is the row's index from 0.

    Args:
        path: A plain, ``.gz`` or ``.zst`` file.
        how: How to read it.
        delimiter: What stands between two fields.

    Yields:
        The chosen columns, the rows, and what was skipped.

    Raises:
        DataError: The header cannot be used, or the file cannot be read to its end.
    """
    header, rows = separated_rows(path, how.encoding, how.max_characters, delimiter)
    yield from rows_by_look_ahead(rows, how.asked, str(path), _is_words, header)


def _is_string_feature(feature: object) -> bool:
    return getattr(feature, "dtype", None) in ("string", "large_string", "string_view")


def _is_string_type(kind: Any) -> bool:
    # pandas writes a column of categories as a dictionary of strings
    name = str(kind.value_type) if str(kind).startswith("dictionary") else str(kind)
    return name in ("string", "large_string", "string_view")


def parquet(path: Path, how: Reading) -> Iterator[Event]:
    """Give the rows of a parquet file by record batches, reading the chosen columns only."""
    schema = parquet_schema(path)
    strings = [field.name for field in schema if _is_string_type(field.type)]
    chosen = choose_columns(how.asked, schema.names, strings, str(path))
    yield chosen
    for raw in parquet_rows(path, chosen.distinct(), [chosen.label] if chosen.label else []):
        if isinstance(raw, Skip):
            yield raw
        else:
            assert isinstance(raw.values, Mapping)  # only lists and streams hold bare strings
            yield make_row(raw.where, raw.made_id, raw.values, chosen)


def items(source: Iterable[Any], name: str, how: Reading) -> Iterator[Event]:
    """Give the items of an iterable of strings or of mappings."""

    def raws() -> Iterator[RawRow | Row | Skip]:
        for index, item in enumerate(source):
            where = f"item {index:,}"
            if isinstance(item, Document):
                yield Row(where, None, item.text, item.id, item.label, True, item.split)
            elif isinstance(item, str):
                yield RawRow(where, None, item)
            elif isinstance(item, Mapping):
                yield RawRow(where, str(index), item)
            else:
                yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")

    return rows_by_look_ahead(raws(), how.asked, name, _is_string)


def dataset(source: Any, name: str, how: Reading) -> Iterator[Event]:
    """Give the rows of a ``datasets.Dataset`` or ``IterableDataset``, reading the chosen columns only."""
    # A format (torch, numpy) would turn strings into something else.
    plain = source.with_format(None)
    features = plain.features
    if features is None:  # a stream without a schema
        yield from items(plain, name, how)
        return
    strings = [column for column, feature in features.items() if _is_string_feature(feature)]
    chosen = choose_columns(how.asked, list(features), strings, name)
    yield chosen
    name_of = label_name(features[chosen.label] if chosen.label else None)
    wanted = chosen.distinct()
    for index, row in enumerate(plain.select_columns(wanted)):
        if chosen.label:
            row = {**row, chosen.label: name_of(row[chosen.label])}
        yield make_row(f"row {index:,}", str(index), row, chosen)


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


def load_hub(source: str, *, streaming: bool = True) -> Any:
    """Open a dataset of the Hugging Face hub: as a stream, or downloaded into the cache of ``datasets``.

    Raises:
        DataError: It cannot be opened.
    """
    import datasets

    name, config, split = parse_hub(source)
    try:
        return datasets.load_dataset(name, config, split=split, streaming=streaming)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise DataError(
            f"The dataset {name!r} (configuration {config or 'default'}, split {split!r}) cannot be opened: {error}"
        ) from error


def hub_rows(stream: Any, source: str, how: Reading) -> Iterator[Event]:
    """Give the rows of an opened hub dataset; what breaks on the way is told as a broken source."""
    import datasets
    import pyarrow

    try:
        yield from dataset(stream, source, how)
    except (OSError, pyarrow.ArrowException, datasets.exceptions.DatasetsError) as error:
        raise BrokenSourceError(f"{source} broke off ({error})") from error
