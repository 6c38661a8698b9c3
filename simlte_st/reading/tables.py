"""Choose the columns and read the rows of tables: parquet files, data frames, ``datasets`` and Hub data sets."""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import unquote

from simlte_st.errors import DataError, did_you_mean, list_names
from simlte_st.reading.arrow_values import Converter, find_converters, read_batch
from simlte_st.reading.document import UntypedText, unique_names
from simlte_st.reading.rows import BrokenSourceError, Columns, Event, RawRow, Reading, Row, Skip

if TYPE_CHECKING:
    import pyarrow
    from datasets import Dataset, IterableDataset

TEXT_COLUMNS = ("text", "content", "body", "document", "article", "abstract", "full_text", "raw", "message")
ID_COLUMNS = ("id", "doc_id", "document_id", "_id")


LOOK_AHEAD = 100
"""Number of initial rows that determine the columns of a table without a schema."""

MISSING = object()
"""Placeholder for a missing value."""

FORM = "hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT"

_INDEX = re.compile(r"__index_level_\d+__")  # pandas' name for an unnamed index
_FRAMES = (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame"))
_BATCH_ROWS = 128


@dataclass(frozen=True, slots=True)
class Table:
    """An open table that can be read once; ``rows`` takes the columns to read."""

    name: str
    columns: Sequence[str]
    strings: Collection[str] | None  # names of string columns; None if there are no rows
    rows: Callable[[Sequence[str]], Iterator[RawRow | Event]]
    kinds: Mapping[str, str] = field(default_factory=dict)  # types of the other columns, if known
    folders: Mapping[str, str] = field(default_factory=dict)  # columns from folder names such as year=2020
    first: Callable[[Sequence[str]], Iterable[RawRow | Event]] = lambda columns: ()  # the first rows

    def find_column(self, name: str) -> str:
        """Return the column for a name or a path into a struct."""
        starts = (start for start, _ in _split_path(name) if start in self.columns)
        return name if name in self.columns else next(starts, name)


def value_at(values: Mapping[str, object], path: str) -> object:
    """Return the value of a column or of a path into a struct; :data:`MISSING` if there is none."""
    if path in values:
        return values[path]
    for name, inner_path in _split_path(path):
        inner = values.get(name)
        if isinstance(inner, Mapping) and (value := value_at(inner, inner_path)) is not MISSING:
            return value
    return MISSING


def _drop_value(values: Mapping[str, object], path: str) -> dict[str, object]:
    """Return the values without the given column or path."""
    remaining = {str(name): value for name, value in values.items() if name != path}
    for name, inner_path in _split_path(path) if len(remaining) == len(values) else ():
        if isinstance(inner := remaining.get(name), Mapping):
            remaining[name] = _drop_value(inner, inner_path)
    return remaining


def _split_path(path: str) -> Iterator[tuple[str, str]]:
    """Yield a path split in two at each of its dots, because names may contain dots."""
    return ((path[:index], path[index + 1 :]) for index, character in enumerate(path) if character == ".")


def choose_columns(reading: Reading, table: Table) -> Columns:
    """Choose the columns to read from a table."""
    columns = table.columns
    listing = list_names([*columns, *table.folders])
    for option, name in reading.named_columns().items():
        if table.find_column(name) not in columns and not (option == "label_column" and name in table.folders):
            advice = f"Its columns are: {listing}. Pass one of them as {option}=."
            raise DataError(f"{table.name} has no column {name!r}.{did_you_mean(name, columns)} {advice}")
    named, label = reading.text_column, reading.label_column
    id_column = reading.id_column or first_match(ID_COLUMNS, [column for column in columns if column != named])
    strings = [column for column in columns if column in (table.strings or ())]
    # "text" is chosen whatever its type; other columns only if they hold strings.
    text = named or first_match(("text",), columns) or first_match(TEXT_COLUMNS, strings)
    text = text or first_match(TEXT_COLUMNS, columns)
    if text is None:
        candidates = [name for name in strings if name not in (id_column, label)]
        text = candidates[0] if len(candidates) == 1 else _longest_column(table, candidates)
    if text is None or text in table.kinds or not (named or text.lower() == "text" or text in strings):
        problem = "" if text is None else f" {text!r} holds {table.kinds.get(text, 'no strings'):.200}."
        raise DataError(
            f"Cannot tell which column of {table.name} holds the text.{problem} Its columns are: {listing}; those that "
            f"hold strings: {list_names(strings)}. Pass it as text_column= (in a struct: article.body)."
        )
    return Columns(text, id_column, label)


def _longest_column(table: Table, columns: Sequence[str]) -> str | None:
    """Return the string column with by far the longest texts in the first rows, if there is one."""
    rows = [row.values for row in table.first(columns) if isinstance(row, RawRow)]
    sizes = sorted((sum(len(str(row.get(name) or "")) for row in rows), name) for name in columns)
    (second_size, _), (size, longest) = [(0, ""), (0, ""), *sizes][-2:]
    return longest if size > max(200 * len(rows), 10 * second_size) else None


def first_match(names: Sequence[str], columns: Sequence[str]) -> str | None:
    """Return the column that matches the first possible name, ignoring case."""
    # Among columns that differ only in case, prefer the lower-case one, then the first.
    by_lower = {column.lower(): column for column in (*reversed(columns), *filter(str.islower, columns))}
    return next((by_lower[name] for name in names if name in by_lower), None)


def read_table(table: Table, reading: Reading) -> Iterator[Event]:
    """Choose the columns of a table and read them."""
    # If there are no rows, the report says what is wrong with the file.
    chosen = None if table.strings is None else choose_columns(reading, table)
    columns: Sequence[str] = ()
    if chosen is not None:
        yield chosen
        needed = dict.fromkeys(table.find_column(name) for name in chosen if name is not None)
        columns = table.columns if reading.metadata else [name for name in needed if name in table.columns]
    for row in table.rows(columns):
        if not isinstance(row, RawRow):
            yield row
            continue
        if chosen is None:
            chosen = choose_columns(reading, table)
            yield chosen
        values = {**table.folders, **row.values}
        text, id_value, label = (None if name is None else value_at(values, name) for name in chosen)
        id_value, label = (None if value is MISSING else value for value in (id_value, label))
        if text is MISSING:
            id_text = row.generated_id if id_value is None else str(id_value)
            yield Skip(row.where, "missing column", f"no {chosen.text!r}", id=id_text)
            continue
        metadata = None
        if reading.metadata:
            metadata = _drop_value(values, chosen.text)
            metadata = _drop_value(metadata, chosen.id) if chosen.id else metadata
        has_id = chosen.id is not None
        yield Row(
            row.where, row.generated_id, text, id=id_value, label=label, has_id=has_id, metadata=metadata,
            repairs=row.repairs,
        )  # fmt: skip


def mappings_table(
    name: str, rows: Iterator[RawRow | Event], is_text: Callable[[object], bool] = lambda value: isinstance(value, str)
) -> Table:
    """Make a table from rows without a schema; the first rows determine the columns."""
    first_rows = list(itertools.islice(rows, LOOK_AHEAD))
    columns: dict[str, bool] = {}
    for row in first_rows:
        for column, value in row.values.items() if isinstance(row, RawRow) else ():
            columns[str(column)] = columns.get(str(column), False) or is_text(value)

    def all_rows(columns: Sequence[str]) -> Iterator[RawRow | Event]:
        yield from first_rows
        first_rows.clear()
        yield from rows

    strings = {column: True for column, has_text in columns.items() if has_text} if columns else None
    return Table(name, list(columns), strings, all_rows, first=lambda columns: first_rows)


def folder_columns(path: Path) -> dict[str, str]:
    """Return the columns in folder names such as ``year=2020``, as written by Hive, Spark and pandas."""
    parts = (part.partition("=") for part in path.parent.parts)
    return {name: UntypedText(unquote(value)) for name, sign, value in parts if sign and name.isidentifier()}


def is_instance(source: object, module: str, *names: str) -> bool:
    """Return whether a source is an instance of a library's class, without importing the library."""
    library = sys.modules.get(module)
    return isinstance(source, tuple(getattr(library, name) for name in names if hasattr(library, name)))


def open_parquet(path: Path, reading: Reading) -> Table:
    """Open a parquet file, to read only the needed columns, in record batches."""
    import pyarrow.parquet

    @contextlib.contextmanager
    def open_file() -> Iterator[pyarrow.parquet.ParquetFile]:
        try:  # open the file here, because Arrow accepts only UTF-8 paths
            with path.open("rb") as stream, pyarrow.parquet.ParquetFile(stream) as file:
                yield file
        except (OSError, pyarrow.ArrowException) as error:
            problem = "encrypted" if "decrypt" in str(error) else "truncated, corrupt or not a parquet file"
            raise BrokenSourceError(f"{path} is {problem} ({error})") from error

    def batches(columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        with open_file() as file:
            yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns))

    with open_file() as file:
        if len({*file.schema_arrow.names}) < len(file.schema_arrow.names):  # else a name would select two columns
            return _frame_table(file.read(), str(path))
        return _schema_table(str(path), file.schema_arrow, batches)


def count_rows(path: Path) -> int | None:
    """Return the row count from a parquet file's metadata; None if it is not a parquet file."""
    import pyarrow.parquet

    with contextlib.suppress(OSError, pyarrow.ArrowException), path.open("rb") as file:  # reading will report the error
        return int(pyarrow.parquet.read_metadata(file).num_rows)
    return None


def table_opener(source: object, name: str) -> Callable[[], Table] | None:
    """Return a function that opens a data set or data frame as a table; None for other objects."""
    if is_instance(source, "datasets", "Dataset", "IterableDataset"):
        return lambda: dataset_table(source, name)
    if any(is_instance(source, *frame) for frame in _FRAMES):
        return lambda: _frame_table(source, name)
    return None


def _frame_table(frame: Any, name: str) -> Table:
    """Open a pandas or polars data frame, or a ``pyarrow.Table``, as a table."""
    import pyarrow

    if isinstance(frame, pyarrow.Table):
        table = frame.rename_columns(unique_names(frame.column_names))
        return _schema_table(name, table.schema, lambda columns: table.select(list(columns)).to_batches())
    arrays: dict[str, pyarrow.Array] = {}
    objects: dict[str, list[object]] = {}
    is_polars = hasattr(frame, "get_columns")
    columns = frame.get_columns() if is_polars else [values for _, values in frame.items()]
    for column, values in zip(unique_names([*map(str, frame.columns)]), columns, strict=True):
        try:
            if str(values.dtype).lower() == "object" and (is_polars or len({*map(type, values)}) > 1):
                raise TypeError("Arrow would convert some values to the type of the others, or take their addresses")
            arrays[column] = values.to_arrow() if is_polars else pyarrow.array(values, from_pandas=True)
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            # No file format has pandas' periods and intervals.
            objects[column] = [str(v) if is_instance(v, "pandas", "Period", "Interval") else v for v in values]
            arrays[column] = pyarrow.array(range(len(values)), pyarrow.int64())  # positions in the list
    table = pyarrow.table(arrays)
    types = {field.name: field.type for field in table.schema}
    types |= {name: pyarrow.string() for name in objects if any(isinstance(value, str) for value in objects[name])}
    converters = {name: values.__getitem__ for name, values in objects.items()}
    schema = pyarrow.schema(types)
    return _schema_table(name, schema, lambda names: table.select(list(names)).to_batches(), 0, converters)


def dataset_table(dataset: Dataset | IterableDataset, name: str, first: int = 0, batch_size: int = 1) -> Table:
    """Open a ``Dataset`` or ``IterableDataset`` from row ``first``, to read only the needed columns."""

    def batches(columns: Sequence[str]) -> Iterator[pyarrow.RecordBatch]:
        rows = dataset.select_columns(list(columns)).with_format("arrow")
        # In batches, because row by row, each data-loading process would read different shards of a stream.
        for table in (rows.skip(first) if first else rows).iter(batch_size=batch_size):
            yield from table.to_batches()

    if dataset.features is not None:
        return _schema_table(name, dataset.features.arrow_schema, batches, first)
    # A stream without a schema, for example from a generator.
    return mappings_table(name, itertools.starmap(_row, enumerate(dataset.with_format(None))))


def _schema_table(
    name: str, schema: pyarrow.Schema, batches: Callable[[Sequence[str]], Iterable[pyarrow.RecordBatch]],
    first: int = 0, converters: Mapping[str, Converter] | None = None,
) -> Table:  # fmt: skip
    """Open a source with a schema as a table, without pandas' index columns.

    ``converters`` convert the values of columns, as do those that the schema implies.
    """
    types = {field.name: field.type for field in schema if not _INDEX.fullmatch(field.name)}
    converters = {**find_converters(schema), **(converters or {})}

    def rows(columns: Sequence[str]) -> Iterator[RawRow]:
        rows = itertools.chain.from_iterable(map(read_batch, batches(columns)))
        for number, (values, repairs) in enumerate(rows, start=first):
            for column in converters.keys() & values.keys():
                values[column] = None if values[column] is None else converters[column](values[column])
            yield _row(number, values, repairs)

    strings = {column: dtype for column, dtype in types.items() if _is_text(dtype)}
    kinds = {column: str(dtype) for column, dtype in types.items() if column not in strings}
    return Table(name, list(types), strings, rows, kinds, first=lambda names: itertools.islice(rows(names), LOOK_AHEAD))


def _row(number: int, values: Mapping[str, object], repairs: Mapping[str, str] | None = None) -> RawRow:
    return RawRow(f"row {number:,}", str(number), values, repairs or {})


def _is_text(dtype: pyarrow.DataType) -> bool:
    """Return whether an Arrow type holds strings, including dictionary (categorical) and run-end encoded ones."""
    import pyarrow as pa

    if isinstance(dtype, pa.BaseExtensionType):
        return _is_text(dtype.storage_type)
    if pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
        return _is_text(dtype.value_type)
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype))


def is_hub(source: object) -> TypeGuard[str]:
    """Return whether a source is the name of a data set on the Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def load_hub(source: str) -> IterableDataset:
    """Load ``hub:NAME``, ``hub:NAME:SPLIT`` or ``hub:NAME:CONFIG:SPLIT`` as a ``datasets.IterableDataset``."""
    # A colon in brackets is part of a slice, such as train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} must have the form {FORM}.")
    config, split = [None, None, *parts][-2:]
    import datasets

    try:
        return datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
    except Exception as error:  # offline or missing; the class depends on the library's version
        raise DataError(f"{source} cannot be loaded from the Hub: {error}") from error
