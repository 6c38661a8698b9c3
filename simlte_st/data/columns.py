"""Which column of a table holds the text, which the id: named by the user, or found."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simlte_st.errors import DataError

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")
MISSING_COLUMN = "missing column"
NOT_A_STRING = "not a string"

# Sources without a schema (JSON lines, mappings) are looked at this far ahead to learn their columns.
LOOK_AHEAD_ROWS = 100
LOOK_AHEAD_CHARACTERS = 4_000_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns: as asked for (``text`` may be None), or as chosen for a source (``text`` is set)."""

    text: str | None = None
    id: str | None = None
    label: str | None = None

    def named(self) -> dict[str, str]:
        """The names that are set, by the parameter of ``read_documents`` they belong to."""
        pairs = {"text_column": self.text, "id_column": self.id, "label_column": self.label}
        return {parameter: name for parameter, name in pairs.items() if name is not None}

    def distinct(self) -> list[str]:
        """The names that are set, each once: what has to be read."""
        return list(dict.fromkeys(self.named().values()))


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
    """

    where: str
    made_id: str | None
    text: object
    id: object = None
    label: object = None
    has_id: bool = False
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Skip:
    """Something that gives no document: a bad row (counted), or what is no row at all (``ignored``)."""

    where: str
    reason: str
    what: str = ""
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row whose columns are not known yet: a mapping, or a bare string."""

    where: str
    made_id: str | None
    values: Mapping[str, Any] | str


Event = Row | Skip | Columns


def _flag(parameter: str) -> str:
    return f"{parameter}= (on the command line: --{parameter.replace('_', '-')})"


def _find(wanted: Sequence[str], columns: Collection[str]) -> str | None:
    for name in wanted:
        if name in columns:
            return name
        for column in columns:
            if column.lower() == name:
                return column
    return None


def choose_columns(asked: Columns, columns: Sequence[str], strings: Collection[str], source: str) -> Columns:
    """Choose the columns to read.

    Args:
        asked: The names the user gave.
        columns: The columns there are.
        strings: Those of them that hold strings.
        source: Name of the source, for messages.

    Returns:
        The text column, and the id and label columns where there are such.

    Raises:
        DataError: A named column is missing, or the text column can be any of several or none.
    """
    there = ", ".join(columns) if columns else "none"
    for parameter, name in asked.named().items():
        if name not in columns:
            raise DataError(
                f"{source} has no column {name!r}. Its columns are: {there}. Name one of them with {_flag(parameter)}."
            )
        if list(columns).count(name) > 1:
            raise DataError(f"{source} has more than one column called {name!r}; rename one. Its columns are: {there}.")
    id_column = asked.id or _find(ID_COLUMNS, [column for column in columns if column != asked.text])
    text = asked.text
    if text is None:
        # A column called "text" is meant whatever it holds (bad rows are counted); the other names must hold strings.
        text = _find(("text",), columns) or _find(TEXT_COLUMNS, [name for name in columns if name in strings])
    if text is None:
        left = [name for name in columns if name in strings and name not in (id_column, asked.label)]
        if len(left) != 1:
            raise DataError(
                f"Cannot tell which column of {source} holds the text. Its columns are: {there}; "
                f"those that hold strings: {', '.join(left) or 'none'}. Name it with {_flag('text_column')}."
            )
        text = left[0]
    if list(columns).count(text) > 1:
        raise DataError(f"{source} has more than one column called {text!r}; rename one. Its columns are: {there}.")
    return Columns(text=text, id=id_column, label=asked.label)


def make_row(where: str, made_id: str | None, values: Mapping[str, Any], chosen: Columns) -> Row | Skip:
    """Take the chosen columns out of a mapping."""
    assert chosen.text is not None
    if chosen.text not in values:
        return Skip(where, MISSING_COLUMN, f"no {chosen.text!r}")
    return Row(
        where,
        made_id,
        values[chosen.text],
        values.get(chosen.id) if chosen.id else None,
        values.get(chosen.label) if chosen.label else None,
        chosen.id is not None,
    )


def rows_by_look_ahead(
    raws: Iterator[RawRow | Row | Skip],
    asked: Columns,
    source: str,
    is_text: Callable[[object], bool],
    header: Sequence[str] = (),
) -> Iterator[Event]:
    """Choose the columns of a source without a schema from its first rows, then give all its rows.

    At most ``LOOK_AHEAD_ROWS`` rows are held for it, so a column that first occurs after them is not seen.

    Args:
        raws: The rows and what was wrong with others.
        asked: The names the user gave.
        source: Name of the source, for messages.
        is_text: Whether a value makes its column one that holds strings.
        header: The columns, where the source has them in its first row.

    Yields:
        The chosen columns, then rows; bad ones as they come.

    Raises:
        DataError: As :func:`choose_columns`, and when a column is named but the rows are bare strings.
        Exception: What ``raws`` raised, after the rows before it were given.
    """
    held: list[RawRow] = []
    chosen: Columns | None = None
    broken: Exception | None = None
    columns: dict[str, bool] = {}
    mappings = characters = 0

    def event(raw: RawRow) -> Row | Skip:
        if not isinstance(raw.values, str):
            assert chosen is not None
            return make_row(raw.where, raw.made_id, raw.values, chosen)
        if asked.named():
            return Skip(raw.where, MISSING_COLUMN, "a bare string has no columns")
        return Row(raw.where, raw.made_id, raw.values)

    def settle() -> Iterator[Event]:
        nonlocal chosen
        if chosen is None and mappings:
            strings = [name for name, text in columns.items() if text]
            chosen = choose_columns(asked, header or list(columns), strings, source)
            yield chosen
        elif chosen is None and asked.named() and held:
            named = ", ".join(f"{parameter}={name!r}" for parameter, name in asked.named().items())
            raise DataError(f"{source} holds bare strings, which have no columns: {named} cannot be used with it.")
        yield from map(event, held)
        held.clear()

    while True:
        try:
            raw = next(raws, None)
        except Exception as error:
            # The rows before the break are documents too: give them first, and raise only then.
            broken, raw = error, None
        if raw is None:
            break
        if isinstance(raw, (Skip, Row)):
            yield raw
            continue
        if chosen is not None or (isinstance(raw.values, str) and not held and not asked.named()):
            yield event(raw)
            continue
        held.append(raw)
        if isinstance(raw.values, str):
            characters += len(raw.values)
        else:
            mappings += 1
            for name, value in raw.values.items():
                columns[str(name)] = columns.get(str(name), False) or is_text(value)
                characters += len(value) if isinstance(value, str) else 0
        if len(held) >= LOOK_AHEAD_ROWS or characters >= LOOK_AHEAD_CHARACTERS:
            yield from settle()
    yield from settle()
    if broken is not None:
        raise broken
