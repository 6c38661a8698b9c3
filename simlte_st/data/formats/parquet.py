"""Parquet files, by pyarrow."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.rows import RawRow, ReadSettings, Skip
from simlte_st.data.streams import WRONG_ENCODING, BrokenSourceError
from simlte_st.data.tables import Table, holds_strings, label_names, numbered_row

_BATCH_ROWS = 128
_LARGE = 100_000_000  # bytes of a column, below which it is read however it is packed
_MOST_PACKED = 500  # times smaller than its text, the same page of it over and over included


def count_rows(path: Path) -> int | None:
    """Give the number of rows that the file says it has; None for what is no parquet file."""
    import pyarrow
    import pyarrow.parquet as pq

    with contextlib.suppress(OSError, pyarrow.ArrowException):  # reading it says what is wrong with it
        return int(pq.read_metadata(path).num_rows)
    return None


def open_table(path: Path, settings: ReadSettings) -> Table:
    """Open a parquet file, which is read by record batches, and of which only the wanted columns are read."""
    import pyarrow
    import pyarrow.parquet

    def broken(error: Exception) -> BrokenSourceError:
        return BrokenSourceError(f"{path} is truncated, corrupt or no parquet file ({error})")

    try:
        schema = pyarrow.parquet.read_schema(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise broken(error) from error

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
        names: dict[str, Sequence[str]] = {}
        if labels and b"huggingface" in (schema.metadata or {}):  # written by `datasets`
            from datasets import Features

            names = label_names(Features.from_arrow_schema(schema), labels)
        index = itertools.count()
        try:
            # As a dictionary a text that stands in many rows is held once, as in the file.
            with pyarrow.parquet.ParquetFile(path, read_dictionary=strings) as file:
                _check_sizes(file.metadata, wanted)
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted)):
                    columns = [_scalars(batch.column(name)) for name in wanted]
                    for row, number in zip(zip(*columns, strict=True), index, strict=False):
                        undecoded = next((value for value in row if isinstance(value, UnicodeDecodeError)), None)
                        if undecoded is not None:
                            yield Skip(f"row {number:,}", WRONG_ENCODING, str(undecoded))
                        else:
                            yield numbered_row(number, dict(zip(wanted, row, strict=True)), names)
        except (OSError, pyarrow.ArrowException) as error:
            raise broken(error) from error

    strings = [field.name for field in schema if holds_strings(field.type)]
    return Table(str(path), schema.names, strings, rows)


def _check_sizes(metadata: Any, wanted: Sequence[str]) -> None:
    """Refuse columns that take far more memory than text could: a page is unpacked as a whole.

    Raises:
        BrokenSourceError: There is one.
    """
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            size = column.total_uncompressed_size
            if column.path_in_schema in wanted and size > max(_LARGE, _MOST_PACKED * column.total_compressed_size):
                raise BrokenSourceError(
                    f"the column {column.path_in_schema!r} would unpack to {size:,} bytes from "
                    f"{column.total_compressed_size:,}, which no text does"
                )


def _scalars(column: Any) -> list[object]:
    if hasattr(column, "dictionary"):
        held = _scalars(column.dictionary)
        return [None if index is None else held[index] for index in column.indices.to_pylist()]
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        values: list[object] = []
        for scalar in column:
            try:
                values.append(scalar.as_py())
            except UnicodeDecodeError as error:
                values.append(error)
        return values
