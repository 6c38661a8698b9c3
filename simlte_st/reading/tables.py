"""Tables: choose the columns of the text, id and label, and read their rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from simlte_st.errors import DataError, did_you_mean
from simlte_st.reading.document import UntypedText
from simlte_st.reading.rows import Columns, Event, RawRow, Reading, Row, Skip

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")

MISSING_COLUMN = "missing column"

LOOK_AHEAD = 100
"""Number of first rows that determine the columns of a table without a schema."""

MISSING = object()
"""Placeholder for a missing value."""


@dataclass(frozen=True, slots=True)
class Table:
    """An open table, to be read once; ``rows`` takes the columns to read."""

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None  # columns of strings; None if there are no rows
    rows: Callable[[Sequence[str]], Iterator[RawRow | Event]]
    kinds: Mapping[str, str] = field(default_factory=dict)  # types of the other columns, if known
    folders: Mapping[str, str] = field(default_factory=dict)  # columns from folder names such as year=2020
    first: Callable[[Sequence[str]], Iterable[RawRow | Event]] = lambda columns: ()  # the first rows

    def find_column(self, name: str) -> str:
        """Return the column that a name or a path into a struct refers to."""
        starts = (start for start, _ in _split_path(name) if start in self.columns)
        return name if name in self.columns else next(starts, name)


def unique_names(header: Sequence[str]) -> list[str]:
    """Return unique column names; a second column ``name`` becomes ``name_2``."""
    numbers, names = {name: itertools.count(2) for name in header}, dict[str, None]()
    for name in header:
        free = (new for number in numbers[name] if (new := f"{name}_{number}") not in numbers and new not in names)
        names[next(free) if name in names else name] = None
    return list(names)


def value_at(values: Mapping[str, object], path: str) -> object:
    """Return the value of a column or at a path into a struct; :data:`MISSING` if there is none."""
    if path in values:
        return values[path]
    for name, inner_path in _split_path(path):
        inner = values.get(name)
        if isinstance(inner, Mapping) and (value := value_at(inner, inner_path)) is not MISSING:
            return value
    return MISSING


def _drop_value(values: Mapping[str, object], path: str) -> dict[str, object]:
    """Return the values without one column or path."""
    remaining = {str(name): value for name, value in values.items() if name != path}
    for name, inner_path in _split_path(path) if len(remaining) == len(values) else ():
        if isinstance(inner := remaining.get(name), Mapping):
            remaining[name] = _drop_value(inner, inner_path)
    return remaining


def _split_path(path: str) -> Iterator[tuple[str, str]]:
    """Yield the two parts of a path at each of its dots, since names may contain dots."""
    return ((path[:index], path[index + 1 :]) for index, character in enumerate(path) if character == ".")


def refuse_columns(reading: Reading, subject: str) -> None:
    """Raise :class:`DataError` if columns are named for a source without columns."""
    if named := ", ".join(f"{option}={name!r}" for option, name in reading.named_columns().items()):
        raise DataError(f"{subject} has no columns, so {named} cannot be used.")


def choose_columns(reading: Reading, table: Table) -> Columns:
    """Choose the columns of a table to read."""
    columns = table.columns
    listing = ", ".join([*columns, *table.folders]) or "none"
    for option, name in reading.named_columns().items():
        if table.find_column(name) not in columns and not (option == "label_column" and name in table.folders):
            raise DataError(
                f"{table.name} has no column {name!r}.{did_you_mean(name, columns)} Its columns are: {listing}. "
                f"Name one of them with {option}=."
            )
    named, label = reading.text_column, reading.label_column
    id_column = reading.id_column or first_match(ID_COLUMNS, [column for column in columns if column != named])
    strings = [column for column in columns if column in (table.strings or ())]
    # "text" is chosen whatever its type; other names only if they hold strings.
    text = named or first_match(("text",), columns) or first_match(TEXT_COLUMNS, strings)
    text = text or first_match(TEXT_COLUMNS, columns)
    if text is None:
        candidates = [name for name in strings if name not in (id_column, label)]
        text = candidates[0] if len(candidates) == 1 else _longest_column(table, candidates)
    if text is None or text in table.kinds or not (named or text.lower() == "text" or text in strings):
        problem = "" if text is None else f" {text!r} holds {table.kinds.get(text, 'no strings'):.200}."
        raise DataError(
            f"Cannot tell which column of {table.name} holds the text.{problem} Its columns are: {listing}; those that "
            f"hold strings: {', '.join(strings) or 'none'}. Name it with text_column= (article.body is in a struct)."
        )
    return Columns(text, id_column, label)


def _longest_column(table: Table, columns: Sequence[str]) -> str | None:
    """Return the string column that is by far the longest in the first rows, if any."""
    rows = [row.values for row in table.first(columns) if isinstance(row, RawRow)]
    sizes = sorted((sum(len(str(row.get(name) or "")) for row in rows), name) for name in columns)
    (second_size, _), (size, longest) = [(0, ""), (0, ""), *sizes][-2:]
    return longest if size > max(200 * len(rows), 10 * second_size) else None


def first_match(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Return the column of the first name that is a column, in any case."""
    # Among names that differ in case, prefer lower case, then the first.
    by_lower = {column.lower(): column for column in (*reversed(columns), *filter(str.islower, columns))}
    return next((by_lower[name] for name in names if name in by_lower), None)


def read_table(table: Table, reading: Reading) -> Iterator[Event]:
    """Choose the columns of a table and read them."""
    # Without any rows, the report says what is wrong with the file.
    chosen = None if table.strings is None else choose_columns(reading, table)
    columns: Sequence[str] = ()
    if chosen is not None:
        yield chosen
        needed = dict.fromkeys(table.find_column(name) for name in chosen if name is not None)
        columns = table.columns if reading.metadata else [name for name in needed if name in table.columns]
    for row in table.rows(columns):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(reading, table)
            yield chosen
        values = {**table.folders, **row.values}
        text, id_value, label = (None if name is None else value_at(values, name) for name in chosen)
        id_value, label = (None if value is MISSING else value for value in (id_value, label))
        if text is MISSING:
            id_text = row.generated_id if id_value is None else str(id_value)
            yield Skip(row.where, MISSING_COLUMN, f"no {chosen.text!r}", id=id_text)
            continue
        metadata = None
        if reading.metadata:
            metadata = _drop_value(values, chosen.text)
            metadata = _drop_value(metadata, chosen.id) if chosen.id else metadata
        has_id = chosen.id is not None
        yield Row(row.where, row.generated_id, text, id=id_value, label=label, has_id=has_id, metadata=metadata)


def mappings_table(
    name: str,
    rows: Iterator[RawRow | Event],
    is_text: Callable[[object], bool] = lambda value: isinstance(value, str),
    header: Sequence[str] = (),
) -> Table:
    """Make a table of rows without a schema; the first rows determine the columns."""
    first_rows = list(itertools.islice(rows, LOOK_AHEAD))
    columns: dict[str, bool] = {}
    for row in first_rows:
        for column, value in row.values.items() if isinstance(row, RawRow) else ():
            columns[str(column)] = columns.get(str(column), False) or is_text(value)

    def all_rows(columns: Sequence[str]) -> Iterator[RawRow | Event]:
        yield from first_rows
        first_rows.clear()
        yield from rows

    strings = [column for column, has_text in columns.items() if has_text] if columns else None
    return Table(name, header or list(columns), strings, all_rows, first=lambda columns: first_rows)


def folder_columns(path: Path) -> dict[str, str]:
    """Return the columns in folder names such as ``year=2020``, which Hive, Spark and pandas write."""
    parts = (part.partition("=") for part in path.parent.parts)
    return {name: UntypedText(unquote(value)) for name, sign, value in parts if sign and name.isidentifier()}
