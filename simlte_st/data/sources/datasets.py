"""Data sets of the library ``datasets``, and tables of pyarrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from simlte_st.data.rows import RawRow, ReadSettings
from simlte_st.data.sources.base import Source, is_instance
from simlte_st.data.sources.iterables import length
from simlte_st.data.tables import Table, holds_strings, label_names, mappings_table, numbered_row, read_table


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a ``Dataset``, an ``IterableDataset`` or a ``pyarrow.Table``."""
    name = f"the {type(source).__name__}"
    if is_instance(source, "pyarrow", "Table"):
        import datasets

        source = datasets.Dataset(source)
    if not is_instance(source, "datasets", "Dataset", "IterableDataset"):
        return None
    return Source(name, lambda: read_table(dataset_table(source, name), settings.columns), lambda: length(source))


def dataset_table(dataset: Any, name: str) -> Table:
    """See a ``datasets.Dataset`` or ``IterableDataset`` as a table, of which only the wanted columns are read."""
    # A format (torch, numpy) would turn strings into something else.
    plain = dataset.with_format(None)
    features = plain.features
    if features is None:  # a stream without a schema
        return mappings_table(name, (numbered_row(number, row, {}) for number, row in enumerate(plain)))

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        names = label_names(features, labels)
        for number, row in enumerate(plain.select_columns(list(wanted))):
            yield numbered_row(number, row, names)

    strings = [column for column, feature in features.items() if holds_strings(getattr(feature, "dtype", None))]
    return Table(name, list(features), strings, rows)
