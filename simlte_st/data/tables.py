"""Tables row by row: JSON lines, CSV, TSV and parquet files, data sets and data frames in memory, streams of mappings.

Each becomes a :class:`~simlte_st.data.columns.Table`. A row comes as a mapping of its columns; what gives none (a
malformed line, a row with too few fields) as a ``Skip``, so that it is counted and never lost.
"""

from __future__ import annotations

import csv
import itertools
import json
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.columns import RawRow, Row, Skip, Table
from simlte_st.data.streams import COMPRESSED, TOO_LONG, WRONG_ENCODING, BrokenSourceError, Line, read_lines
from simlte_st.errors import DataError

logger = logging.getLogger(__name__)

MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"
WRONG_FIELDS = "wrong number of fields"
MALFORMED_ROW = "malformed row"
BLANK_LINE = "blank line"

LINES_SUFFIXES = (".jsonl", ".ndjson", ".json")
SEPARATED_SUFFIXES = {".csv": ",", ".tsv": "\t"}
TABLE_SUFFIXES = (*LINES_SUFFIXES, *SEPARATED_SUFFIXES, ".parquet")

# Sources without a schema are looked at this far ahead to learn their columns; what is no row on the way is held up to
# the third number, and counted beyond.
LOOK_AHEAD_ROWS = 100
LOOK_AHEAD_CHARACTERS = 4_000_000
LOOK_AHEAD_SKIPS = 10_000

_BATCH_ROWS = 128
_LARGE = 100_000_000  # bytes of a column, below which it is read however it is packed
_MOST_PACKED = 500  # times smaller than its text, the same page of it over and over included


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

    Returns:
        The table. Its rows have the made ids 0, 1, 2, ...; of JSON lines, a line that is no row has a number too.

    Raises:
        DataError: It is of another kind, has no usable header, or is broken.
    """
    suffix = table_suffix(path)
    if suffix is None:
        raise DataError(f"{path} is no table: its name should end in {', '.join(TABLE_SUFFIXES)}.")
    if suffix == ".parquet":
        return _parquet_table(path)
    if suffix in LINES_SUFFIXES:
        return mappings_table(str(path), _json_objects(path, encoding, max_characters))
    return _separated_table(path, encoding, max_characters, SEPARATED_SUFFIXES[suffix])


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def mappings_table(
    name: str,
    rows: Iterator[RawRow | Row | Skip],
    is_text: Callable[[object], bool] = _is_string,
    header: Sequence[str] = (),
) -> Table:
    """Make a table of rows without a schema, from a look at the first of them.

    At most ``LOOK_AHEAD_ROWS`` rows are held for it, so a column that first occurs after them is not seen.

    Args:
        name: Name of the source, for messages.
        rows: The rows, and what was wrong with others. What they raise is raised after the rows before it were given.
        is_text: Whether a value makes its column one that holds strings.
        header: The columns, where the source has them in its first row.
    """
    held: list[RawRow | Row | Skip] = []
    more: Counter[Skip] = Counter()
    broken: list[Exception] = []
    columns: dict[str, bool] = {}
    count = others = characters = 0
    try:
        for row in rows:
            if isinstance(row, Skip) and len(held) >= LOOK_AHEAD_SKIPS:
                more[Skip("further on", row.reason, ignored=row.ignored)] += 1
                continue
            held.append(row)
            for column, value in row.values.items() if isinstance(row, RawRow) else ():
                columns[str(column)] = columns.get(str(column), False) or is_text(value)
                characters += len(value) if isinstance(value, str) else 0
            characters += len(row.text) if isinstance(row, Row) and isinstance(row.text, str) else 0
            count += isinstance(row, RawRow)
            others += not isinstance(row, Skip)
            if others >= LOOK_AHEAD_ROWS or characters >= LOOK_AHEAD_CHARACTERS:
                break
    except Exception as error:
        broken.append(error)

    def everything(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Row | Skip]:
        yield from held
        held.clear()
        yield from more.elements()
        if broken:  # only now: the rows before the break are there
            raise broken[0]
        yield from rows

    strings = [column for column, text in columns.items() if text] if count else None
    return Table(name, header or list(columns), strings, everything)


def _json_objects(path: Path, encoding: str, max_characters: int) -> Iterator[RawRow | Skip]:
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
            yield Skip(where, MALFORMED_JSON, getattr(error, "msg", str(error)).removesuffix(" at"))
            continue
        if isinstance(values, dict):
            yield RawRow(where, str(line.number - 1), values)
        else:
            yield Skip(where, NOT_AN_OBJECT, f"a JSON {type(values).__name__}")


class _EndlessRowError(csv.Error):
    """A row that does not end."""


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


def _separated_table(path: Path, encoding: str, max_characters: int, delimiter: str) -> Table:
    """Open a CSV or TSV file with a header.

    Quoting must be sound: a row in which it is not is counted as malformed, since guessing would run rows together.
    A quote that is never closed swallows the rows after it, up to twice ``max_characters``.
    """
    # The limit is one for the whole process; it is only ever raised, so that no other user of `csv` is hurt.
    csv.field_size_limit(max(csv.field_size_limit(), max_characters + 1))
    # Rows may have several long texts; the spare is for their other columns.
    lines = _RowLines(read_lines(path, encoding, max_characters), 2 * max_characters + (1 << 16))

    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise DataError(f"The header of {path} cannot be read: {error}.") from error
    if "\0" in "".join(header):
        raise DataError(f"The header of {path} cannot be read: it has NUL characters, which no text has.")
    if lines.problem:
        raise DataError(
            f"The header of {path} cannot be read: {lines.problem[1]}. "
            "Name the file's encoding with encoding= (on the command line: --encoding)."
        )
    if len(header) == 1 and (found := next((mark for mark in ";\t|," if mark in header[0]), None)):
        logger.info("The columns of %s are separated by %r.", path, found)
        return _separated_table(path, encoding, max_characters, found)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            lines.start_row()
            first = reader.line_num + 1
            problem = None
            try:
                row = next(reader, None)
            except csv.Error as error:
                endless = isinstance(error, _EndlessRowError) or "field larger than field limit" in str(error)
                row, problem = [], (TOO_LONG if endless else MALFORMED_ROW, str(error))
            if row is None:
                return
            last = reader.line_num
            where = f"line {first:,}" if last <= first else f"lines {first:,} to {last:,}"
            problem = lines.problem or problem  # what cannot be decoded is rarely sound otherwise
            if not row and not problem:
                yield Skip(where, BLANK_LINE, ignored=True)
                continue
            index += 1
            if problem:
                yield Skip(where, *problem)
            elif len(row) != len(header):
                yield Skip(where, WRONG_FIELDS, f"{len(row)} instead of {len(header)}")
            else:
                yield RawRow(where, str(index), dict(zip(header, row, strict=True)))

    return mappings_table(str(path), rows(), _is_words, header)


def _holds_strings(kind: object) -> bool:
    # pandas writes a column of categories as a dictionary of strings
    return str(kind).removeprefix("dictionary<values=").split(",")[0] in ("string", "large_string", "string_view")


def _parquet_table(path: Path) -> Table:
    """Open a parquet file, which is read by record batches, and of which only the wanted columns are read."""
    import pyarrow
    import pyarrow.parquet

    def broken(error: Exception) -> BrokenSourceError:
        return BrokenSourceError(f"{path} is truncated, corrupt or no parquet file ({error})")

    try:
        schema = pyarrow.parquet.read_schema(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise broken(error) from error

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
        names: dict[str, Sequence[str]] = {}
        if labels and b"huggingface" in (schema.metadata or {}):  # written by `datasets`
            from datasets import Features

            names = _label_names(Features.from_arrow_schema(schema), labels)
        index = itertools.count()
        try:
            # As a dictionary a text that stands in many rows is held once, as in the file.
            with pyarrow.parquet.ParquetFile(path, read_dictionary=strings) as file:
                _check_sizes(file.metadata, wanted)
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted)):
                    columns = [_scalars(batch.column(name)) for name in wanted]
                    for row, number in zip(zip(*columns, strict=True), index, strict=False):
                        undecoded = next((value for value in row if isinstance(value, UnicodeDecodeError)), None)
                        if undecoded is not None:
                            yield Skip(f"row {number:,}", WRONG_ENCODING, str(undecoded))
                        else:
                            yield _row(number, dict(zip(wanted, row, strict=True)), names)
        except (OSError, pyarrow.ArrowException) as error:
            raise broken(error) from error

    strings = [field.name for field in schema if _holds_strings(field.type)]
    return Table(str(path), schema.names, strings, rows)


def _check_sizes(metadata: Any, wanted: Sequence[str]) -> None:
    """Refuse columns that take far more memory than text could: a page is unpacked as a whole.

    Raises:
        BrokenSourceError: There is one.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            size = column.total_uncompressed_size
            if column.path_in_schema in wanted and size > max(_LARGE, _MOST_PACKED * column.total_compressed_size):
                raise BrokenSourceError(
                    f"the column {column.path_in_schema!r} would unpack to {size:,} bytes from "
                    f"{column.total_compressed_size:,}, which no text does"
                )


def _scalars(column: Any) -> list[object]:
    if hasattr(column, "dictionary"):
        held = _scalars(column.dictionary)
        return [None if index is None else held[index] for index in column.indices.to_pylist()]
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


def _label_names(features: Any, labels: Collection[str]) -> dict[str, Sequence[str]]:
    """Give the names of the classes of each label that is a ``ClassLabel``."""
    return {label: names for label in labels if (names := getattr(features.get(label), "names", None)) is not None}


def _row(number: int, values: Mapping[str, Any], labels: Mapping[str, Sequence[str]]) -> RawRow:
    """Make a row in which the numbers of classes are their names; -1 stands for no label in many test splits."""
    for label, names in labels.items():
        value = values[label]
        values = {**values, label: names[value] if isinstance(value, int) and 0 <= value < len(names) else None}
    return RawRow(f"row {number:,}", str(number), values)


def dataset_table(dataset: Any, name: str) -> Table:
    """See a ``datasets.Dataset`` or ``IterableDataset`` as a table, of which only the wanted columns are read."""
    # A format (torch, numpy) would turn strings into something else.
    plain = dataset.with_format(None)
    features = plain.features
    if features is None:  # a stream without a schema
        return mappings_table(name, (_row(number, row, {}) for number, row in enumerate(plain)))

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        names = _label_names(features, labels)
        for number, row in enumerate(plain.select_columns(list(wanted))):
            yield _row(number, row, names)

    strings = [column for column, feature in features.items() if _holds_strings(getattr(feature, "dtype", None))]
    return Table(name, list(features), strings, rows)


def frame_table(frame: Any, name: str) -> Table:
    """See a pandas or polars ``DataFrame`` as a table."""
    columns = {str(column): column for column in frame.columns}

    def holds_strings(column: Any) -> bool:
        # "object" is what pandas calls anything; a name that is there twice gives a frame, which is refused later.
        kind = str(getattr(column, "dtype", "object")).lower()
        return kind in ("str", "string", "category", "categorical", "enum") or (
            kind == "object" and any(isinstance(value, str) for value in column.head(LOOK_AHEAD_ROWS))
        )

    strings = [name for name, given in columns.items() if holds_strings(frame[given])]

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        for number, row in enumerate(zip(*(frame[columns[column]] for column in wanted), strict=True)):
            yield _row(number, dict(zip(wanted, row, strict=True)), {})

    return Table(name, [str(column) for column in frame.columns], strings, rows)
