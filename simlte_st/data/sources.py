"""The forms a corpus comes in: one function per form, each giving raw rows as they are asked for.

Nothing here judges a text; that is the reader's work (``documents.py``). What can go wrong before there is a text (a
malformed line, a file that cannot be decoded) is given as a ``Skip``, so that the reader can count it.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from simlte_st.data.streams import (
    TOO_LONG,
    WRONG_ENCODING,
    BadTextError,
    BrokenSourceError,
    decode_text,
    read_lines,
)
from simlte_st.errors import DataError

TEXT_SUFFIXES = (".txt", ".md")
MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"
WRONG_FIELDS = "wrong number of fields"
MALFORMED_ROW = "malformed row"
UNREADABLE = "unreadable"
BLANK_LINE = "blank line"

_BATCH_ROWS = 128
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


def _text_file(path: Path, name: str, made_id: str, how: Reading) -> Row | Skip:
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
    yield _text_file(path, path.name, path.name, how)


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
                yield _text_file(path, name, name, how)
            else:
                yield Skip(name, path.suffix.lower() or "no suffix", ignored=True)

    yield from walk(folder)


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def json_lines(path: Path, how: Reading) -> Iterator[Event]:
    """Give the objects of a JSON lines file, plain or compressed; the made id is the line's index from 0."""

    def raws() -> Iterator[RawRow | Skip]:
        for line in read_lines(path, how.encoding, how.max_characters):
            where = f"line {line.number:,}"
            if line.problem:
                yield Skip(where, line.problem, line.what)
                continue
            if not line.text.strip():
                yield Skip(where, BLANK_LINE, ignored=True)
                continue
            try:
                values = json.loads(line.text)
            except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
                yield Skip(where, MALFORMED_JSON, str(error))
                continue
            if isinstance(values, dict):
                yield RawRow(where, str(line.number - 1), values)
            else:
                yield Skip(where, NOT_AN_OBJECT, f"a JSON {type(values).__name__}")

    return rows_by_look_ahead(raws(), how.asked, str(path), _is_string)


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

    Quoting must be sound: a row in which it is not is counted as malformed, since guessing would run rows together.

    Args:
        path: A plain, ``.gz`` or ``.zst`` file.
        how: How to read it.
        delimiter: What stands between two fields.

    Yields:
        The chosen columns, the rows, and what was skipped.

    Raises:
        DataError: The header cannot be used, or the file cannot be read to its end.
    """
    # The limit is one for the whole process; it is only ever raised, so that no other user of `csv` is hurt.
    csv.field_size_limit(max(csv.field_size_limit(), how.max_characters + 1))
    problem: tuple[str, str] | None = None

    def texts() -> Iterator[str]:
        nonlocal problem
        for line in read_lines(path, how.encoding, how.max_characters):
            if line.problem:
                problem = (line.problem, line.what)
            yield line.text

    reader = csv.reader(texts(), delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise DataError(f"The header of {path} cannot be read: {error}.") from error
    if problem:
        raise DataError(
            f"The header of {path} cannot be read: {problem[1]}. "
            "Name the file's encoding with encoding= (on the command line: --encoding)."
        )
    if len(header) == 1 and (found := next((mark for mark in ";\t|," if mark in header[0]), None)):
        raise DataError(
            f"The header of {path} is a single column {header[0]!r}: it seems to be separated by {found!r}, not by "
            f"{delimiter!r}. Use .csv for commas and .tsv for tabs."
        )

    def raws() -> Iterator[RawRow | Skip]:
        nonlocal problem
        index = -1
        while True:
            first, problem = reader.line_num + 1, None
            malformed = ""
            try:
                row = next(reader, None)
            except csv.Error as error:
                row, malformed = [], str(error)
            if row is None:
                return
            last = reader.line_num
            where = f"line {first:,}" if last <= first else f"lines {first:,} to {last:,}"
            index += 1
            if problem:
                yield Skip(where, *problem)
            elif "field larger than field limit" in malformed:
                yield Skip(where, TOO_LONG, malformed)
            elif malformed:
                yield Skip(where, MALFORMED_ROW, malformed)
            elif not row:
                index -= 1
                yield Skip(where, BLANK_LINE, ignored=True)
            elif len(row) != len(header):
                yield Skip(where, WRONG_FIELDS, f"{len(row)} instead of {len(header)}")
            else:
                yield RawRow(where, str(index), dict(zip(header, row, strict=True)))

    yield from rows_by_look_ahead(raws(), how.asked, str(path), _is_words, header)


def _is_string_feature(feature: object) -> bool:
    return getattr(feature, "dtype", None) in ("string", "large_string", "string_view")


def _is_string_type(kind: Any) -> bool:
    # pandas writes a column of categories as a dictionary of strings
    name = str(kind.value_type) if str(kind).startswith("dictionary") else str(kind)
    return name in ("string", "large_string", "string_view")


def _label_name(feature: Any) -> Callable[[object], object]:
    """Turn a ``ClassLabel``'s number into its name; -1 stands for no label in many test splits."""
    names = getattr(feature, "names", None)
    if names is None:
        return lambda value: value
    return lambda value: names[value] if isinstance(value, int) and 0 <= value < len(names) else None


def _scalars(column: Any) -> list[object]:
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        values: list[object] = []
        for scalar in column:
            try:
                values.append(scalar.as_py())
            except UnicodeDecodeError as error:
                values.append(error)
        return values


def parquet(path: Path, how: Reading) -> Iterator[Event]:
    """Give the rows of a parquet file by record batches, reading the chosen columns only."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            strings = [field.name for field in schema if _is_string_type(field.type)]
            chosen = choose_columns(how.asked, schema.names, strings, str(path))
            yield chosen
            label_name: Callable[[object], object] = _label_name(None)
            if chosen.label and b"huggingface" in (schema.metadata or {}):
                from datasets import Features

                label_name = _label_name(Features.from_arrow_schema(schema).get(chosen.label))
            wanted = chosen.distinct()
            index = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=wanted):
                columns = {name: _scalars(batch.column(name)) for name in wanted}
                for at in range(batch.num_rows):
                    values = {name: column[at] for name, column in columns.items()}
                    where, made_id = f"row {index:,}", str(index)
                    index += 1
                    undecoded = [value for value in values.values() if isinstance(value, UnicodeDecodeError)]
                    if undecoded:
                        yield Skip(where, WRONG_ENCODING, str(undecoded[0]))
                        continue
                    if chosen.label:
                        values[chosen.label] = label_name(values[chosen.label])
                    yield make_row(where, made_id, values, chosen)
    except (OSError, pyarrow.ArrowException) as error:
        raise BrokenSourceError(f"{path} is truncated, corrupt or no parquet file ({error})") from error


def items(source: Iterable[Any], name: str, how: Reading) -> Iterator[Event]:
    """Give the items of an iterable of strings or of mappings."""

    def raws() -> Iterator[RawRow | Skip]:
        for index, item in enumerate(source):
            where = f"item {index:,}"
            if isinstance(item, str):
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
    label_name = _label_name(features[chosen.label] if chosen.label else None)
    wanted = chosen.distinct()
    for index, row in enumerate(plain.select_columns(wanted)):
        if chosen.label:
            row = {**row, chosen.label: label_name(row[chosen.label])}
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


def load_hub(source: str) -> Any:
    """Open a dataset of the Hugging Face hub as a stream.

    Raises:
        DataError: It cannot be opened.
    """
    import datasets

    name, config, split = parse_hub(source)
    try:
        return datasets.load_dataset(name, config, split=split, streaming=True)
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
