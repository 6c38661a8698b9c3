"""Read Arrow data: parquet files, data frames, and data sets of the library ``datasets`` or the Hub."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from simlte_st.errors import DataError
from simlte_st.reading.rows import BrokenSourceError, RawRow, Reading
from simlte_st.reading.tables import LOOK_AHEAD, Table, mappings_table, unique_names

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from datasets import Dataset, IterableDataset

FORM = "hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT"

_INDEX = re.compile(r"__index_level_\d+__")  # pandas' name for an unnamed index
_FRAMES = (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame"))
_BATCH_ROWS = 128


def is_instance(source: object, module: str, *names: str) -> bool:
    """Return whether a source is an instance of a library's class, without importing the library."""
    library = sys.modules.get(module)
    return isinstance(source, tuple(getattr(library, name) for name in names if hasattr(library, name)))


def error_summary(error: Exception) -> str:
    """Return an error's class name and the first line of its message."""
    return ": ".join([type(error).__name__, *str(error).splitlines()[:1]])


def open_parquet(path: Path, reading: Reading) -> Table:
    """Open a parquet file; only the needed columns are read, in record batches."""
    import pyarrow
    import pyarrow.parquet

    @contextlib.contextmanager
    def open_file() -> Iterator[pyarrow.parquet.ParquetFile]:
        try:  # Arrow accepts only UTF-8 paths, so open the file here
            with path.open("rb") as stream, pyarrow.parquet.ParquetFile(stream) as file:
                yield file
        except (OSError, pyarrow.ArrowException) as error:
            raise BrokenSourceError(f"{path} is truncated, corrupt or not a parquet file ({error})") from error

    def batches(columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        with open_file() as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))

    with open_file() as file:
        if len({*file.schema_arrow.names}) < len(file.schema_arrow.names):  # selecting by name would read both
            return _frame_table(file.read(), str(path))
        return _schema_table(str(path), file.schema_arrow, batches)


def count_rows(path: Path) -> int | None:
    """Return the number of rows in a parquet file's metadata; None if it is not a parquet file."""
    import pyarrow
    import pyarrow.parquet

    with contextlib.suppress(OSError, pyarrow.ArrowException), path.open("rb") as file:  # reading reports the error
        return int(pyarrow.parquet.read_metadata(file).num_rows)
    return None


def table_opener(source: object, name: str) -> Callable[[], Table] | None:
    """Return a function that opens a data set or data frame as a table; None for other objects."""
    if is_instance(source, "datasets", "Dataset", "IterableDataset"):
        return lambda: dataset_table(source, name)
    if any(is_instance(source, *frame) for frame in _FRAMES):
        return lambda: _frame_table(source, name)
    return None


def _frame_table(frame: pandas.DataFrame | pyarrow.Table, name: str) -> Table:
    """Return the table of a data frame of pandas or polars, or of a ``pyarrow.Table``."""
    import pyarrow

    if is_instance(frame, "pandas", "DataFrame"):
        try:
            frame = frame.set_axis(unique_names(list(map(str, frame.columns))), axis=1)
            frame = pyarrow.Table.from_pandas(frame, preserve_index=False)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:  # such as a column of mixed types
            raise DataError(f"{name} cannot be read: {error}") from error
    table = frame if isinstance(frame, pyarrow.Table) else frame.to_arrow()
    table = table.rename_columns(unique_names(table.column_names))
    return _schema_table(name, table.schema, lambda columns: table.select(list(columns)).to_batches())


def dataset_table(dataset: Dataset | IterableDataset, name: str, first: int = 0, batch_size: int = 1) -> Table:
    """Return the table of a ``Dataset`` or ``IterableDataset`` from row ``first``; only the needed columns are read."""

    def batches(columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        rows = dataset.select_columns(list(columns)).with_format("arrow")
        # In batches: row by row, each data-loading process would read different shards of a stream.
        for table in (rows.skip(first) if first else rows).iter(batch_size=batch_size):
            yield from table.to_batches()

    if dataset.features is not None:
        return _schema_table(name, dataset.features.arrow_schema, batches, first)
    # A stream without a schema, such as a generator's.
    return mappings_table(name, itertools.starmap(_row, enumerate(dataset.with_format(None))))


def _schema_table(
    name: str, schema: pyarrow.Schema, batches: Callable[[Sequence[str]], Iterable[pyarrow.RecordBatch]], first: int = 0
) -> Table:
    """Return the table of a source with a schema, without pandas' index columns."""
    types = {field.name: field.type for field in schema if not _INDEX.fullmatch(field.name)}
    classes = _class_names(schema)

    def rows(columns: Sequence[str]) -> Iterator[RawRow]:
        numbers = itertools.count(first)
        for batch in batches(columns):
            try:
                values = batch.to_pylist()
            except (ValueError, OverflowError) as error:  # invalid UTF-8, or a time that Python cannot represent
                raise BrokenSourceError(f"{name} has a value that cannot be read ({error})") from error
            for row, number in zip(values, numbers, strict=False):
                yield _row(number, _with_classes(row, classes))

    columns = [field.name for field in schema if not _INDEX.fullmatch(field.name)]
    strings = [column for column, dtype in types.items() if _is_text(dtype)]
    kinds = {column: str(dtype) for column, dtype in types.items() if column not in strings}
    return Table(name, columns, strings, rows, kinds, first=lambda columns: itertools.islice(rows(columns), LOOK_AHEAD))


def _row(number: int, values: Mapping[str, object]) -> RawRow:
    return RawRow(f"row {number:,}", str(number), values)


def _is_text(dtype: pyarrow.DataType) -> bool:
    """Return whether an Arrow type holds strings, including dictionary (category) and run-end encoded ones."""
    import pyarrow as pa

    if isinstance(dtype, pa.BaseExtensionType):
        return _is_text(dtype.storage_type)
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return _is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype))


def _class_names(schema: pyarrow.Schema) -> dict[str, Sequence[str]]:
    """Return the class names that ``datasets`` stored in a schema, by column."""
    if b"huggingface" not in (schema.metadata or {}):
        return {}
    import datasets

    features = datasets.Features.from_arrow_schema(schema)
    return {
        name: feature.names
        for name, feature in features.items()
        if isinstance(feature, datasets.ClassLabel) and feature.names
    }


def _with_classes(values: dict[str, object], classes: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """Replace class numbers by class names; -1 means no label in many test splits."""
    for column, names in classes.items():
        if isinstance(number := values.get(column), int):
            values[column] = names[number] if 0 <= number < len(names) else None
    return values


def is_hub(source: object) -> TypeGuard[str]:
    """Return whether a source names a data set on the Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def load_hub(source: str) -> IterableDataset:
    """Load ``hub:NAME``, ``hub:NAME:SPLIT`` or ``hub:NAME:CONFIG:SPLIT`` as a ``datasets.IterableDataset``."""
    # A colon in brackets is part of a slice: train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} must have the form {FORM}.")
    config, split = [None, None, *parts][-2:]
    import datasets

    try:
        return datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
    except Exception as error:  # offline or missing; the class depends on the version of the library
        raise DataError(f"{source} cannot be loaded from the Hub: {error}") from error
