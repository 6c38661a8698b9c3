"""Arrow tables and data frames: what their columns hold, by type, and their rows as Python values."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simlte_st.data.tables import DEPTH, LOOK_AHEAD_ROWS, RawRow, Rows, Skip, Table, paths_of, value_at
from simlte_st.data.text_files import WRONG_ENCODING

_INDEX = re.compile(r"__index_level_\d+__")  # how pandas writes an index without a name


def is_instance(source: object, module: str, *names: str) -> bool:
    """Return whether a source is of a library's class, without importing the library."""
    library = sys.modules.get(module)
    return isinstance(source, tuple(getattr(library, name) for name in names if hasattr(library, name)))


def is_frame(source: object) -> bool:
    """Return whether a source is a data frame of pandas or polars or a table of pyarrow."""
    known = (("pyarrow", "Table"), ("pandas", "DataFrame"), ("polars", "DataFrame"))
    return any(is_instance(source, *each) for each in known)


def frame_table(frame: Any, name: str) -> Table:
    """Return the table of a data frame of pandas or polars or of a ``pyarrow.Table``."""
    if is_instance(frame, "pyarrow", "Table"):

        def selected(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
            return batch_rows(frame.select(list(wanted)).to_batches(), wanted, schema_label_names(frame.schema, labels))

        return schema_table(name, frame.schema, selected)
    kind_of = _pandas_kind if is_instance(frame, "pandas", "DataFrame") else _polars_kind
    names = [str(column) for column in frame.columns if not _is_index(str(column))]
    columns = {str(column): column for column in frame.columns if str(column) in names}
    kinds = {name: kind for name, column in columns.items() if len(frame) and (kind := kind_of(frame[column]))}
    paths, strings = dict[str, str](), [name for name in columns if name not in kinds]
    for column in kinds:
        first = frame[columns[column]][:LOOK_AHEAD_ROWS]
        for path, value in (each for one in first for each in paths_of(column, one)):
            paths[path] = column
            strings += [path] if isinstance(value, str) else []

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        for number, row in enumerate(zip(*(frame[columns[column]] for column in wanted), strict=True)):
            yield numbered_row(number, dict(zip(wanted, row, strict=True)), {})

    return Table(name, names, strings, rows, kinds, paths=paths)


def _pandas_kind(column: Any) -> str | None:
    """Return the type of a column of pandas; None for text."""
    import pandas

    dtype = getattr(column, "dtype", None)
    if dtype is None:  # two columns of one name, which is refused later
        return None
    if isinstance(dtype, pandas.CategoricalDtype):
        return _pandas_kind(dtype.categories)
    if isinstance(dtype, pandas.ArrowDtype):
        return None if _is_text(dtype.pyarrow_dtype) else str(dtype)
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


def schema_table(name: str, schema: Any, rows: Rows) -> Table:
    """Return the table of a source with a schema, without an index of pandas."""
    fields = [field for field in schema if not _is_index(field.name)]
    inner = {path: (field.name, kind) for field in fields for path, kind in _inner_types(field.name, field.type)}
    types = {path: kind for path, (_, kind) in inner.items()} | {field.name: field.type for field in fields}
    return Table(
        name,
        [field.name for field in fields],
        [each for each, kind in types.items() if _is_text(kind)],
        rows,
        {each: str(kind) for each, kind in types.items() if not _is_text(kind)},
        paths={path: column for path, (column, _) in inner.items()},
    )


def _inner_types(column: str, kind: Any, depth: int = DEPTH) -> Iterator[tuple[str, Any]]:
    """Yield the paths into a type that is a struct, and their types; nothing for other types."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    for field in kind if pa.types.is_struct(kind) else ():
        path = f"{column}.{field.name}"
        if pa.types.is_struct(field.type) and depth:
            yield from _inner_types(path, field.type, depth - 1)
        else:
            yield path, field.type


def _is_index(name: str) -> bool:
    return _INDEX.fullmatch(name) is not None


def _is_text(kind: Any) -> bool:
    """Return whether values of an Arrow type are strings; dictionaries (categories) and repeated ones included."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _is_text(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def schema_label_names(schema: Any, labels: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the names of the classes of each label, if ``datasets`` wrote them into a schema."""
    if not labels or b"huggingface" not in (schema.metadata or {}):
        return {}
    from datasets import Features

    return label_names(Features.from_arrow_schema(schema), labels)


def label_names(features: Any, labels: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the names of the classes of each label that is a ``datasets.ClassLabel``."""
    return {label: names for label in labels if (names := getattr(value_at(features, label), "names", None))}


def numbered_row(number: int, values: Mapping[str, Any], labels: Mapping[str, Sequence[str]]) -> RawRow:
    """Return a row with the names of classes for their numbers; -1 means no label in many test splits."""
    for label, names in labels.items():
        value = value_at(values, label)
        values = {**values, label: names[value] if isinstance(value, int) and 0 <= value < len(names) else None}
    return RawRow(f"row {number:,}", str(number), values)


def batch_rows(
    batches: Iterable[Any], wanted: Sequence[str], labels: Mapping[str, Sequence[str]]
) -> Iterator[RawRow | Skip]:
    """Return the rows of record batches; those with invalid UTF-8 are skips."""
    index = itertools.count()
    for batch in batches:
        columns = [_scalars(batch.column(name)) for name in wanted]
        for row, number in zip(zip(*columns, strict=True), index, strict=False):
            undecoded = next((value for value in row if isinstance(value, UnicodeDecodeError)), None)
            if undecoded is not None:
                yield Skip(f"row {number:,}", WRONG_ENCODING, str(undecoded))
            else:
                yield numbered_row(number, dict(zip(wanted, row, strict=True)), labels)


def _scalars(column: Any) -> list[object]:
    if hasattr(column, "dictionary"):  # its strings are made once
        strings = _scalars(column.dictionary)
        return [None if index is None else strings[index] for index in column.indices.to_pylist()]
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):  # invalid UTF-8, or a time for which Python has no type
        return [_scalar(each) for each in column]


def _scalar(scalar: Any) -> object:
    try:
        return scalar.as_py()
    except UnicodeDecodeError as error:
        return error
    except (ValueError, OverflowError):
        return str(scalar)
