"""Read Excel workbooks as streams of cells.

Not with openpyxl: it holds a million formatted rows in memory and fills every gap with empty cells.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from simlte_st.errors import DataError
from simlte_st.reading.formats.number_formats import BUILT_IN, read_number
from simlte_st.reading.formats.office import MISSING_PART, UNPACKS, linked_parts, open_zip, parse_parts, relation
from simlte_st.reading.rows import DAMAGED, BadTextError, Event, RawRow, Reading, Row, Skip, make_skip
from simlte_st.reading.tables import LOOK_AHEAD, folder_columns, mappings_table, read_table, unique_names
from simlte_st.reading.text_files import tidy_lines

if TYPE_CHECKING:
    from lxml import etree

HIDDEN_SHEET = "hidden sheet"
NO_TEXT_COLUMN = "sheet without a text column"
UNCALCULATED = "formula without a stored value"

_CHUNK = 1 << 16
_MAX_COLUMN = 16_384  # of Excel
_MAX_EMPTY, _EMPTY_PER_CELL = 10_000_000, 100  # empty rows and cells in a sheet, and more for each cell with a value
_MAX_NAME = 200  # characters; a longer cell is a text rather than the name of a column
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold
_WHOLE = re.compile(r"-?\d{1,40}")

# Cells that are not empty, by column, with their value (text, a number, a date or a boolean) and the value as shown.
_Cells = Mapping[int, tuple[object, str]]
_Row = tuple[int, _Cells]  # with its number
_CellReader = Callable[[Mapping[str, str], str], tuple[object, str] | None]


def open_workbook(path: Path, reading: Reading) -> Iterator[Event]:
    """Yield the documents of all sheets: the rows of each with a header, and each other sheet as one text.

    Hidden sheets, and sheets without a text column, are skipped, unless no sheet has one.
    """
    problems, has_text = [], False
    try:
        with open_zip(path) as archive:
            unread = set(archive.namelist())  # each part is read once: a crafted file may refer to one many times
            part = dict(linked_parts(archive, "").values())["officeDocument"]
            links, (book,) = linked_parts(archive, part), parse_parts(archive, part)
            read_cell = _cell_reader(archive, dict(links.values()), book)
            for node in book.iter("{*}sheet"):
                title = node.get("name", "")
                kind, target = links.get(relation(node), ("worksheet", ""))
                if node.get("state", "visible") != "visible":
                    yield Skip(title, HIDDEN_SHEET, id="")
                elif kind == "worksheet" and target not in unread:
                    yield Skip(title, MISSING_PART)
                elif kind == "worksheet":  # others are charts
                    unread.remove(target)
                    try:
                        yield from _sheet_events(path, title, _rows(archive, target, title, read_cell), reading)
                        has_text = True
                    except DataError as error:
                        problems.append(error)
                        yield Skip(title, NO_TEXT_COLUMN, str(error))
                    except Exception as error:  # of any library
                        yield make_skip(error, title)
    except Exception as error:
        yield make_skip(error, path.name)
    if problems and not has_text:
        raise problems[0]


def _sheet_events(path: Path, title: str, rows: Iterator[Skip | _Row], reading: Reading) -> Iterator[Event]:
    first = list(itertools.islice(rows, LOOK_AHEAD))
    filled = [row for row in first if not isinstance(row, Skip)]
    names = _column_names([cells for _, cells in filled])
    texts = {column for _, cells in filled[1:] for column, (value, _) in cells.items() if isinstance(value, str)}

    def raw_row(row: Skip | _Row) -> Skip | RawRow:
        if isinstance(row, Skip):
            return row
        number, cells = row
        values: dict[str, object] = {name: "" if column in texts else None for column, name in names.items()}
        for column, (value, shown) in cells.items():
            values[names.get(column, f"column {column}")] = shown if column in texts else value
        return RawRow(f"{title}, row {number:,}", f"{title}:{number}", values)

    if names:
        others = (row for row in itertools.chain(first, rows) if row is not filled[0])
        table = mappings_table(f"{path}, sheet {title!r}", map(raw_row, others))
        yield from read_table(replace(table, folders=folder_columns(path)), reading)
        return
    if filled:
        reading.refuse_columns(f"the sheet {title!r} of {path} has no header, so it")
    lines, size = [], 0
    for row in itertools.chain(first, rows):
        if isinstance(row, Skip):
            yield row
        elif size <= reading.max_characters:
            lines.append("\t".join(shown for _, shown in row[1].values()))
            size += len(lines[-1])
    yield Row(title, title, tidy_lines("\n".join(lines)), metadata=folder_columns(path) if reading.metadata else None)


def _column_names(rows: Sequence[_Cells]) -> dict[int, str]:
    """Return the names of columns if the first row is a header: only text, and as wide as most of the other rows."""
    head, *others = rows or [{}]
    texts = [" ".join(value.split()) for value, _ in head.values() if isinstance(value, str)]
    is_header = len(texts) == len(head) and all(len(text) <= _MAX_NAME for text in texts)
    fits = sum(cells.keys() <= head.keys() for cells in others)
    return dict(zip(head, unique_names(texts), strict=True)) if is_header and 2 * fits > len(others) else {}


def _rows(archive: zipfile.ZipFile, part: str, title: str, read_cell: _CellReader) -> Iterator[Skip | _Row]:
    """Yield the rows that are not empty, and the formulas that have no stored value."""
    number = column = empty = 0
    cells: dict[int, tuple[object, str]] = {}
    for name, attributes, text in _elements(archive, part):
        empty += 1
        if empty > _MAX_EMPTY:
            raise BadTextError(UNPACKS, f"more than {_MAX_EMPTY:,} empty rows and cells")
        place = attributes.get("r", "")
        if name == "row":
            if cells:
                yield number, cells
            number, column, cells = int(place or number + 1), 0, {}
            continue
        letters = place.rstrip("0123456789")
        column = functools.reduce(lambda total, letter: 26 * total + ord(letter) - 64, letters, 0) or column + 1
        if "f" in attributes and not text and "t" not in attributes:
            yield Skip(f"{title}, {place}", UNCALCULATED, id="")
        elif column <= _MAX_COLUMN and (cell := read_cell(attributes, text)):
            cells[column] = cell
            empty -= _EMPTY_PER_CELL
    if cells:
        yield number, cells


def _cell_reader(archive: zipfile.ZipFile, parts: Mapping[str, str], book: etree._Element) -> _CellReader:
    """Return a function that reads a cell's value and its value as shown; None if it is empty or an error."""
    codes = ["General"]  # number formats, by style
    if "styles" in parts:
        (styles,) = parse_parts(archive, parts["styles"])
        known = {node.get("numFmtId"): node.get("formatCode", "") for node in styles.iter("{*}numFmt")}
        known = {**BUILT_IN, **known}
        codes = [known.get(node.get("numFmtId"), "General") for node in styles.iterfind("{*}cellXfs/{*}xf")] or codes
    strings = [text for _, _, text in _elements(archive, parts["sharedStrings"])] if "sharedStrings" in parts else []
    is_1904 = any(node.get("date1904") in ("1", "true") for node in book.iter("{*}workbookPr"))
    epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)

    def read_cell(attributes: Mapping[str, str], text: str) -> tuple[object, str] | None:
        kind = attributes.get("t", "n")
        text = strings[int(text)] if kind == "s" else text
        if not text.strip() or kind == "e":
            return None
        if kind == "b":
            return text == "1", "TRUE" if text == "1" else "FALSE"
        if kind != "n":
            return datetime.fromisoformat(text.removesuffix("Z")) if kind == "d" else text, text
        number = int(text) if _WHOLE.fullmatch(text) else float(text)
        return read_number(number, codes[int(attributes.get("s", 0))], epoch) if math.isfinite(number) else None

    return read_cell


def _elements(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the name, attributes and text of the rows, cells and shared strings of a part.

    A row comes before its cells; cells with a formula have the attribute ``f``. The parser builds no tree, so that
    memory use is constant.
    """
    elements: list[tuple[str, dict[str, str], list[str]]] = []
    opened = [""]
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if name in ("row", "c", "si"):
            elements.append((name, attributes, []))
        elif name == "f" and elements:
            elements[-1][1]["f"] = ""
        opened[0] = "" if opened[0] == "rPh" else name  # the pronunciation of Japanese words

    def end(tag: str) -> None:
        opened[0] = ""

    def add(text: str) -> None:
        if opened[0] in ("v", "t") and elements:
            elements[-1][2].append(text)

    def refuse(*declaration: object) -> None:
        raise BadTextError(DAMAGED, "it declares entities")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = add, refuse
    with archive.open(part) as stream:
        for chunk in itertools.chain(iter(functools.partial(stream.read, _CHUNK), b""), [b""]):
            parser.Parse(chunk, not chunk)
            ready = elements[:-1] if chunk else elements  # the last may have more text
            for name, attributes, texts in ready:
                yield name, attributes, _ESCAPE.sub(lambda match: chr(int(match[1], 16)), "".join(texts))
            del elements[: len(ready)]
