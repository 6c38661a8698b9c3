"""Parquet files, by pyarrow."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.arrow import batch_rows, schema_label_names, schema_table
from simlte_st.data.config import SourceConfig
from simlte_st.data.tables import RawRow, Skip, Table
from simlte_st.data.text_files import BrokenSourceError

_BATCH_ROWS = 128
_LARGE = 100_000_000  # bytes; smaller columns are read whatever their compression
_MOST_PACKED = 500  # times; text with the same page over and over compresses less


def count_rows(path: Path) -> int | None:
    """Return the number of rows by the file's metadata; None if it is not a parquet file."""
    import pyarrow
    import pyarrow.parquet as pq

    with contextlib.suppress(OSError, pyarrow.ArrowException), path.open("rb") as file:  # reading says what is wrong
        return int(pq.read_metadata(file).num_rows)
    return None


def open_table(path: Path, config: SourceConfig) -> Table:
    """Open a parquet file, of which only the wanted columns are read, by record batches."""
    import pyarrow
    import pyarrow.parquet

    def broken(error: Exception) -> BrokenSourceError:
        return BrokenSourceError(f"{path} is truncated, corrupt or not a parquet file ({error})")

    try:
        with path.open("rb") as stream:  # a path must be UTF-8
            schema = pyarrow.parquet.read_schema(stream)
    except (OSError, pyarrow.ArrowException) as error:
        raise broken(error) from error

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
        try:
            # As a dictionary, a text that is repeated in many rows is held once, as in the file.
            with (
                path.open("rb") as stream,
                pyarrow.parquet.ParquetFile(stream, read_dictionary=strings) as file,
            ):
                _check_sizes(file.metadata, wanted)
                batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=list(wanted))
                yield from batch_rows(batches, wanted, schema_label_names(schema, labels))
        except (OSError, pyarrow.ArrowException) as error:
            raise broken(error) from error

    table = schema_table(str(path), schema, rows)
    strings = [name for name in table.columns if name not in table.kinds]
    return table


def _check_sizes(metadata: Any, wanted: Sequence[str]) -> None:
    """Raise for columns that unpack to far more than text does: a page is unpacked as a whole."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            size, most = column.total_uncompressed_size, _MOST_PACKED * column.total_compressed_size
            name = column.path_in_schema  # of a struct or list with what is in it
            if size > max(_LARGE, most) and any(f"{name}.".startswith(f"{each}.") for each in wanted):
                raise BrokenSourceError(
                    f"the column {name!r} would unpack to {size:,} bytes from "
                    f"{column.total_compressed_size:,}, which no text does"
                )
