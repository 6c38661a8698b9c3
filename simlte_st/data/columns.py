"""What every source with columns becomes, a table, and which of its columns holds the text: named, or found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simlte_st.errors import DataError

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")
MISSING_COLUMN = "missing column"


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns: as asked for (``text`` may be None), or as chosen for a source (``text`` is set).

    ``others`` asks for all columns but text and id as the documents' metadata.
    """

    text: str | None = None
    id: str | None = None
    label: str | None = None
    others: bool = False

    def named(self) -> dict[str, str]:
        """The names that are set, by the parameter of ``read_documents`` they belong to."""
        pairs = {"text_column": self.text, "id_column": self.id, "label_column": self.label}
        return {parameter: name for parameter, name in pairs.items() if name is not None}

    def refuse(self, what: str) -> None:
        """Raise :class:`DataError` if any is named: ``what`` (as it reads at a sentence's beginning) has no columns."""
        if self.named():
            named = ", ".join(f"{parameter}={name!r}" for parameter, name in self.named().items())
            raise DataError(f"{what} has no columns, so {named} cannot be used with it.")


@dataclass(frozen=True, slots=True)
class Row:
    """What a source holds of one document, not yet checked.

    Attributes:
        where: Where it stands, for the report.
        made_id: The id where the source gives none; None means the hash of the text.
        text: The value of the text column.
        id: The value of the id column.
        label: The value of the label column.
        has_id: Whether the source has an id column, so that a missing id is worth a mention.
        split: The part of a benchmark it belongs to, where the source says.
        read: Whether it was a document already, which was judged when it was read.
        metadata: The values of the other columns, where they were asked for.
        source: Name of the source, where it is one of several.
    """

    where: str
    made_id: str | None
    text: object
    id: object = None
    label: object = None
    has_id: bool = False
    split: str | None = None
    read: bool = False
    metadata: Mapping[str, Any] | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that gives no document: a bad row (counted), or what is no row at all (``ignored``)."""

    where: str
    reason: str
    what: str = ""
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row of a table: where it stands, its id where the table gives none, and its values by column."""

    where: str
    made_id: str | None
    values: Mapping[str, Any]


Event = Row | Skip | Columns


@dataclass(frozen=True, slots=True)
class Table:
    """A table that was opened, to be read once.

    Attributes:
        name: Its name, for messages.
        columns: Names of its columns; those of the first rows where it has no header.
        strings: Those of them that hold strings; None where not one row was found to tell them by.
        rows: Gives its rows, when told the columns to read and those of them that are labels. Rows may have other
            columns too. What stands between mappings without being one comes as it is.
    """

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None
    rows: Callable[[Sequence[str], Collection[str]], Iterator[RawRow | Row | Skip]]


def _flag(parameter: str) -> str:
    flag = "evaluate --label, train --probe" if parameter == "label_column" else f"--{parameter.replace('_', '-')}"
    return f"{parameter}= (on the command line: {flag})"


def _find(wanted: Sequence[str], columns: Collection[str]) -> str | None:
    for name in wanted:
        for column in (name, *columns):
            if column in columns and column.lower() == name:
                return column
    return None


def choose_columns(asked: Columns, table: Table) -> Columns:
    """Choose the columns of a table to read.

    Args:
        asked: The names the user gave.
        table: The table.

    Returns:
        The text column, and the id and label columns where there are such.

    Raises:
        DataError: A named column is missing, a column is there twice, or the text column can be any of several or none.
    """
    columns = table.columns
    there = ", ".join(columns) or "none"
    for parameter, name in asked.named().items():
        if name not in columns:
            raise DataError(
                f"{table.name} has no column {name!r}. Its columns are: {there}. "
                f"Name one of them with {_flag(parameter)}."
            )
    id_column = asked.id or _find(ID_COLUMNS, [column for column in columns if column != asked.text])
    strings = [column for column in columns if column in (table.strings or ())]
    # A column called "text" is meant whatever it holds (bad rows are counted); the other names must hold strings.
    text = asked.text or _find(("text",), columns) or _find(TEXT_COLUMNS, strings)
    if text is None:
        left = [name for name in strings if name not in (id_column, asked.label)]
        if len(left) != 1:
            raise DataError(
                f"Cannot tell which column of {table.name} holds the text. Its columns are: {there}; "
                f"those that hold strings: {', '.join(left) or 'none'}. Name it with {_flag('text_column')}."
            )
        text = left[0]
    chosen = Columns(text, id_column, asked.label)
    for name in chosen.named().values():
        if list(columns).count(name) > 1:
            raise DataError(
                f"{table.name} has more than one column called {name!r}; rename one. Its columns are: {there}."
            )
    return chosen


def read_table(table: Table, asked: Columns) -> Iterator[Event]:
    """Choose the columns of a table and read them.

    Args:
        table: The table.
        asked: The names the user gave.

    Yields:
        The chosen columns, then the rows and what was wrong with others.

    Raises:
        DataError: As :func:`choose_columns`.
    """
    # Where not one row was found, what was wrong is told, and not that the columns are.
    chosen = None if table.strings is None else choose_columns(asked, table)
    if chosen is not None:
        yield chosen
    wanted = [] if chosen is None else list(dict.fromkeys(chosen.named().values()))
    labels = [asked.label] if asked.label else []
    if asked.others and wanted:  # a name that is there twice cannot be told apart
        wanted += [name for name, times in Counter(table.columns).items() if times == 1 and name not in wanted]
        labels = wanted
    for row in table.rows(wanted, labels):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(asked, table)
            yield chosen
        values, id_, label = row.values, chosen.id, chosen.label
        assert chosen.text is not None  # choose_columns sees to that
        if chosen.text not in values:
            yield Skip(row.where, MISSING_COLUMN, f"no {chosen.text!r}")
            continue
        given_id, given_label = values.get(id_) if id_ else None, values.get(label) if label else None
        others = None
        if asked.others:
            others = {str(name): value for name, value in values.items() if name not in (chosen.text, id_)}
        yield Row(
            row.where,
            row.made_id,
            values[chosen.text],
            given_id,
            given_label,
            id_ is not None,
            metadata=others,
        )
