"""From the columns of a table to a document with its class and its part of the data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.datasets.benchmark import SPLITS
from simlte_st.data.tables import Columns, Event, RawRow, Row, Skip, Table
from simlte_st.errors import DataError

UNKNOWN_LABEL = "unknown label"
UNKNOWN_SPLIT = "unknown split"

_SPLIT_NAMES = {
    **{name: name for name in SPLITS},
    "training": "train",
    **dict.fromkeys(("valid", "val", "dev", "eval"), "validation"),
    "testing": "test",
}


def split_name(name: object) -> str | None:
    """Return a split's name as it is here (``dev`` is ``validation``, ...); None for what is no split's name."""
    return _SPLIT_NAMES.get(name.strip().lower()) if isinstance(name, str) else None


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape that the tables of a data set have.

    Attributes:
        text: Columns the text is made of.
        label: Column of the class.
        id: Column of the id, used where there is one.
        split: Column of the split, used where there is one.
        make_text: Makes the text of the text columns' values; the first of them where not given. What is no string is
            counted by the reader, as everywhere.
        make_label: Makes the class of a row from the label column's value; that value where not given.
        known: The classes there are. A row of another one is broken (a shifted column): it is skipped and counted.
            None takes every class.
    """

    text: tuple[str, ...]
    label: str
    id: str = "id"
    split: str = "split"
    make_text: Callable[..., object] = lambda first, *_: first
    make_label: Callable[[Any], object] = lambda value: value
    known: frozenset[str] | None = None

    def required(self) -> tuple[str, ...]:
        """Name the columns that must be there."""
        return (*self.text, self.label)

    def row(self, raw: RawRow, part: str | None, has_id: bool) -> Row | Skip:
        """Make a row of the reader's from one of a table."""
        values = raw.values
        label = values.get(self.label)
        if label is not None:
            label = self.make_label(label)
        if self.known is not None and label not in (None, "") and not (isinstance(label, str) and label in self.known):
            return Skip(raw.where, UNKNOWN_LABEL, repr(label))
        # Of two tables that number their rows from 0, one a split.
        made_id = f"{part}-{raw.made_id}" if part else raw.made_id
        given = values.get(self.split)
        if part is None and given not in (None, "") and (part := split_name(given)) is None:
            return Skip(raw.where, UNKNOWN_SPLIT, repr(given))
        text = self.make_text(*(values.get(column) for column in self.text))
        return Row(raw.where, made_id, text, values.get(self.id), label, has_id, part)


PLAIN_SHAPES = (Shape(("text",), "label_text"), Shape(("text",), "label"))
"""What every data set is read from too: ``text``, ``label`` (its name in ``label_text``, where that is there)."""


def table_events(table: Table, shapes: Sequence[Shape], part: str | None = None) -> Iterator[Event]:
    """Read a table as the first shape that fits it."""
    shape = next((shape for shape in shapes if set(shape.required()) <= set(table.columns)), None)
    if shape is None:
        wanted = "; or ".join(dict.fromkeys(", ".join(shape.required()) for shape in shapes))
        raise DataError(f"{table.name} has the columns {', '.join(table.columns) or 'none'}; it should have: {wanted}.")
    has_id = shape.id in table.columns
    yield Columns(" + ".join(shape.text), shape.id if has_id else None, shape.label)
    there = [name for name in dict.fromkeys((*shape.required(), shape.id, shape.split)) if name in table.columns]
    for raw in table.rows(there, [shape.label]):
        if isinstance(raw, RawRow):
            yield shape.row(raw, part, has_id)
        else:  # where several tables make one data set, the report says of which it speaks
            yield raw if part is None else replace(raw, where=f"{table.name} {raw.where}")
