"""Tables row by row, as they stand on disk: JSON lines, CSV and TSV, parquet. Which columns matter is not known here.

A row comes as a mapping of its columns; what gives none (a malformed line, a row with too few fields) as a ``Skip``, so
that it is counted and never lost.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simlte_st.data.columns import LOOK_AHEAD_ROWS, RawRow, Skip
from simlte_st.data.streams import COMPRESSED, TOO_LONG, WRONG_ENCODING, BrokenSourceError, Line, read_lines
from simlte_st.errors import DataError

MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"
WRONG_FIELDS = "wrong number of fields"
MALFORMED_ROW = "malformed row"
BLANK_LINE = "blank line"

LINES_SUFFIXES = (".jsonl", ".ndjson", ".json")
SEPARATED_SUFFIXES = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*LINES_SUFFIXES, *SEPARATED_SUFFIXES, ".parquet")

_BATCH_ROWS = 128


def json_objects(path: Path, encoding: str, max_characters: int) -> Iterator[RawRow | Skip]:
    """Give the objects of a JSON lines file, plain or compressed; the made id is the line's index from 0."""
    for line in read_lines(path, encoding, max_characters):
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


class _RowLines:
    """The lines of a CSV file, broken off by an error where one row takes too many of them.

    A quote that is never closed swallows what follows up to the limit of a field; but that limit is one for the whole
    process, so it is as high as any other reader once needed it.
    """

    def __init__(self, lines: Iterator[Line], most: int) -> None:
        self._lines, self._most = lines, most
        self._taken = 0
        self.problem: tuple[str, str] | None = None

    def __iter__(self) -> _RowLines:
        return self

    def __next__(self) -> str:
        if self._taken > self._most:
            self.start_row()
            raise _EndlessRowError(f"a row of more than {self._most:,} characters")
        line = next(self._lines)
        if line.problem:
            self.problem = (line.problem, line.what)
        self._taken += len(line.text)
        return line.text

    def start_row(self) -> None:
        """Forget the row before."""
        self._taken, self.problem = 0, None


class _EndlessRowError(Exception):
    """A row that does not end."""


def separated_rows(
    path: Path, encoding: str, max_characters: int, delimiter: str
) -> tuple[list[str], Iterator[RawRow | Skip]]:
    """Read a CSV or TSV file with a header; the made id of a row is its index from 0.

    Quoting must be sound: a row in which it is not is counted as malformed, since guessing would run rows together.
    A quote that is never closed swallows the rows after it, up to twice ``max_characters``.

    Args:
        path: A plain, ``.gz`` or ``.zst`` file.
        encoding: The encoding of a file without a byte order mark.
        max_characters: Longest text wanted.
        delimiter: What stands between two fields.

    Returns:
        The header, and the rows as they are read.

    Raises:
        DataError: The header cannot be used, or (while iterating) the file cannot be read to its end.
    """
    # The limit is one for the whole process; it is only ever raised, so that no other user of `csv` is hurt.
    csv.field_size_limit(max(csv.field_size_limit(), max_characters + 1))
    # Rows may have several long texts; the spare is for their other columns.
    lines = _RowLines(read_lines(path, encoding, max_characters), 2 * max_characters + (1 << 16))

    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except (csv.Error, _EndlessRowError) as error:
        raise DataError(f"The header of {path} cannot be read: {error}.") from error
    if lines.problem:
        raise DataError(
            f"The header of {path} cannot be read: {lines.problem[1]}. "
            "Name the file's encoding with encoding= (on the command line: --encoding)."
        )
    if len(header) == 1 and (found := next((mark for mark in ";\t|," if mark in header[0]), None)):
        raise DataError(
            f"The header of {path} is a single column {header[0]!r}: it seems to be separated by {found!r}, not by "
            f"{delimiter!r}. Use .csv for commas and .tsv for tabs."
        )

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            lines.start_row()
            first = reader.line_num + 1
            malformed = endless = ""
            try:
                row = next(reader, None)
            except csv.Error as error:
                row, malformed = [], str(error)
            except _EndlessRowError as error:
                row, endless = [], str(error)
            if row is None:
                return
            last = reader.line_num
            where = f"line {first:,}" if last <= first else f"lines {first:,} to {last:,}"
            index += 1
            if lines.problem:
                yield Skip(where, *lines.problem)
            elif endless or "field larger than field limit" in malformed:
                yield Skip(where, TOO_LONG, endless or malformed)
            elif malformed:
                yield Skip(where, MALFORMED_ROW, malformed)
            elif not row:
                index -= 1
                yield Skip(where, BLANK_LINE, ignored=True)
            elif len(row) != len(header):
                yield Skip(where, WRONG_FIELDS, f"{len(row)} instead of {len(header)}")
            else:
                yield RawRow(where, str(index), dict(zip(header, row, strict=True)))

    return header, rows()


def parquet_schema(path: Path) -> Any:
    """Give the Arrow schema of a parquet file.

    Raises:
        BrokenSourceError: It is truncated, corrupt or no parquet file.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_schema(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise _broken_parquet(path, error) from error


def parquet_rows(path: Path, wanted: Sequence[str], labels: Collection[str] = ()) -> Iterator[RawRow | Skip]:
    """Give the rows of a parquet file by record batches, reading some columns only.

    Args:
        path: The file.
        wanted: The columns to read.
        labels: Those of them in which a ``ClassLabel``'s number becomes its name.

    Yields:
        The rows; the made id is the row's index from 0.

    Raises:
        BrokenSourceError: The file is truncated or corrupt.
    """
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            names = _label_names(file.schema_arrow, labels)
            index = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted)):
                columns = {name: _scalars(batch.column(name)) for name in wanted}
                for at in range(batch.num_rows):
                    values = {name: column[at] for name, column in columns.items()}
                    where, made_id = f"row {index:,}", str(index)
                    index += 1
                    undecoded = [value for value in values.values() if isinstance(value, UnicodeDecodeError)]
                    if undecoded:
                        yield Skip(where, WRONG_ENCODING, str(undecoded[0]))
                        continue
                    yield RawRow(
                        where, made_id, {**values, **{label: name(values[label]) for label, name in names.items()}}
                    )
    except (OSError, pyarrow.ArrowException) as error:
        raise _broken_parquet(path, error) from error


def _broken_parquet(path: Path, error: Exception) -> BrokenSourceError:
    return BrokenSourceError(f"{path} is truncated, corrupt or no parquet file ({error})")


def _label_names(schema: Any, labels: Collection[str]) -> dict[str, Callable[[object], object]]:
    if not labels or b"huggingface" not in (schema.metadata or {}):
        return {}
    from datasets import Features

    features = Features.from_arrow_schema(schema)
    return {label: label_name(features.get(label)) for label in labels}


def label_name(feature: Any) -> Callable[[object], object]:
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


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was opened, to be read once.

    Attributes:
        name: Its name, for messages.
        columns: Names of its columns; those of the first rows where it has no header.
        rows: Gives its rows, when told the columns to read and those of them that are labels. Rows may have other
            columns too.
    """

    name: str
    columns: Sequence[str]
    rows: Callable[[Sequence[str], Collection[str]], Iterator[RawRow | Skip]]


def table_suffix(path: Path) -> str | None:
    """Give the suffix that tells a table's form, lower-cased and without ``.gz`` or ``.zst``; None for no table."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in COMPRESSED
    if packed:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    return suffix if suffix in TABLE_SUFFIXES and not (packed and suffix == ".parquet") else None


def open_table(path: Path, encoding: str, max_characters: int) -> Table:
    """Open a table by its suffix and look at its columns.

    Args:
        path: A ``.jsonl``, ``.ndjson``, ``.json`` (JSON lines too), ``.csv`` or ``.tsv`` file, also with ``.gz`` or
            ``.zst`` after it, or a ``.parquet`` file.
        encoding: The encoding of all but parquet.
        max_characters: Longest text wanted.

    Raises:
        DataError: It is of another kind, has no usable header, or is broken.
    """
    suffix = table_suffix(path)
    if suffix is None:
        raise DataError(f"{path} is no table: its name should end in {', '.join(TABLE_SUFFIXES)}.")
    if suffix == ".parquet":
        names = list(parquet_schema(path).names)
        return Table(str(path), names, lambda wanted, labels: parquet_rows(path, wanted, labels))
    if suffix in LINES_SUFFIXES:
        return mappings_table(str(path), json_objects(path, encoding, max_characters))
    header, rows = separated_rows(path, encoding, max_characters, SEPARATED_SUFFIXES[suffix])
    return Table(str(path), header, lambda wanted, labels: rows)


def mappings_table(name: str, rows: Iterator[RawRow | Skip]) -> Table:
    """Make a table of rows that have no header: its columns are those of the first rows."""
    held: list[RawRow | Skip] = []
    broken: list[BrokenSourceError] = []
    try:
        for row in itertools.islice(rows, LOOK_AHEAD_ROWS):
            held.append(row)
    except BrokenSourceError as error:
        broken.append(error)

    def everything() -> Iterator[RawRow | Skip]:
        yield from held
        held.clear()
        if broken:  # only now: the rows before the break are there
            raise broken[0]
        yield from rows

    columns: dict[str, None] = {}
    for row in held:
        if isinstance(row, RawRow) and isinstance(row.values, Mapping):
            columns.update(dict.fromkeys(map(str, row.values)))
    return Table(name, list(columns), lambda wanted, labels: everything())
