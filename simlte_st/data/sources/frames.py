"""Data frames of pandas and polars."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from simlte_st.data.rows import RawRow, ReadSettings
from simlte_st.data.sources.base import Source, is_instance
from simlte_st.data.tables import LOOK_AHEAD_ROWS, Table, numbered_row, read_table


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a data frame of pandas or polars."""
    if not is_instance(source, "pandas", "DataFrame") and not is_instance(source, "polars", "DataFrame"):
        return None
    name = f"the {type(source).__name__}"
    return Source(name, lambda: read_table(frame_table(source, name), settings.columns), lambda: len(source))


def frame_table(frame: Any, name: str) -> Table:
    """See a pandas or polars ``DataFrame`` as a table."""
    columns = {str(column): column for column in frame.columns}

    def holds_strings(column: Any) -> bool:
        # "object" is what pandas calls anything; a name that is there twice gives a frame, which is refused later.
        kind = str(getattr(column, "dtype", "object")).lower()
        return kind in ("str", "string", "category", "categorical", "enum") or (
            kind == "object" and any(isinstance(value, str) for value in column.head(LOOK_AHEAD_ROWS))
        )

    strings = [name for name, column in columns.items() if holds_strings(frame[column])]

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        for number, row in enumerate(zip(*(frame[columns[column]] for column in wanted), strict=True)):
            yield numbered_row(number, dict(zip(wanted, row, strict=True)), {})

    return Table(name, [str(column) for column in frame.columns], strings, rows)
