"""Tables, whatever they come from: which of their columns holds the text, and their rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simlte_st.data.document import Document
from simlte_st.data.rows import NOT_A_STRING, Columns, Event, RawRow, Row, Skip, UntypedText
from simlte_st.errors import DataError, did_you_mean

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")

MISSING_COLUMN = "missing column"
MALFORMED_ROW = "malformed row"
WRONG_FIELDS = "wrong number of fields"
BLANK_LINE = "blank line"

# Tables without a schema are looked at this far ahead to learn their columns; what is no row on the way is held up to
# the third number, and counted beyond.
LOOK_AHEAD_ROWS = 100
LOOK_AHEAD_CHARACTERS = 4_000_000
LOOK_AHEAD_SKIPS = 10_000


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was opened, to be read once.

    Attributes:
        name: Its name, for messages.
        columns: Names of its columns; those of the first rows where it has no header.
        strings: Those of them that hold strings; None where there was not one row to tell them by.
        kinds: What others hold, in words, where the source says.
        typed: Whether the values have types; where not, numbers and dates are text.
        rows: Gives its rows, when told the columns to read and those of them that are labels. Rows may have other
            columns too. What stands between mappings without being one comes as it is.
    """

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None
    rows: Callable[[Sequence[str], Collection[str]], Iterator[RawRow | Row | Skip]]
    kinds: Mapping[str, str] = field(default_factory=dict)
    typed: bool = True


def _first_of(names: Sequence[str], columns: Collection[str]) -> str | None:
    for name in names:
        for column in (name, *columns):
            if column in columns and column.lower() == name:
                return column
    return None


def choose_columns(named: Columns, table: Table) -> Columns:
    """Choose the columns of a table to read."""
    columns = table.columns
    there = ", ".join(columns) or "none"
    for parameter, name in named.named().items():
        if name not in columns:
            raise DataError(
                f"{table.name} has no column {name!r}.{did_you_mean(name, columns)} Its columns are: {there}. Name one "
                f"of them with {parameter}=."
            )
    id_column = named.id or _first_of(ID_COLUMNS, [column for column in columns if column != named.text])
    strings = [column for column in columns if column in (table.strings or ())]
    # A column called "text" is meant whatever it holds; of the other names, the first one with strings.
    text = named.text or _first_of(("text",), columns) or _first_of(TEXT_COLUMNS, strings)
    text = text or _first_of(TEXT_COLUMNS, columns)
    if text is not None and (text in table.kinds or not (named.text or text.lower() == "text" or text in strings)):
        raise DataError(
            f"The column {text!r} of {table.name} holds {table.kinds.get(text, 'no strings')}, not text. Its columns "
            f"are: {there}; those that hold strings: {', '.join(strings) or 'none'}. Name the column of the text with "
            "text_column=, or make strings of its values."
        )
    if text is None:
        candidates = [name for name in strings if name not in (id_column, named.label)]
        if len(candidates) != 1:
            raise DataError(
                f"Cannot tell which column of {table.name} holds the text. Its columns are: {there}; "
                f"those that hold strings: {', '.join(candidates) or 'none'}. Name it with text_column=."
            )
        text = candidates[0]
    chosen = Columns(text, id_column, named.label)
    for name in chosen.named().values():
        if list(columns).count(name) > 1:
            raise DataError(
                f"{table.name} has more than one column called {name!r}; rename one. Its columns are: {there}."
            )
    return chosen


def read_table(table: Table, named: Columns) -> Iterator[Event]:
    """Choose the columns of a table and read them."""
    # Without a single row, the report says what was wrong with the file, and no error that columns are missing.
    chosen = None if table.strings is None else choose_columns(named, table)
    if chosen is not None:
        yield chosen
    wanted = [] if chosen is None else list(dict.fromkeys(chosen.named().values()))
    labels = [named.label] if named.label else []
    if named.others and wanted:  # a name that is there twice cannot be told apart
        wanted += [name for name, times in Counter(table.columns).items() if times == 1 and name not in wanted]
        labels = wanted
    for row in table.rows(wanted, labels):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(named, table)
            yield chosen
        values, id_, label = row.values, chosen.id, chosen.label
        assert chosen.text is not None  # choose_columns sees to that
        if chosen.text not in values:
            own = values.get(id_) if id_ else None
            known = row.made_id if own is None else str(own)
            yield Skip(row.where, MISSING_COLUMN, f"no {chosen.text!r}", id=known)
            continue
        yield Row(
            row.where,
            row.made_id,
            values[chosen.text],
            values.get(id_) if id_ else None,
            values.get(label) if label else None,
            id_ is not None,
            metadata=_others(values, (chosen.text, id_), table.typed) if named.others else None,
        )


def _others(values: Mapping[str, Any], used: Collection[str | None], typed: bool) -> dict[str, Any]:
    others = {str(name): value for name, value in values.items() if name not in used}
    return others if typed else {name: UntypedText(value) for name, value in others.items()}


def _is_string(value: object) -> bool:
    return isinstance(value, str)


def mappings_table(
    name: str,
    rows: Iterator[RawRow | Row | Skip],
    is_text: Callable[[object], bool] = _is_string,
    header: Sequence[str] = (),
) -> Table:
    """Make a table of rows without a schema, from a look at the first of them.

    At most ``LOOK_AHEAD_ROWS`` rows are held for it, so a column that first occurs after them is not seen.
    """
    held: list[RawRow | Row | Skip] = []
    more: Counter[Skip] = Counter()
    broken: list[Exception] = []
    columns: dict[str, bool] = {}
    count = characters = 0
    try:
        for row in rows:
            if isinstance(row, Skip) and len(held) >= LOOK_AHEAD_SKIPS:
                more[Skip("further on", row.reason, ignored=row.ignored)] += 1
                continue
            held.append(row)
            for column, value in row.values.items() if isinstance(row, RawRow) else ():
                columns[str(column)] = columns.get(str(column), False) or is_text(value)
                characters += len(value) if isinstance(value, str) else 0
            characters += len(row.text) if isinstance(row, Row) and isinstance(row.text, str) else 0
            count += isinstance(row, RawRow)
            if count >= LOOK_AHEAD_ROWS or characters >= LOOK_AHEAD_CHARACTERS:
                break
    except Exception as error:
        broken.append(error)

    def everything(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Row | Skip]:
        yield from held
        held.clear()
        yield from more.elements()
        if broken:  # only now: the rows before the break are there
            raise broken[0]
        yield from rows

    strings = [column for column, text in columns.items() if text] if count else None
    return Table(name, header or list(columns), strings, everything)


def item_rows(items: Iterable[Any], name: str, named: Columns) -> Iterator[RawRow | Row | Skip]:
    """Return the items of an iterable of strings, Documents or mappings as rows."""
    mappings = False
    for index, item in enumerate(items):
        where = f"item {index:,}"
        if hasattr(item, "as_py"):  # a scalar of pyarrow
            item = item.as_py()
        if isinstance(item, Document):
            yield Row(where, None, item.text, item.id, item.label, True, item.split, True, item.metadata)
        elif isinstance(item, str) and named.named() and mappings:
            yield Skip(where, MISSING_COLUMN, "a bare string has no columns")
        elif isinstance(item, str):
            named.refuse(f"{where} of {name} is a bare string, which")
            yield Row(where, None, item)
        elif isinstance(item, Mapping):
            mappings = True
            yield RawRow(where, str(index), item)
        elif isinstance(item, os.PathLike):
            raise DataError(
                f"{where} of {name} is a path ({os.fspath(item)!r}), not a text: pass one path, a list of them, "
                "or the texts themselves, [path.read_text() for path in paths]."
            )
        else:
            yield Skip(where, NOT_A_STRING, f"{type(item).__name__} instead of a string or a mapping")
