"""Rows on their way to documents, and tables: which of their columns holds the text.

A source yields events: the columns that were chosen for a table, rows, and skips, which the report counts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simlte_st.data.config import SourceConfig
from simlte_st.data.document import Document
from simlte_st.errors import DataError, did_you_mean

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")

UNREADABLE = "unreadable"
NOT_A_STRING = "not a string"
MISSING_COLUMN = "missing column"
MALFORMED_ROW = "malformed row"
WRONG_FIELDS = "wrong number of fields"
BLANK_LINE = "blank line"

# The columns of a table without a schema are those of its first rows.
LOOK_AHEAD_ROWS = 100
LOOK_AHEAD_CHARACTERS = 4_000_000
LOOK_AHEAD_SKIPS = 10_000

MISSING = object()
"""What there is at a path where there is nothing."""


class UntypedText(str):
    """A value of a source without types: it may spell a number or a date."""

    __slots__ = ()


class Columns(NamedTuple):
    """The columns that were chosen for a table."""

    text: str
    id: str | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row of a table: where it stands, its id if the table gives none, and its values by column."""

    where: str
    made_id: str | None
    values: Mapping[str, Any]
    left_out: tuple[tuple[str, str], ...] = ()  # as in Row


@dataclass(frozen=True, slots=True)
class Row:
    """What a source holds of one document, not yet checked."""

    where: str  # for the report
    made_id: str | None  # for sources without ids; None stands for the hash of the text
    text: object
    id: object = None
    label: object = None
    has_id: bool = False  # whether the source has ids, so that a missing one is reported
    split: str | None = None
    is_document: bool = False  # whether it was a Document already, whose text was checked when it was read
    metadata: Mapping[str, Any] | None = None
    source: str | None = None  # if it is one of several
    left_out: tuple[tuple[str, str], ...] = ()  # parts of a file that are not in its text: their kind, and what it is


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that gives no document: a bad row, which is counted, or not a row at all (``ignored``).

    ``id`` is that of the document it would be, if known; for an unreadable folder, the common prefix of its ids.
    """

    where: str
    reason: str
    what: str = ""
    ignored: bool = False
    id: str | None = None


Event = Columns | Row | Skip


Rows = Callable[[Sequence[str], Collection[str]], Iterator[RawRow | Row | Skip]]


@dataclass(frozen=True, slots=True)
class Table:
    """An open table, to be read once; ``rows`` takes the columns to read, and those of them that are labels."""

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None  # columns of strings; None if there was no row to infer them from
    rows: Rows
    kinds: Mapping[str, str] = field(default_factory=dict)  # what others hold, if the source says
    typed: bool = True  # if not, numbers and dates are text

    def column_of(self, name: str) -> str:
        """Return the column that a name is read from: itself, or that of the struct which it may be a path into."""
        columns = [start for start, _ in _cuts(name) if start in self.columns]
        return name if name in self.columns or not columns else columns[0]


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """Return the value of a column, or that at a path into its structs; :data:`MISSING` if there is none."""
    if path in values:
        return values[path]
    for name, rest in _cuts(path):
        inner = values.get(name)
        if isinstance(inner, Mapping) and (value := value_at(inner, rest)) is not MISSING:
            return value
    return MISSING


def _without(values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return values without that of a column or at a path, nor a struct that held nothing else."""
    kept = {str(name): value for name, value in values.items() if name != path}
    for name, rest in _cuts(path) if len(kept) == len(values) else ():
        if isinstance(inner := kept.get(name), Mapping) and value_at(inner, rest) is not MISSING:
            kept[name] = _without(inner, rest)
            return kept if kept[name] else _without(kept, name)
    return kept


def _cuts(path: str) -> Iterator[tuple[str, str]]:
    return ((path[:place], path[place + 1 :]) for place, sign in enumerate(path) if sign == ".")


def refuse_columns(config: SourceConfig, what: str) -> None:
    """Raise :class:`DataError` if columns are named for a source without columns, ``what``."""
    if named := ", ".join(f"{setting}={name!r}" for setting, name in config.named_columns().items()):
        raise DataError(f"{what} has no columns, so {named} cannot be used with it.")


def choose_columns(config: SourceConfig, table: Table) -> Columns:
    """Choose the columns of a table to read."""
    columns = table.columns
    there = ", ".join(columns) or "none"
    for setting, name in config.named_columns().items():
        if table.column_of(name) not in columns:
            raise DataError(
                f"{table.name} has no column {name!r}.{did_you_mean(name, columns)} Its columns are: {there}. "
                f"Name one of them with {setting}=."
            )
    named, label = config.text_column, config.label_column
    id_column = config.id_column or _first_of(ID_COLUMNS, [column for column in columns if column != named])
    strings = [column for column in columns if column in (table.strings or ())]
    # A column called "text" is chosen whatever it holds; of the other names, the first one with strings.
    text = named or _first_of(("text",), columns) or _first_of(TEXT_COLUMNS, strings)
    text = text or _first_of(TEXT_COLUMNS, columns)
    if text is not None and (text in table.kinds or not (named or text.lower() == "text" or text in strings)):
        raise DataError(
            f"The column {text!r} of {table.name} holds {table.kinds.get(text, 'no strings'):.200}, not text. Its "
            f"columns are: {there}; those that hold strings: {', '.join(strings) or 'none'}. Name the column of the "
            "text with text_column= (article.body is in a struct), or convert its values to strings."
        )
    if text is None:
        candidates = [name for name in strings if name not in (id_column, label)]
        if len(candidates) != 1:
            raise DataError(
                f"Cannot tell which column of {table.name} holds the text. Its columns are: {there}; those that hold "
                f"strings: {', '.join(candidates) or 'none'}. Name it with text_column=."
            )
        text = candidates[0]
    chosen = [table.column_of(name) for name in (text, id_column, label) if name is not None]
    if repeated := [name for name in chosen if list(columns).count(name) > 1]:
        raise DataError(
            f"{table.name} has more than one column called {repeated[0]!r}; rename one. Its columns are: {there}."
        )
    return Columns(text, id_column, label)


def _first_of(names: Sequence[str], columns: Collection[str]) -> str | None:
    for name in names:
        for column in (name, *columns):
            if column in columns and column.lower() == name:
                return column
    return None


def read_table(table: Table, config: SourceConfig) -> Iterator[Event]:
    """Choose the columns of a table and read them."""
    # If there is not a single row, the report tells what is wrong with the file, not that columns are missing.
    chosen = None if table.strings is None else choose_columns(config, table)
    wanted: list[str] = []
    labels = [config.label_column] if config.label_column else []
    if chosen is not None:
        yield chosen
        wanted = list(dict.fromkeys(table.column_of(name) for name in chosen if name is not None))
        if config.metadata:  # of columns with the same name none can be chosen
            wanted = [name for name, times in Counter(table.columns).items() if times == 1]
            labels = list(dict.fromkeys([*wanted, *labels]))
    for row in table.rows(wanted, labels):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(config, table)
            yield chosen
        values = row.values
        own = [value_at(values, name) if name else None for name in (chosen.id, chosen.label)]
        own = [None if value is MISSING else value for value in own]
        if not table.typed:
            own = [UntypedText(value) if isinstance(value, str) else value for value in own]
        id_value, label = own
        if (text := value_at(values, chosen.text)) is MISSING:
            known = row.made_id if id_value is None else str(id_value)
            yield Skip(row.where, MISSING_COLUMN, f"no {chosen.text!r}", id=known)
            continue
        yield Row(
            row.where,
            row.made_id,
            text,
            id_value,
            label,
            has_id=chosen.id is not None,
            metadata=_others(values, chosen, table.typed) if config.metadata else None,
            left_out=row.left_out,
        )


def _others(values: Mapping[str, Any], chosen: Columns, typed: bool) -> dict[str, Any]:
    others = _without(values, chosen.text)
    others = _without(others, chosen.id) if chosen.id else others
    return others if typed else {name: UntypedText(value) for name, value in others.items()}


def mappings_table(
    name: str,
    rows: Iterator[RawRow | Row | Skip],
    is_text: Callable[[object], bool] = lambda value: isinstance(value, str),
    header: Sequence[str] = (),
) -> Table:
    """Make a table of rows without a schema, from a look at the first of them.

    At most ``LOOK_AHEAD_ROWS`` rows are held for it, so a column that first occurs after them is not seen.
    """
    held: list[RawRow | Row | Skip] = []
    columns: dict[str, bool] = {}
    count = characters = 0
    for row in rows:
        held.append(row)
        for column, value in row.values.items() if isinstance(row, RawRow) else ():
            columns[str(column)] = columns.get(str(column), False) or is_text(value)
            characters += len(value) if isinstance(value, str) else 0
        count += isinstance(row, RawRow)
        if count >= LOOK_AHEAD_ROWS or characters >= LOOK_AHEAD_CHARACTERS or len(held) >= LOOK_AHEAD_SKIPS:
            break

    def everything(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Row | Skip]:
        yield from held
        held.clear()
        yield from rows

    strings = [column for column, text in columns.items() if text] if count else None
    return Table(name, header or list(columns), strings, everything)


def item_rows(items: Iterable[Any], name: str, config: SourceConfig) -> Iterator[RawRow | Row | Skip]:
    """Return the items of an iterable of strings, Documents or mappings as rows."""
    for index, item in enumerate(items):
        where = f"item {index:,}"
        if hasattr(item, "as_py"):  # a scalar of pyarrow
            item = item.as_py()
        if isinstance(item, Document):
            yield Row(where, None, item.text, item.id, item.label, True, item.split, True, item.metadata)
        elif isinstance(item, str):
            refuse_columns(config, f"{where} of {name} is a bare string, which")
            yield Row(where, None, item)
        elif isinstance(item, Mapping):
            yield RawRow(where, str(index), item)
        elif isinstance(item, os.PathLike):
            raise DataError(f"{where} of {name} is a path ({os.fspath(item)!r}), not a text: pass a list of paths.")
        else:
            yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")
