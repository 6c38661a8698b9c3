"""Columns and rows of Arrow data: what each column holds by its type, and values as Python has them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from simlte_st.data.rows import RawRow, Skip
from simlte_st.data.streams import WRONG_ENCODING

_INDEX = re.compile(r"__index_level_\d+__")  # how pandas writes an index that has no name


def text_type(kind: Any) -> bool:
    """Whether values of an Arrow type are strings, also those of dictionaries (categories) and repeated ones."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return text_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return text_type(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def column_kinds(schema: Any) -> tuple[list[str], dict[str, str]]:
    """Return the names of the columns of a schema, but for the index of pandas, and the types of those without text."""
    fields = [field for field in schema if not is_index(field.name)]
    return [field.name for field in fields], {
        field.name: str(field.type) for field in fields if not text_type(field.type)
    }


def is_index(name: str) -> bool:
    """Whether a column is an index that pandas wrote: numbers of rows."""
    return _INDEX.fullmatch(name) is not None


def schema_label_names(schema: Any, labels: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the names of the classes of each label, where ``datasets`` wrote them into a schema."""
    if not labels or b"huggingface" not in (schema.metadata or {}):
        return {}
    from datasets import Features

    return label_names(Features.from_arrow_schema(schema), labels)


def label_names(features: Any, labels: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the names of the classes of each label that is a ``datasets.ClassLabel``."""
    return {label: names for label in labels if (names := getattr(features.get(label), "names", None)) is not None}


def numbered_row(number: int, values: Mapping[str, Any], labels: Mapping[str, Sequence[str]]) -> RawRow:
    """Make a row in which the numbers of classes are their names; -1 stands for no label in many test splits."""
    for label, names in labels.items():
        value = values[label]
        values = {**values, label: names[value] if isinstance(value, int) and 0 <= value < len(names) else None}
    return RawRow(f"row {number:,}", str(number), values)


def batch_rows(
    batches: Iterable[Any], wanted: Sequence[str], labels: Mapping[str, Sequence[str]]
) -> Iterator[RawRow | Skip]:
    """Return the rows of record batches, of the wanted columns; those that hold what is no UTF-8 are counted."""
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
    except (ValueError, OverflowError):  # UnicodeDecodeError is a ValueError; so is a time that Python has no type for
        values: list[object] = []
        for scalar in column:
            try:
                values.append(scalar.as_py())
            except UnicodeDecodeError as error:
                values.append(error)
            except (ValueError, OverflowError):
                values.append(str(scalar))
        return values
