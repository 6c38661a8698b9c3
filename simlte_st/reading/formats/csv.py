"""Read CSV and TSV files."""

from __future__ import annotations

import contextlib
import csv
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from simlte_st.errors import DataError
from simlte_st.reading.document import UntypedText
from simlte_st.reading.rows import BINARY, TOO_LONG, RawRow, Reading, Skip
from simlte_st.reading.tables import LOOK_AHEAD, Table, mappings_table, unique_names
from simlte_st.reading.text_files import read_lines

MALFORMED_ROW = "malformed row"
WRONG_FIELDS = "wrong number of fields"


def _layout(path: Path, reading: Reading) -> tuple[str, int]:
    """Return the separator that fits the first rows best, and the number of rows above the header."""

    def fit(separator: str) -> tuple[int, int]:
        rows: list[list[str]] = []
        with contextlib.suppress(csv.Error):
            lines = csv.reader((line.text for line in read_lines(path, reading)), delimiter=separator, strict=True)
            rows.extend(itertools.islice(lines, LOOK_AHEAD))
        above = _rows_above_header(rows)
        fields = len(rows[above]) if above < len(rows) else 0
        return sum(len(row) == fields for row in rows[above:]) * (fields - 1), above

    name = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    fits = {separator: fit(separator) for separator in ("\t" if name.endswith(".tsv") else ",", ";", "\t", "|", ",")}
    best = max(fits, key=lambda separator: fits[separator][0])
    return best, fits[best][1]


def _rows_above_header(rows: Sequence[Sequence[str]]) -> int:
    """Count the blank rows, comments and Excel's ``sep=;`` above the header."""
    is_wide = any(len(row) > 1 for row in rows)  # otherwise the only column's name may begin with "#"
    for number, row in enumerate(rows):
        filled = [cell.strip("\ufeff ").lower() for cell in row if cell.strip()]
        if filled and not (is_wide and len(filled) == 1 and filled[0].startswith(("#", "sep="))):
            return number
    return len(rows)


def open_csv(path: Path, reading: Reading) -> Table:
    """Open a CSV or TSV file with a header.

    The separator is the one of ``,``, ``;``, tab and ``|`` that fits the first rows best. Rows with faulty quoting are
    counted as malformed. A quote that is never closed swallows the rows after it, up to ``max_characters``.
    """
    # The limit is global: only raise it, so that other users of `csv` are not affected.
    csv.field_size_limit(max(csv.field_size_limit(), reading.max_characters + 1))
    problems: list[tuple[str, str]] = []  # in the lines of the current row

    def lines() -> Iterator[str]:
        for line in read_lines(path, reading):
            if line.problem:
                problems.append((line.problem, line.detail))
            yield line.text

    separator, above = _layout(path, reading)
    reader = csv.reader(lines(), delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(itertools.islice(reader, above, None), [])]
        if any("\0" in name for name in header):
            problems.append((BINARY, "it has NUL bytes"))
    except csv.Error as error:
        problems.append((MALFORMED_ROW, str(error)))
    if problems:
        raise DataError(f"The header of {path} cannot be read: {problems[0][1]}. For another encoding, pass encoding=.")
    names = unique_names(header)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            problems.clear()
            start = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:  # an undecodable line is reported first
                row = []
                problems.append((TOO_LONG if "field limit" in str(error) else MALFORMED_ROW, str(error)))
            if row is None:
                return
            end = reader.line_num
            where = f"line {start:,}" if end <= start else f"lines {start:,} to {end:,}"
            if not row and not problems:
                continue  # a blank line
            index += 1
            if len(row) > len(header) and not any(row[len(header) :]):
                del row[len(header) :]  # trailing separators
            if problems:
                yield Skip(where, *problems[0])
            elif len(row) != len(header):
                yield Skip(where, WRONG_FIELDS, f"{len(row)} instead of {len(header)}")
            else:
                yield RawRow(where, str(index), dict(zip(names, map(UntypedText, row), strict=True)))

    return mappings_table(str(path), rows(), _is_words, names)


def _is_words(value: object) -> bool:
    """Return whether a CSV field is text other than a number."""
    text = str(value)[:64].strip()
    try:
        float(text)
    except ValueError:
        return bool(text)
    return False
