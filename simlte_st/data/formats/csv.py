"""CSV and TSV files."""

from __future__ import annotations

import csv
import functools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import (
    BLANK_LINE,
    ID_COLUMNS,
    MALFORMED_ROW,
    TEXT_COLUMNS,
    WRONG_FIELDS,
    RawRow,
    Skip,
    Table,
    mappings_table,
)
from simlte_st.data.text_files import TOO_LONG, Line, read_lines
from simlte_st.errors import DataError

logger = logging.getLogger(__name__)

_FIRST_ROWS = 20  # that show whether the header is one
_LONG_NAME = 200
_SENTENCE_ENDS = (".", "!", "。", "।")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,:/eE+-]*")
_EXCEL_MARK = re.compile(r"sep=(.)", re.IGNORECASE)  # a first line that tells Excel the separator
_UNPRINTABLE = re.compile(r"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}")


def open_csv(path: Path, config: SourceConfig, delimiter: str = ",") -> Table:
    """Open a file with a header, whose fields are separated by commas.

    If the header has no comma, ``;``, tabs or ``|`` separate the fields, and so does what a first line ``sep=;`` names.
    A row with faulty quoting is counted as malformed, since guessing would run rows together. A quote that is never
    closed swallows the rows after it, up to twice ``max_characters``.
    """
    # The limit is one for the whole process; it is only ever raised, so that no other user of `csv` is affected.
    max_characters = config.max_characters
    csv.field_size_limit(max(csv.field_size_limit(), max_characters + 1))
    # Rows may have several long texts; the spare is for their other columns.
    lines = _RowLines(read_lines(path, config.encoding, max_characters), 2 * max_characters + (1 << 16))

    reader, before = csv.reader(lines, delimiter=delimiter, strict=True), 0
    try:
        header = next(reader, [])
        if mark := _EXCEL_MARK.fullmatch(delimiter.join(header)):
            reader, before = csv.reader(lines, delimiter=mark[1], strict=True), 1
            header = next(reader, [])
    except csv.Error as error:
        raise DataError(f"The header of {path} cannot be read: {error}.") from error
    header = [name.strip() for name in header]
    if _UNPRINTABLE.search("".join(header)):
        raise DataError(f"The header of {path} cannot be read: it has control characters, as files of other kinds do.")
    if lines.problem:
        raise DataError(
            f"The header of {path} cannot be read: {lines.problem[1]}. Name the file's encoding with encoding=."
        )
    if not before and len(header) == 1 and (other := next((mark for mark in ";\t|," if mark in header[0]), None)):
        logger.info("The columns of %s are separated by %r.", path, other)
        return open_csv(path, config, other)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            lines.start_row()
            first = before + reader.line_num + 1
            problem = None
            try:
                row = next(reader, None)
            except csv.Error as error:
                endless = isinstance(error, _EndlessRowError) or "field larger than field limit" in str(error)
                row, problem = [], (TOO_LONG if endless else MALFORMED_ROW, str(error))
            if row is None:
                return
            last = before + reader.line_num
            where = f"line {first:,}" if last <= first else f"lines {first:,} to {last:,}"
            problem = lines.problem or problem  # undecodable lines are rarely sound otherwise
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

    def check(first: list[RawRow]) -> None:
        if not config.named_columns() and _is_data(header, [row.values for row in first[:_FIRST_ROWS]]):
            raise DataError(
                f"The first row of {path} seems to be a document, not the names of the columns: "
                f"{', '.join(map(repr, header))[:200]}. Write a row of names above it, such as 'id,text'; if these are "
                "the names, say which column is the text with text_column=."
            )

    return replace(mappings_table(str(path), rows(), _is_words, header, check), typed=False)


open_tsv = functools.partial(open_csv, delimiter="\t")


class _EndlessRowError(csv.Error):
    """A row that does not end."""


class _RowLines:
    """The lines of a CSV file; a row of too many of them is an error.

    An unclosed quote swallows lines up to the limit of a field, but that limit is one for the whole process, so it is
    as high as any other reader once needed it.
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
        """Forget the previous row."""
        self._taken, self.problem = 0, None


def _is_words(value: object) -> bool:
    """Return whether a CSV field, always a string, is more than a number."""
    if not isinstance(value, str) or not value.strip():
        return False
    if len(value) > 64:
        return True
    try:
        float(value)
    except ValueError:
        return True
    return False


def _is_data(header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bool:
    """Return whether a header has values of its columns in it: a number over numbers, a sentence, a repeated value."""
    if {name.lower() for name in header} & {*TEXT_COLUMNS, *ID_COLUMNS}:
        return False
    if any(list(row.values()) == list(header) for row in rows):  # the header is repeated
        return False
    for name in header:
        below = [row[name] for row in rows if row[name].strip()]
        if len(name) > _LONG_NAME or (len(name.split()) > 3 and name.rstrip("\"')").endswith(_SENTENCE_ENDS)):
            return True
        if _NUMBER.fullmatch(name) and not _YEAR.fullmatch(name) and below and all(map(_NUMBER.fullmatch, below)):
            return True
        if name and name in below:
            return True
    return False
