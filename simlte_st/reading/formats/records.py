"""Read CSV, TSV, JSON, JSON lines, workbooks and iterables of records.

Not with openpyxl or python-calamine: a crafted workbook of a few kilobytes makes them fill gigabytes with empty cells.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from xml.parsers import expat

from simlte_st.errors import DataError
from simlte_st.reading.document import Document, UntypedText, unique_names
from simlte_st.reading.formats.office import linked_parts, open_zip, parse_part, relation
from simlte_st.reading.rows import NOT_A_STRING, TOO_LONG, BadTextError, Event, RawRow, Reading, Row, Skip, make_skip
from simlte_st.reading.tables import LOOK_AHEAD, TEXT_COLUMNS, Table, first_match, mappings_table, read_table
from simlte_st.reading.text_files import decode_text, read_lines, read_whole, tidy_lines

MALFORMED_ROW = "malformed row"
STRAY_QUOTES = "quotation marks kept, because they enclose no cell"

_ADVICE = "Make it an array of objects or strings, or JSON lines (.jsonl, one object per line)."
_BLANK = UntypedText()  # a cell
_MAX_NAME = 200  # characters; a longer cell is a text rather than the name of a column
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold
_LITERAL = re.compile(r'"[^"]*"|[\\_*].|\[(?![hms]+\])[^\]]*\]|;.*', re.DOTALL)  # in a number format, in lower case
_BUILT_IN = dict.fromkeys((*range(14, 18), *range(27, 32), 36, *range(50, 59)), "y")  # formats known by number only
_BUILT_IN |= dict.fromkeys((*range(18, 22), 45, 46, 47), "h") | {9: "%", 10: "%", 22: "yh"}


def _layout(path: Path, reading: Reading) -> tuple[str, int]:
    """Return the separator that best fits the first rows, and the number of rows above the header."""

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
    is_wide = any(len(row) > 1 for row in rows)  # in a single column, a row that begins with "#" may be the header
    for number, row in enumerate(rows):
        filled = [cell.strip("\ufeff ").lower() for cell in row if cell.strip()]
        if filled and not (is_wide and len(filled) == 1 and filled[0].startswith(("#", "sep="))):
            return number
    return len(rows)


def open_csv(path: Path, reading: Reading) -> Table:
    """Open a CSV or TSV file with a header.

    The separator is whichever of ``,``, ``;``, tab and ``|`` best fits the first rows. Rows with faulty quoting count
    as malformed. An unclosed quote swallows the rows that follow, up to ``max_characters``.
    """
    # The limit is global, so only raise it, to leave other users of `csv` unaffected.
    csv.field_size_limit(max(csv.field_size_limit(), reading.max_characters + 1))
    problems: list[tuple[str, str]] = []  # found in the lines of the current row
    texts: list[str] = []  # of these lines

    def lines() -> Iterator[str]:
        for line in read_lines(path, reading):
            texts.append(line.text)
            if line.problem:
                problems.append((line.problem, line.detail))
            yield line.text

    separator, above = _layout(path, reading)
    reader = csv.reader(lines(), delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(itertools.islice(reader, above, None), [])]
        if any("\0" in name for name in header):
            problems.append((MALFORMED_ROW, "it has NUL bytes"))
    except csv.Error as error:
        problems.append((MALFORMED_ROW, str(error)))
    if problems:
        raise DataError(f"The header of {path} cannot be read: {problems[0][1]}. Set another encoding with encoding=.")
    names = unique_names(header)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            problems.clear()
            texts.clear()
            start = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:  # an undecodable line in the row takes precedence
                row = []
                problems.append((TOO_LONG if "field limit" in str(error) else MALFORMED_ROW, str(error)))
            if row is None:
                return
            end = reader.line_num
            where = f"line {start:,}" if end <= start else f"lines {start:,} to {end:,}"
            if not row and not problems:
                continue  # a blank line
            if separator == "\t" and (len(texts) > 1 or problems) and (literal := _literal_rows(texts, names)):
                for offset, values in literal:
                    index += 1
                    yield RawRow(f"line {start + offset:,}", str(index), values, {STRAY_QUOTES: ""})
                continue
            index += 1
            if len(row) > len(header) and not any(row[len(header) :]):
                del row[len(header) :]  # trailing separators
            if problems:
                yield Skip(where, *problems[0])
            elif len(row) != len(header):
                yield Skip(where, "wrong number of fields", f"{len(row)} instead of {len(header)}")
            else:
                yield RawRow(where, str(index), dict(zip(names, map(UntypedText, row), strict=True)))

    return replace(mappings_table(str(path), rows(), _is_words), columns=names)


def _literal_rows(lines: Sequence[str], names: Sequence[str]) -> list[tuple[int, dict[str, object]]]:
    """Return lines of TSV as numbered rows, with quotation marks as text; none if the cells do not fit ``names``."""
    rows = [(number, line.rstrip("\r\n").split("\t")) for number, line in enumerate(lines) if line.strip()]
    if len(names) == 1 or any(len(cells) != len(names) for _, cells in rows):
        return []
    return [(number, dict(zip(names, map(UntypedText, cells), strict=True))) for number, cells in rows]


def _is_words(value: object) -> bool:
    """Return whether a CSV field is text rather than a number."""
    text = str(value)[:64].strip()
    try:
        float(text)
    except ValueError:
        return bool(text)
    return False


def open_json_lines(path: Path, reading: Reading) -> Table:
    """Open a JSON lines file, or an array; lines that are not JSON are skipped and counted, and take a row number."""
    first = next((line.text for line in read_lines(path, reading) if line.problem or line.text.strip()), "")
    if first.lstrip("\ufeff ").startswith("["):
        with contextlib.suppress(DataError):  # lines may also begin with a bracket
            return open_json(path, reading)
    return mappings_table(str(path), _objects(path, reading))


def _objects(path: Path, reading: Reading) -> Iterator[RawRow | Skip]:
    for line in read_lines(path, reading):
        where = f"line {line.number:,}"
        if line.problem:
            yield Skip(where, line.problem, line.detail)
            continue
        if not line.text.strip():
            continue
        try:
            values = json.loads(line.text, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError) as error:  # for example, a number with thousands of digits
            yield Skip(where, "malformed JSON", getattr(error, "msg", str(error)).removesuffix(" at"))
            continue
        if isinstance(values, dict):
            yield RawRow(where, str(line.number - 1), values)
        else:
            yield Skip(where, "not an object", f"a JSON {type(values).__name__}")


def open_json(path: Path, reading: Reading) -> Table:
    """Open a file with a JSON array of objects or strings, or with JSON lines."""
    texts = (line.text for line in read_lines(path, reading) if line.problem or line.text.strip())
    lines = [*itertools.islice(texts, 2)] or [""]
    with contextlib.suppress(ValueError, RecursionError):  # an array may continue on the next line
        # A single object may be an export that has its rows in an array.
        row = json.loads(lines[0])
        if isinstance(row, dict) and (len(lines) > 1 or reading.text_column or first_match(TEXT_COLUMNS, [*row])):
            return open_json_lines(path, reading)
    try:
        value = json.loads(decode_text(read_whole(path, reading), reading.encoding), object_pairs_hook=_unique_keys)
    except (BadTextError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {': '.join(map(str, error.args))}. {_ADVICE}") from error
    if not isinstance(value, list):
        arrays = [name for name in value if isinstance(value[name], list)] if isinstance(value, dict) else []
        hints = (f" For {name!r}, run: jq -c '.[{json.dumps(name)}][]' {path} > rows.jsonl" for name in arrays[:1])
        raise DataError(f"{path} contains a single {type(value).__name__}. {_ADVICE}{''.join(hints)}")
    return mappings_table(str(path), item_rows(value, str(path), reading))


def item_rows(items: Iterable[object], name: str, reading: Reading) -> Iterator[RawRow | Row | Skip]:
    """Yield the items of an iterable of strings, Documents or mappings as rows."""
    for index, item in enumerate(items):
        where = f"item {index:,}"
        if hasattr(item, "as_py"):  # a pyarrow scalar
            item = item.as_py()
        if isinstance(item, Document):
            yield Row(
                where, None, item.text, id=item.id, label=item.label, has_id=True, split=item.split, is_document=True,
                metadata=item.metadata,
            )  # fmt: skip
        elif isinstance(item, str):
            reading.refuse_columns(f"{where} of {name} is a bare string, which")
            yield Row(where, None, item)
        elif isinstance(item, Mapping):
            yield RawRow(where, str(index), item)
        else:
            yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build a JSON object, keeping every value of a repeated name."""
    values = dict(pairs)
    if len(values) < len(pairs):
        values = dict(zip(unique_names([name for name, _ in pairs]), [value for _, value in pairs], strict=True))
    return values


def open_workbook(path: Path, reading: Reading) -> Iterator[Event]:
    """Yield the documents of all sheets: the rows of each with a header, and each other sheet as one text.

    Hidden sheets, and sheets without a text column, are skipped and counted.
    """
    try:
        with open_zip(path) as archive:
            main = dict(linked_parts(archive, "").values())["officeDocument"]
            links, book = linked_parts(archive, main), parse_part(archive, main)
            parts, strings = dict(links.values()), list[str]()
            if "sharedStrings" in parts:
                reading.check_size(archive.getinfo(parts["sharedStrings"]).file_size)
                strings = [text for _, _, text in _elements(archive, parts["sharedStrings"])]
            formats = (_number_formats(archive, parts["styles"]) if "styles" in parts else []) or [""]
            epoch = datetime(1904, 1, 1) if {"1", "true"} & {*book.xpath("//@date1904")} else datetime(1899, 12, 30)
            for node in book.iter("{*}sheet"):
                title, (kind, part) = node.get("name", ""), links[relation(node)]
                if node.get("state", "visible") != "visible":
                    yield Skip(title, "hidden sheet", id="")
                elif kind == "worksheet":  # others are charts
                    rows = _sheet_rows(archive, part, title, strings, formats, epoch)
                    try:
                        yield from _sheet_events(f"{path}, sheet {title!r}", title, rows, reading)
                    except DataError as error:
                        yield Skip(title, "sheet without a text column", str(error))
                    except Exception as error:  # of any library
                        yield make_skip(error, title)
    except Exception as error:
        yield make_skip(error, path.name)


def _sheet_events(name: str, title: str, rows: Iterator[RawRow], reading: Reading) -> Iterator[Event]:
    first = list(itertools.islice(rows, LOOK_AHEAD))
    rows = itertools.chain(first, rows)
    if names := _column_names([row.values for row in first]):
        next(rows)
        named = (replace(row, values={names[key]: row.values.get(key, _BLANK) for key in names}) for row in rows)
        yield from read_table(mappings_table(name, named, lambda value: not isinstance(value, UntypedText)), reading)
        return
    reading.refuse_columns(f"{name} has no header, so it")
    lines, size = list[str](), 0
    for row in rows:
        size += sum(len(str(cell)) for cell in row.values.values())
        reading.check_size(size)  # before joining cells, which may all refer to one text
        lines.append("\t".join(map(str, row.values.values())))
    yield Row(title, title, tidy_lines("\n".join(lines)), metadata={} if reading.metadata else None)


def _column_names(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of columns if the first row is a header: only text, and as wide as most of the other rows."""
    head, *others = rows or [{}]
    is_header = all(len(cell) <= _MAX_NAME and not isinstance(cell, UntypedText) for cell in head.values())
    fits = sum(cells.keys() <= head.keys() for cells in others)
    names = unique_names([" ".join(cell.split()) for cell in head.values()])
    return dict(zip(head, names, strict=True)) if is_header and 2 * fits > len(others) else {}


def _sheet_rows(
    archive: zipfile.ZipFile, part: str, title: str, strings: Sequence[str], formats: Sequence[str], epoch: datetime
) -> Iterator[RawRow]:
    """Yield the rows that are not empty: texts, and shown numbers, dates and booleans as untyped text."""
    number, cells = 0, dict[str, str]()
    for name, attributes, text in itertools.chain(_elements(archive, part), [("row", {}, "")]):
        place, kind = attributes.get("r", ""), attributes.get("t", "n")
        if name == "row":
            if cells:
                yield RawRow(f"{title}, row {number:,}", f"{title}:{number}", cells)
            number, column, cells = int(place or number + 1), 0, {}
            continue
        column += 1
        if kind == "s" and text:
            text = strings[int(text)]
        elif kind == "n" and text:
            text = UntypedText(_show_number(text, formats[int(attributes.get("s") or 0)], epoch))
        elif kind in ("b", "d"):  # booleans and ISO 8601 dates
            text = UntypedText({"0": "FALSE", "1": "TRUE"}.get(text, text))
        if text and kind != "e":  # an error
            cells[place.rstrip("0123456789") or f"column {column}"] = text


def _number_formats(archive: zipfile.ZipFile, part: str) -> list[str]:
    """Return the number formats by style, without literal text."""
    styles = parse_part(archive, part)
    codes = {int(node.get("numFmtId")): node.get("formatCode", "") for node in styles.iter("{*}numFmt")}
    codes = {number: _LITERAL.sub("", code.lower()) for number, code in {**_BUILT_IN, **codes}.items()}
    return [codes.get(int(node.get("numFmtId", 0)), "") for node in styles.iterfind("{*}cellXfs/{*}xf")]


def _show_number(text: str, code: str, epoch: datetime) -> str:
    """Return a number as its format shows it: as an ISO 8601 date or time, as a percentage, or plainly."""
    number = float(text)
    is_time = "h" in code or "s" in code
    is_date = "y" in code or "d" in code or ("m" in code and not is_time)
    if is_date and 0 <= number < 2_957_004:  # until 9999
        moment = epoch + timedelta(seconds=round(86_400 * number))
        return moment.isoformat(" ") if is_time else moment.date().isoformat()
    if is_time and not is_date and number >= 0:  # a time of day or a duration
        minutes, seconds = divmod(round(86_400 * number), 60)
        return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    if "%" in code:
        return f"{100 * number:.15g}%"
    return text if text.isdecimal() else f"{number:.15g}"


def _elements(archive: zipfile.ZipFile, part: str) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the name, attributes and text of rows, their cells and shared strings, without building a tree."""
    elements, opened = list[tuple[str, dict[str, str], list[str]]](), ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal opened
        opened = "" if opened == "rPh" else tag.rpartition(" ")[2]  # the pronunciation of Japanese words
        if opened in ("row", "c", "si"):
            elements.append((opened, attributes, []))

    def add(text: str) -> None:
        if opened in ("v", "t") and elements:
            elements[-1][2].append(text)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.CharacterDataHandler = start, add
    parser.DefaultHandler = len  # so that entities are not expanded
    with archive.open(archive.NameToInfo.pop(part)) as stream:  # once: a crafted file may refer to it many times
        for chunk in itertools.chain(iter(lambda: stream.read(1 << 16), b""), [b""]):
            parser.Parse(chunk, not chunk)
            while len(elements) > bool(chunk):  # the last may have more text
                name, attributes, texts = elements.pop(0)
                yield name, attributes, _ESCAPE.sub(lambda match: chr(int(match[1], 16)), "".join(texts)).strip()
