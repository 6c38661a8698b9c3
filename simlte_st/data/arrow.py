"""Arrow tables and data frames: what their columns hold, by type, and their rows as Python values."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simlte_st.data.tables import RawRow, Rows, Skip, Table, mappings_table, value_at
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
    names = [str(column) for column in frame.columns]
    tuples = (
        frame.itertuples(index=False, name=None) if is_instance(frame, "pandas", "DataFrame") else frame.iter_rows()
    )
    rows = (numbered_row(number, dict(zip(names, row, strict=True)), {}) for number, row in enumerate(tuples))
    return mappings_table(name, rows, header=names)


def schema_table(name: str, schema: Any, rows: Rows) -> Table:
    """Return the table of a source with a schema, without an index of pandas."""
    types = {field.name: field.type for field in schema if not _is_index(field.name)}
    return Table(
        name,
        [field.name for field in schema if not _is_index(field.name)],
        [each for each, kind in types.items() if _is_text(kind)],
        rows,
        {each: str(kind) for each, kind in types.items() if not _is_text(kind)},
    )


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
