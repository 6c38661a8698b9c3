"""Data frames of pandas and polars, and tables of pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from simlte_st.data.arrow import batch_rows, column_kinds, is_index, numbered_row, schema_label_names, text_type
from simlte_st.data.rows import RawRow, ReadSettings, Skip
from simlte_st.data.sources.base import Source, is_instance
from simlte_st.data.tables import LOOK_AHEAD_ROWS, Table, read_table


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a data frame of pandas or polars, or a ``pyarrow.Table``."""
    name = f"the {type(source).__name__}"

    def table() -> Table:
        if is_instance(source, "pyarrow", "Table"):
            return _arrow_table(source, name)
        return _frame_table(source, name, _pandas_kind if is_instance(source, "pandas", "DataFrame") else _polars_kind)

    known = (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame"))
    if not any(is_instance(source, *each) for each in known):
        return None
    return Source(name, lambda: read_table(table(), settings.columns), lambda: len(source))


def _arrow_table(table: Any, name: str) -> Table:
    columns, kinds = column_kinds(table.schema)

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
        names = schema_label_names(table.schema, labels)
        return batch_rows(table.select(list(wanted)).to_batches(), wanted, names)

    return Table(name, columns, [column for column in columns if column not in kinds], rows, kinds)


def _frame_table(frame: Any, name: str, kind_of: Callable[[Any], str | None]) -> Table:
    columns = {str(column): column for column in frame.columns if not is_index(str(column))}
    kinds = {name: kind for name, column in columns.items() if len(frame) and (kind := kind_of(frame[column]))}

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        for number, row in enumerate(zip(*(frame[columns[column]] for column in wanted), strict=True)):
            yield numbered_row(number, dict(zip(wanted, row, strict=True)), {})

    names = [str(column) for column in frame.columns if not is_index(str(column))]
    return Table(name, names, [column for column in columns if column not in kinds], rows, kinds)


def _pandas_kind(column: Any) -> str | None:
    """Return the type of a column of pandas; None for text."""
    import pandas

    dtype = getattr(column, "dtype", None)
    if dtype is None:  # the name is there twice, which is refused later
        return None
    if isinstance(dtype, pandas.CategoricalDtype):
        return _pandas_kind(dtype.categories)
    if isinstance(dtype, pandas.ArrowDtype):
        return None if text_type(dtype.pyarrow_dtype) else str(dtype)
    if pandas.api.types.is_object_dtype(dtype):
        return _object_kind(column[:LOOK_AHEAD_ROWS])
    return None if isinstance(dtype, pandas.StringDtype) else str(dtype)


def _polars_kind(column: Any) -> str | None:
    """Return the type of a column of polars; None for text."""
    import polars

    if column.dtype == polars.Object:
        return _object_kind(column.head(LOOK_AHEAD_ROWS))
    return None if column.dtype in (polars.String, polars.Categorical, polars.Enum) else str(column.dtype)


def _object_kind(values: Any) -> str | None:
    """Return the type of the first of some objects; None if there is a string among them, or no object."""
    kinds = [type(value).__name__ for value in values if value is not None]
    if "str" in kinds or not len(values):
        return None
    return f"{kinds[0]} values" if kinds else "nothing"
