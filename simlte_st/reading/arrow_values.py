"""Convert Arrow values to Python, as far as Python can hold them."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from simlte_st.reading.document import unique_names

if TYPE_CHECKING:
    import pyarrow

INVALID = "invalid characters removed or replaced"

Converter: TypeAlias = Callable[[Any], object]
"""Converts a value of a column that is not None."""


def read_batch(batch: pyarrow.RecordBatch) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Yield the rows of a batch, with what was repaired in each, by reason."""
    with contextlib.suppress(Exception):  # one value that Python cannot hold; the class depends on the type
        yield from [(row, {}) for row in batch.to_pylist()]
        return
    for number in range(batch.num_rows):
        repairs: dict[str, str] = {}
        pairs = zip(batch.schema.names, batch.columns, strict=True)
        yield {name: _to_python(column[number], name, repairs) for name, column in pairs}, repairs


def _to_python(scalar: Any, path: str, repairs: dict[str, str]) -> object:
    """Return an Arrow value without the parts that Python cannot hold, which are added to ``repairs``."""
    import pyarrow

    try:
        return scalar.as_py()
    except Exception as error:
        if isinstance(scalar, pyarrow.StructScalar):
            names = unique_names([*scalar.keys()])
            return {name: _to_python(scalar[n], f"{path}.{name}", repairs) for n, name in enumerate(names)}
        if isinstance(scalar, pyarrow.ListScalar) and not isinstance(scalar, pyarrow.MapScalar):
            return [_to_python(item, path, repairs) for item in scalar.values]
        is_text = isinstance(error, UnicodeDecodeError)
        repairs[INVALID if is_text else "value not usable"] = path if is_text else f"{path}: {error}"
        return error.object.decode("utf-8", "replace") if isinstance(error, UnicodeDecodeError) else None


def find_converters(schema: pyarrow.Schema) -> dict[str, Converter]:
    """Return functions that restore the class names of ``datasets`` and the periods of pandas."""
    import pyarrow

    converters: dict[str, Converter] = {}
    if b"huggingface" in (schema.metadata or {}):
        import datasets

        for name, kind in datasets.Features.from_arrow_schema(schema).items():
            if isinstance(kind, datasets.ClassLabel) and kind.names:
                converters[name] = functools.partial(_class_name, kind.names)
    for field in schema:
        dtype = field.type.value_type if pyarrow.types.is_dictionary(field.type) else field.type
        settings = (field.metadata or {}).get(b"ARROW:extension:metadata", b"{}")  # if pandas is not imported
        frequency = getattr(dtype, "freq", None) or json.loads(settings or b"{}").get("freq")
        if frequency:
            converters[field.name] = functools.partial(_period, frequency)
    return converters


def _period(frequency: str, ordinal: int) -> str:
    """Return a pandas period as pandas writes it, such as ``2020-01``."""
    import pandas

    return str(pandas.Period(ordinal=ordinal, freq=frequency))


def _class_name(names: Sequence[str], number: object) -> object:
    """Return the name of a class; in many test splits, -1 means no label."""
    return (names[number] if 0 <= number < len(names) else None) if isinstance(number, int) else number
