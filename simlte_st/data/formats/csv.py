"""CSV and TSV files."""

from __future__ import annotations

import csv
import functools
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import BLANK_LINE, MALFORMED_ROW, WRONG_FIELDS, RawRow, Skip, Table, mappings_table
from simlte_st.data.text_files import TOO_LONG, Line, read_lines
from simlte_st.errors import DataError

logger = logging.getLogger(__name__)


def open_csv(path: Path, config: SourceConfig, delimiter: str = ",") -> Table:
    """Open a file with a header, whose fields are separated by commas.

    If the header has no comma, ``;``, tabs or ``|`` separate the fields. A row with faulty quoting is counted as
    malformed, since guessing would run rows together. A quote that is never closed swallows the rows after it, up to
    ``max_characters``.
    """
    # The limit is one for the whole process; it is only ever raised, so that no other user of `csv` is affected.
    max_characters = config.max_characters
    csv.field_size_limit(max(csv.field_size_limit(), max_characters + 1))
    lines = _RowLines(read_lines(path, config.encoding, max_characters))

    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(filter(None, reader), [])]
    except csv.Error as error:
        raise DataError(f"The header of {path} cannot be read: {error}.") from error
    if lines.problem:
        raise DataError(
            f"The header of {path} cannot be read: {lines.problem[1]}. Name the file's encoding with encoding=."
        )
    if len(header) == 1 and (other := next((mark for mark in ";\t|," if mark in header[0]), None)):
        logger.info("The columns of %s are separated by %r.", path, other)
        return open_csv(path, config, other)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            lines.problem = None
            first = reader.line_num + 1
            problem = None
            try:
                row = next(reader, None)
            except csv.Error as error:
                row, problem = [], (TOO_LONG if "field limit" in str(error) else MALFORMED_ROW, str(error))
            if row is None:
                return
            last = reader.line_num
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

    return replace(mappings_table(str(path), rows(), _is_words, header), typed=False)


open_tsv = functools.partial(open_csv, delimiter="\t")


class _RowLines:
    """The lines of a CSV file, and what is wrong with those of the latest row."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self._lines = lines
        self.problem: tuple[str, str] | None = None

    def __iter__(self) -> _RowLines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        if line.problem:
            self.problem = (line.problem, line.what)
        return line.text


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
