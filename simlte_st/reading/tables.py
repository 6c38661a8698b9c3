"""Tables: choose the columns of text, id and label, and read mappings, CSV, TSV and JSON files."""

from __future__ import annotations

import contextlib
import csv
import itertools
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from simlte_st.errors import DataError, did_you_mean
from simlte_st.reading.document import Document, UntypedText
from simlte_st.reading.rows import (
    BINARY,
    NOT_A_STRING,
    TOO_LONG,
    BadTextError,
    Columns,
    Event,
    RawRow,
    Reading,
    Row,
    Skip,
)
from simlte_st.reading.slack import without_markup
from simlte_st.reading.text_files import decode_text, read_lines, read_whole

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")

MISSING_COLUMN = "missing column"
MALFORMED_ROW = "malformed row"
WRONG_FIELDS = "wrong number of fields"
MALFORMED_JSON = "malformed JSON"
NOT_AN_OBJECT = "not an object"

LOOK_AHEAD = 100
"""Number of first rows that determine the columns of a table without a schema."""

MISSING = object()
"""Stands for a missing value."""

_ADVICE = "Make it an array of objects or strings, or JSON lines (.jsonl, one object per line)."


@dataclass(frozen=True, slots=True)
class Table:
    """An open table, to be read once; ``rows`` takes the columns to read."""

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None  # columns of strings; None if there are no rows
    rows: Callable[[Sequence[str]], Iterator[RawRow | Row | Skip]]
    kinds: Mapping[str, str] = field(default_factory=dict)  # types of the other columns, if known
    typed: bool = True  # if False, numbers and dates are text
    folders: Mapping[str, str] = field(default_factory=dict)  # columns from folder names such as year=2020
    first: Callable[[Sequence[str]], Iterable[RawRow | Row | Skip]] = lambda wanted: ()  # the first rows

    def column_of(self, name: str) -> str:
        """Return the column that contains a name, which may be a path into a struct."""
        starts = (start for start, _ in _cuts(name) if start in self.columns)
        return name if name in self.columns else next(starts, name)


def unique_names(header: Sequence[str]) -> list[str]:
    """Return unique column names; a second column ``name`` becomes ``name_2``."""
    counts, names = {name: itertools.count(2) for name in header}, dict[str, None]()
    for name in header:
        free = (each for number in counts[name] if (each := f"{name}_{number}") not in counts and each not in names)
        names[next(free) if name in names else name] = None
    return list(names)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a JSON object, keeping the values of repeated names."""
    made = dict(pairs)
    if len(made) < len(pairs):
        made = dict(zip(unique_names([name for name, _ in pairs]), [value for _, value in pairs], strict=True))
    return made


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column or at a path into a struct; :data:`MISSING` if there is none."""
    if path in values:
        return values[path]
    for name, rest in _cuts(path):
        inner = values.get(name)
        if isinstance(inner, Mapping) and (value := value_at(inner, rest)) is not MISSING:
            return value
    return MISSING


def _without(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the values without one column or path."""
    kept = {str(name): value for name, value in values.items() if name != path}
    for name, rest in _cuts(path) if len(kept) == len(values) else ():
        if isinstance(inner := kept.get(name), Mapping):
            kept[name] = _without(inner, rest)
    return kept


def _cuts(path: str) -> Iterator[tuple[str, str]]:
    return ((path[:place], path[place + 1 :]) for place, sign in enumerate(path) if sign == ".")


def refuse_columns(reading: Reading, what: str) -> None:
    """Raise :class:`DataError` if columns are named for a source without columns."""
    if named := ", ".join(f"{option}={name!r}" for option, name in reading.named_columns().items()):
        raise DataError(f"{what} has no columns, so {named} cannot be used.")


def choose_columns(reading: Reading, table: Table) -> Columns:
    """Choose the columns of a table to read."""
    columns = table.columns
    there = ", ".join([*columns, *table.folders]) or "none"
    for option, name in reading.named_columns().items():
        if table.column_of(name) not in columns and not (option == "label_column" and name in table.folders):
            raise DataError(
                f"{table.name} has no column {name!r}.{did_you_mean(name, columns)} Its columns are: {there}. "
                f"Name one of them with {option}=."
            )
    named, label = reading.text_column, reading.label_column
    id_column = reading.id_column or _first_match(ID_COLUMNS, [column for column in columns if column != named])
    strings = [column for column in columns if column in (table.strings or ())]
    # "text" is chosen whatever its type; other names only if they hold strings.
    text = named or _first_match(("text",), columns) or _first_match(TEXT_COLUMNS, strings)
    text = text or _first_match(TEXT_COLUMNS, columns)
    if text is None:
        candidates = [name for name in strings if name not in (id_column, label)]
        text = candidates[0] if len(candidates) == 1 else _longest(table, candidates)
    if text is None or text in table.kinds or not (named or text.lower() == "text" or text in strings):
        known = "" if text is None else f" {text!r} holds {table.kinds.get(text, 'no strings'):.200}."
        raise DataError(
            f"Cannot tell which column of {table.name} holds the text.{known} Its columns are: {there}; those that "
            f"hold strings: {', '.join(strings) or 'none'}. Name it with text_column= (article.body is in a struct)."
        )
    return Columns(text, id_column, label)


def _longest(table: Table, columns: Sequence[str]) -> str | None:
    """Return the string column that is by far the longest in the first rows, if any."""
    rows = [row.values for row in table.first(columns) if isinstance(row, RawRow)]
    sizes = sorted((sum(len(str(row.get(name) or "")) for row in rows), name) for name in columns)
    (other, _), (size, longest) = [(0, ""), (0, ""), *sizes][-2:]
    return longest if size > max(200 * len(rows), 10 * other) else None


def _first_match(names: Sequence[str], columns: Sequence[str]) -> str | None:
    # Among names that differ in case, prefer lower case, then the first.
    found = {column.lower(): column for column in (*reversed(columns), *filter(str.islower, columns))}
    return next((found[name] for name in names if name in found), None)


def read_table(table: Table, reading: Reading) -> Iterator[Event]:
    """Choose the columns of a table and read them."""
    # Without any rows, the report says what is wrong with the file.
    chosen = None if table.strings is None else choose_columns(reading, table)
    wanted: list[str] = []
    if chosen is not None:
        yield chosen
        named = dict.fromkeys(table.column_of(name) for name in chosen if name is not None)
        wanted = list(table.columns) if reading.metadata else [name for name in named if name in table.columns]
    for row in table.rows(wanted):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(reading, table)
            yield chosen
        own = row.values if table.typed else {name: UntypedText(value) for name, value in row.values.items()}
        values = {**table.folders, **own}
        text, id_value, label = (None if name is None else value_at(values, name) for name in chosen)
        id_value, label = (None if value is MISSING else value for value in (id_value, label))
        if text is MISSING:
            known = row.made_id if id_value is None else str(id_value)
            yield Skip(row.where, MISSING_COLUMN, f"no {chosen.text!r}", id=known)
            continue
        others = None
        if reading.metadata:
            others = _without(values, chosen.text)
            others = _without(others, chosen.id) if chosen.id else others
        yield Row(row.where, row.made_id, text, id_value, label, has_id=chosen.id is not None, metadata=others)


def mappings_table(
    name: str,
    rows: Iterator[RawRow | Row | Skip],
    is_text: Callable[[object], bool] = lambda value: isinstance(value, str),
    header: Sequence[str] = (),
) -> Table:
    """Make a table of rows without a schema; the first rows determine the columns."""
    held = list(itertools.islice(rows, LOOK_AHEAD))
    columns: dict[str, bool] = {}
    for row in held:
        for column, value in row.values.items() if isinstance(row, RawRow) else ():
            columns[str(column)] = columns.get(str(column), False) or is_text(value)

    def everything(wanted: Sequence[str]) -> Iterator[RawRow | Row | Skip]:
        yield from held
        held.clear()
        yield from rows

    strings = [column for column, text in columns.items() if text] if columns else None
    return Table(name, header or list(columns), strings, everything, first=lambda wanted: held)


def folder_columns(path: Path) -> dict[str, str]:
    """Return the columns in folder names such as ``year=2020``, which Hive, Spark and pandas write."""
    found = (part.partition("=") for part in path.parent.parts)
    return {name: UntypedText(unquote(value)) for name, sign, value in found if sign and name.isidentifier()}


def item_rows(items: Iterable[Any], name: str, reading: Reading) -> Iterator[RawRow | Row | Skip]:
    """Yield the items of an iterable of strings, Documents or mappings as rows."""
    for index, item in enumerate(items):
        where = f"item {index:,}"
        if hasattr(item, "as_py"):  # a scalar of pyarrow
            item = item.as_py()
        if isinstance(item, Document):
            yield Row(where, None, item.text, item.id, item.label, True, item.split, True, item.metadata)
        elif isinstance(item, str):
            refuse_columns(reading, f"{where} of {name} is a bare string, which")
            yield Row(where, None, item)
        elif isinstance(item, Mapping):
            yield RawRow(where, str(index), without_markup(item))
        else:
            yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")


def _layout(path: Path, reading: Reading) -> tuple[str, int]:
    """Return the separator that fits the first rows best, and the number of rows above the header."""

    def fit(mark: str) -> tuple[int, int]:
        rows: list[list[str]] = []
        with contextlib.suppress(csv.Error):
            lines = csv.reader((line.text for line in read_lines(path, reading)), delimiter=mark, strict=True)
            rows.extend(itertools.islice(lines, LOOK_AHEAD))
        above = _rows_above_header(rows)
        fields = len(rows[above]) if above < len(rows) else 0
        return sum(len(row) == fields for row in rows[above:]) * (fields - 1), above

    plain = path.name.lower().removesuffix(".gz").removesuffix(".zst")
    fits = {mark: fit(mark) for mark in ("\t" if plain.endswith(".tsv") else ",", ";", "\t", "|", ",")}
    best = max(fits, key=lambda mark: fits[mark][0])
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
    # The limit is global; it is only raised, so that other users of `csv` are not affected.
    csv.field_size_limit(max(csv.field_size_limit(), reading.max_characters + 1))
    problems: list[tuple[str, str]] = []  # in the lines of the current row

    def lines() -> Iterator[str]:
        for line in read_lines(path, reading):
            if line.problem:
                problems.append((line.problem, line.what))
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
        raise DataError(f"The header of {path} cannot be read: {problems[0][1]}. Is it in another encoding=?")
    names = unique_names(header)

    def rows() -> Iterator[RawRow | Skip]:
        index = -1
        while True:
            problems.clear()
            first = reader.line_num + 1
            try:
                row = next(reader, None)
            except csv.Error as error:  # an undecodable line is reported first
                row = []
                problems.append((TOO_LONG if "field limit" in str(error) else MALFORMED_ROW, str(error)))
            if row is None:
                return
            last = reader.line_num
            where = f"line {first:,}" if last <= first else f"lines {first:,} to {last:,}"
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
                yield RawRow(where, str(index), dict(zip(names, row, strict=True)))

    return replace(mappings_table(str(path), rows(), _is_words, names), typed=False)


def _is_words(value: object) -> bool:
    """Return whether a CSV field is text other than a number."""
    text = str(value)[:64].strip()
    try:
        float(text)
    except ValueError:
        return bool(text)
    return False


def open_json_lines(path: Path, reading: Reading) -> Table:
    """Open a JSON lines file; other lines are skipped and counted, and have a row number too."""
    return mappings_table(str(path), _objects(path, reading))


def _objects(path: Path, reading: Reading) -> Iterator[RawRow | Skip]:
    for line in read_lines(path, reading):
        where = f"line {line.number:,}"
        if line.problem:
            yield Skip(where, line.problem, line.what)
            continue
        if not line.text.strip():
            continue
        try:
            values = json.loads(line.text, object_pairs_hook=_unique_keys)
        except (ValueError, RecursionError) as error:  # ValueError also for a number with thousands of digits
            yield Skip(where, MALFORMED_JSON, getattr(error, "msg", str(error)).removesuffix(" at"))
            continue
        if isinstance(values, dict):
            yield RawRow(where, str(line.number - 1), without_markup(values))
        else:
            yield Skip(where, NOT_AN_OBJECT, f"a JSON {type(values).__name__}")


def open_json(path: Path, reading: Reading) -> Table:
    """Open a file with an array of objects or strings, or with JSON lines."""
    lines = (line.text for line in read_lines(path, reading) if line.problem or line.text.strip())
    first, *others = [*itertools.islice(lines, 2)] or [""]
    with contextlib.suppress(ValueError, RecursionError):  # an array may continue in the next line
        # A single object may be an export with its rows in an array.
        row = json.loads(first)
        if isinstance(row, dict) and (others or reading.text_column or _first_match(TEXT_COLUMNS, [*row])):
            return open_json_lines(path, reading)
    try:
        value = json.loads(decode_text(read_whole(path, reading), reading.encoding), object_pairs_hook=_unique_keys)
    except (BadTextError, ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {': '.join(map(str, error.args))}. {_ADVICE}") from error
    if not isinstance(value, list):
        arrays = [name for name, each in value.items() if isinstance(each, list)] if isinstance(value, dict) else []
        hints = (f" The rows in {name!r}: jq -c '.[{json.dumps(name)}][]' {path} > rows.jsonl" for name in arrays[:1])
        raise DataError(f"{path} holds one {type(value).__name__}. {_ADVICE}{''.join(hints)}")
    return mappings_table(str(path), item_rows(value, str(path), reading))
