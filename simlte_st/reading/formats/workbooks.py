"""Read Excel workbooks as streams of cells.

Not with openpyxl: it holds a million formatted rows in memory and fills every gap with empty cells.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from simlte_st.errors import DataError
from simlte_st.reading.formats.number_formats import BUILT_IN, read_number
from simlte_st.reading.formats.office import MISSING_PART, linked_parts, open_zip, parse_parts, relation
from simlte_st.reading.rows import DAMAGED, BadTextError, Event, RawRow, Reading, Row, Skip, make_skip
from simlte_st.reading.tables import LOOK_AHEAD, Table, choose_columns, folder_columns, read_table, unique_names
from simlte_st.reading.text_files import tidy_lines

HIDDEN_SHEET = "hidden sheet"
NO_TEXT_COLUMN = "sheet without a text column"
UNCALCULATED = "formulas without a stored value"

_SHEET = "worksheet"
_CHUNK = 1 << 16
_MAX_COLUMN = 16_384  # of Excel
_MAX_NAME = 200  # characters; a longer cell is a text rather than the name of a column
_FORMULA = "has a formula"  # added to the attributes of a cell
_REFERENCE = re.compile(r"([A-Z]{1,3})\d*")
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold
_WHOLE = re.compile(r"-?\d{1,40}")


class Cell(NamedTuple):
    """A cell's value (text, a number, a date or a boolean), and the value as shown."""

    value: object
    shown: str


Cells = Mapping[int, Cell]  # a row's cells that are not empty, by column


def open_workbook(path: Path, reading: Reading) -> Iterator[Event]:
    """Yield the documents of all sheets: the rows of each with a header, and each other sheet as one text.

    Hidden sheets, and sheets without a text column, are skipped, unless no sheet has one.
    """
    problems, has_text = [], False
    try:
        with open_zip(path) as archive:
            unread = set(archive.namelist())  # each part is read once: a crafted file may refer to one many times
            (part,) = (target for _, kind, target in linked_parts(archive, "") if kind == "officeDocument")
            book = _open_book(archive, part)
            links = {name: (kind, target) for name, kind, target in linked_parts(archive, part)}
            for node in parse_parts(archive, part)[0].iter("{*}sheet"):
                title = node.get("name", "")
                kind, target = links.get(relation(node), (_SHEET, ""))
                if node.get("state", "visible") != "visible":
                    yield Skip(title, HIDDEN_SHEET, id="")
                elif kind == _SHEET and target not in unread:
                    yield Skip(title, MISSING_PART)
                elif kind == _SHEET:
                    unread.remove(target)
                    try:
                        yield from _sheet_events(path, title, book.rows(target), reading)
                        has_text = True
                    except DataError as error:
                        problems.append(error)
                        yield Skip(title, NO_TEXT_COLUMN, str(error))
                    except Exception as error:  # of any library
                        yield make_skip(error, title)
                    if book.uncalculated:
                        count, book.uncalculated = book.uncalculated, 0
                        yield Skip(title, UNCALCULATED, f"{count:,} cells; save the workbook in Excel", id="")
    except Exception as error:
        yield make_skip(error, path.name)
    if problems and not has_text:
        raise problems[0]


def _sheet_events(path: Path, title: str, rows: Iterator[tuple[int, Cells]], reading: Reading) -> Iterator[Event]:
    first = list(itertools.islice(rows, LOOK_AHEAD))
    folders = folder_columns(path)
    if names := _column_names([cells for _, cells in first]):
        table = _Sheet(title, names, first[1:], rows, reading).table(f"{path}, sheet {title!r}")
        yield from read_table(replace(table, folders=folders), reading)
    elif first:
        reading.refuse_columns(f"the sheet {title!r} of {path} has no header, so it")
        lines, size = [], 0
        for _, cells in itertools.chain(first, rows):
            lines.append("\t".join(cell.shown for cell in cells.values()))
            size += len(lines[-1])
            if size > reading.max_characters:
                break
        yield Row(title, title, tidy_lines("\n".join(lines)), metadata=folders if reading.metadata else None)


def _column_names(rows: Sequence[Cells]) -> dict[int, str]:
    """Return the names of the columns if the first row is a header: all of text, as wide as most of the other rows."""
    head, *others = rows or [{}]
    texts = [" ".join(cell.value.split()) for cell in head.values() if isinstance(cell.value, str)]
    is_header = len(texts) == len(head) and all(len(text) <= _MAX_NAME for text in texts)
    fits = sum(cells.keys() <= head.keys() for cells in others)
    return dict(zip(head, unique_names(texts), strict=True)) if is_header and 2 * fits > len(others) else {}


@dataclass(frozen=True)
class _Sheet:
    """A sheet with a header."""

    title: str
    names: Mapping[int, str]  # of the columns
    first: Sequence[tuple[int, Cells]]  # the first rows below the header
    rest: Iterator[tuple[int, Cells]]
    reading: Reading

    def table(self, name: str) -> Table:
        """Return the table: text, ids and labels as shown; numbers and dates in other columns keep their types."""
        texts = {column for _, cells in self.first for column, cell in cells.items() if isinstance(cell.value, str)}
        strings = [name for column, name in self.names.items() if column in texts]

        def rows(columns: Sequence[str]) -> Iterator[RawRow]:
            shown = choose_columns(self.reading, table)
            return (self._row(number, cells, shown) for number, cells in itertools.chain(self.first, self.rest))

        start = functools.partial(itertools.starmap, self._row, self.first)
        table = Table(name, [*self.names.values()], strings, rows, first=lambda columns: start())
        return table

    def _row(self, number: int, cells: Cells, shown: Sequence[str | None] = ()) -> RawRow:
        values: dict[str, object] = {name: "" if name in shown else None for name in self.names.values()}
        for column, cell in cells.items():
            name = self.names.get(column, f"column {column}")
            values[name] = cell.shown if name in shown else cell.value
        return RawRow(f"{self.title}, row {number:,}", f"{self.title}:{number}", values)


@dataclass
class _Book:
    """The parts of a workbook that all its sheets share."""

    archive: zipfile.ZipFile
    strings: Sequence[str]
    codes: Sequence[str]  # number formats, by style
    epoch: datetime
    uncalculated: int = 0  # formulas without a value in the current sheet

    def rows(self, part: str) -> Iterator[tuple[int, Cells]]:
        """Yield the number and the cells of each row that is not empty."""
        number = column = 0
        cells: dict[int, Cell] = {}
        for name, attributes, text in _elements(self.archive, part):
            if name == "row":
                if cells:
                    yield number, cells
                number, column, cells = int(attributes.get("r") or number + 1), 0, {}
            elif name == "c":
                reference = _REFERENCE.match(attributes.get("r", ""))
                letters = reference[1] if reference else ""
                column = functools.reduce(lambda total, letter: 26 * total + ord(letter) - 64, letters, 0) or column + 1
                if column <= _MAX_COLUMN and (cell := self._cell(attributes, text)):
                    cells[column] = cell
        if cells:
            yield number, cells

    def _cell(self, attributes: Mapping[str, str], text: str) -> Cell | None:
        """Return a cell, with the cached value of a formula; None if it is empty or an error."""
        kind = attributes.get("t", "n")
        if kind == "s":
            text = self.strings[int(text)]
        if not text.strip() or kind == "e":
            if kind == "n" and _FORMULA in attributes:
                self.uncalculated += 1
            return None
        if kind == "b":
            return Cell(text == "1", "TRUE" if text == "1" else "FALSE")
        if kind == "d":
            return Cell(datetime.fromisoformat(text.removesuffix("Z")), text)
        if kind != "n":
            return Cell(text, text)
        number = int(text) if _WHOLE.fullmatch(text) else float(text)
        code = self.codes[int(attributes.get("s", 0))]
        return Cell(*read_number(number, code, self.epoch)) if math.isfinite(number) else None


def _open_book(archive: zipfile.ZipFile, part: str) -> _Book:
    parts = {kind: target for _, kind, target in linked_parts(archive, part)}
    codes = ["General"]
    if "styles" in parts:
        (styles,) = parse_parts(archive, parts["styles"])
        known = {node.get("numFmtId"): node.get("formatCode", "") for node in styles.iter("{*}numFmt")}
        known = {**{str(number): code for number, code in BUILT_IN.items()}, **known}
        codes = [known.get(node.get("numFmtId"), "General") for node in styles.iterfind("{*}cellXfs/{*}xf")] or codes
    strings = _elements(archive, parts["sharedStrings"]) if "sharedStrings" in parts else ()
    (book,) = parse_parts(archive, part)
    settings = book.find("{*}workbookPr")
    is_1904 = settings is not None and settings.get("date1904") in ("1", "true")
    epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)
    return _Book(archive, [text for name, _, text in strings if name == "si"], codes, epoch)


def _elements(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """Yield the name, attributes and text of the rows, cells and shared strings of a part; a row before its cells."""
    collector = _Collector()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = collector.start, collector.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = collector.add, collector.refuse
    with archive.open(part) as stream:
        while chunk := stream.read(_CHUNK):
            parser.Parse(chunk)
            yield from collector.elements
            collector.elements.clear()
        parser.Parse(b"", True)


class _Collector:
    """Handlers of an expat parser, which builds no tree, so that memory use is constant."""

    def __init__(self) -> None:
        self.elements: list[tuple[str, Mapping[str, str], str]] = []
        self._attributes: dict[str, str] = {}
        self._texts: list[str] = []
        self._reads = False
        self._before_phonetics = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        self._reads = name in ("v", "t")
        if name == "row":
            self.elements.append((name, attributes, ""))
        elif name in ("c", "si"):
            self._attributes = attributes
            self._texts.clear()
        elif name == "f":
            self._attributes[_FORMULA] = ""
        elif name == "rPh":  # the pronunciation of Japanese words
            self._before_phonetics = len(self._texts)

    def add(self, text: str) -> None:
        if self._reads:
            self._texts.append(text)

    def end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        self._reads = False
        if name == "rPh":
            del self._texts[self._before_phonetics :]
        elif name in ("c", "si"):
            text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), "".join(self._texts))
            self.elements.append((name, self._attributes, text))

    def refuse(self, *declaration: object) -> None:
        raise BadTextError(DAMAGED, "it declares entities")
