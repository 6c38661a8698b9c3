"""Read CSV, TSV, JSON, JSON lines, workbooks and iterables of records."""

from __future__ import annotations

import contextlib
import csv
import functools
import itertools
import json
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simlte_st.errors import DataError
from simlte_st.extras import check_installed
from simlte_st.reading.document import Document, UntypedText, unique_names
from simlte_st.reading.formats.office import linked_parts, open_zip, parse_part, relation
from simlte_st.reading.rows import (
    EXTRA,
    NOT_A_STRING,
    TOO_LONG,
    BadTextError,
    Event,
    RawRow,
    Reading,
    Row,
    Skip,
    make_skip,
)
from simlte_st.reading.tables import LOOK_AHEAD, TEXT_COLUMNS, Table, first_match, mappings_table, read_table
from simlte_st.reading.text_files import decode_text, read_lines, read_whole, tidy_lines

MALFORMED_ROW = "malformed row"
STRAY_QUOTES = "quotation marks kept, because they enclose no cell"

_ADVICE = "Make it an array of objects or strings, or JSON lines (.jsonl, one object per line)."
_MAX_NAME = 200  # characters; a longer cell is a text rather than the name of a column


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
    check_installed("openpyxl", EXTRA, "reading workbooks")
    from openpyxl.reader.strings import read_string_table
    from openpyxl.styles.numbers import BUILTIN_FORMATS, is_date_format, is_timedelta_format
    from openpyxl.utils.datetime import MAC_EPOCH, WINDOWS_EPOCH
    from openpyxl.utils.escape import unescape
    from openpyxl.worksheet._reader import WorkSheetParser

    warnings.filterwarnings("ignore", module="openpyxl")  # about features that are not read
    try:
        with open_zip(path) as archive:
            main = dict(linked_parts(archive, "").values())["officeDocument"]
            links, book = linked_parts(archive, main), parse_part(archive, main)
            parts = dict(links.values())
            pop_part = archive.NameToInfo.pop  # a part is read once, as in parse_part
            name = parts.get("sharedStrings")
            texts = read_string_table(archive.open(pop_part(name))) if name else []
            strings = [unescape(text).strip() for text in texts]
            styles = parse_part(archive, parts["styles"]) if "styles" in parts else book  # which has no formats
            codes = {int(node.get("numFmtId")): node.get("formatCode", "")[:255] for node in styles.iter("{*}numFmt")}
            ids = [int(node.get("numFmtId", 0)) for node in styles.iterfind("{*}cellXfs/{*}xf")]
            formats = [codes.get(number, BUILTIN_FORMATS.get(number, "")) for number in ids]
            tests = map(functools.cache, (is_date_format, is_timedelta_format, lambda code: "%" in code))
            dates, spans, percents = ({n for n, code in enumerate(formats) if test(code)} for test in tests)
            epoch = MAC_EPOCH if {"1", "true"} & {*book.xpath("//@date1904")} else WINDOWS_EPOCH
            for node in book.iter("{*}sheet"):
                title, (kind, part) = node.get("name", ""), links[relation(node)]
                if node.get("state", "visible") != "visible":
                    yield Skip(title, "hidden sheet", id="")
                elif kind == "worksheet":  # others are charts
                    try:
                        # Not its worksheets, which fill in missing rows and cells: hours, for a crafted file.
                        rows = WorkSheetParser(archive.open(pop_part(part)), strings, True, epoch, dates, spans).parse()
                        yield from _read_sheet(rows, percents, title, f"{path}, sheet {title!r}", reading)
                    except DataError as error:
                        yield Skip(title, "sheet without a text column", str(error))
                    except Exception as error:  # of any library
                        yield make_skip(error, title)
    except Exception as error:
        yield make_skip(error, path.name)


def _read_sheet(rows: Iterable[Any], percents: set[int], title: str, name: str, reading: Reading) -> Iterator[Event]:
    """Read a sheet as a table if its first row is a header: only text, and as wide as most of the other rows."""
    shown = _show_rows(rows, percents, reading)
    first = list(itertools.islice(shown, LOOK_AHEAD))
    head, *others = [cells for _, cells in first] or [{}]
    is_header = all(len(cell) <= _MAX_NAME and not isinstance(cell, UntypedText) for cell in head.values())
    if is_header and 2 * sum(cells.keys() <= head.keys() for cells in others) > len(others):
        names = dict(zip(head, unique_names([" ".join(cell.split()) for cell in head.values()]), strict=True))

        def name_cells(number: int, cells: dict[int, str]) -> RawRow:
            values = {name: cells.get(column, UntypedText()) for column, name in names.items()}
            return RawRow(f"{title}, row {number:,}", f"{title}:{number}", values)

        table = itertools.starmap(name_cells, itertools.chain(first[1:], shown))
        yield from read_table(mappings_table(name, table, lambda cell: not isinstance(cell, UntypedText)), reading)
        return
    reading.refuse_columns(f"{name} has no header, so it")
    text = "\n".join("\t".join(cells.values()) for _, cells in itertools.chain(first, shown))
    yield Row(title, title, tidy_lines(text), metadata={} if reading.metadata else None)


def _show_rows(rows: Iterable[Any], percents: set[int], reading: Reading) -> Iterator[tuple[int, dict[int, str]]]:
    """Yield the number of each row that is not empty, and its texts by column; errors count as empty."""
    size = 0
    for number, row in rows:
        valid = [cell for cell in row if cell["data_type"] != "e"]
        texts = {cell["column"]: _show(cell["value"], cell["style_id"] in percents) for cell in valid}
        size += sum(map(len, texts.values()))
        reading.check_size(size)  # because the cells of a crafted file may repeat a long text
        if any(texts.values()):
            yield number, {column: text for column, text in texts.items() if text}


def _show(value: Any, is_percent: bool) -> str:
    """Return a text, or a number, date or boolean as untyped text."""
    if value is None or isinstance(value, str):
        return (value or "").strip()
    if isinstance(value, (int, float)) and is_percent:
        return UntypedText(f"{100 * value:.15g}%")
    return UntypedText(f"{value:.15g}" if isinstance(value, float) else str(value).removesuffix(" 00:00:00"))
