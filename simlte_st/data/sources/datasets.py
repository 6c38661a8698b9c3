"""Data sets of the library ``datasets``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from simlte_st.data.arrow import column_kinds, label_names, numbered_row
from simlte_st.data.rows import RawRow, ReadSettings
from simlte_st.data.sources.base import Source, is_instance
from simlte_st.data.sources.iterables import length
from simlte_st.data.tables import Table, mappings_table, read_table


def open_source(source: Any, settings: ReadSettings) -> Source | None:
    """Open a ``Dataset`` or an ``IterableDataset``."""
    name = f"the {type(source).__name__}"
    if not is_instance(source, "datasets", "Dataset", "IterableDataset"):
        return None
    return Source(name, lambda: read_table(dataset_table(source, name), settings.columns), lambda: length(source))


def dataset_table(dataset: Any, name: str, first: int = 0, batch_size: int = 1) -> Table:
    """See a ``datasets.Dataset`` or ``IterableDataset`` as a table, of which only the wanted columns are read."""
    # A format (torch, numpy) would turn strings into something else.
    plain = dataset.with_format(None)
    features = plain.features
    if features is None:  # a stream without a schema
        return mappings_table(name, (numbered_row(number, row, {}) for number, row in enumerate(plain)))

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        names = label_names(features, labels)
        number, rest = first, plain.select_columns(list(wanted))
        # Not row by row: of a stream, each process that loads data would read other shards.
        for batch in (rest.skip(first) if first else rest).iter(batch_size=batch_size):
            for values in zip(*batch.values(), strict=True):
                yield numbered_row(number, dict(zip(batch, values, strict=True)), names)
                number += 1

    columns, kinds = column_kinds(features.arrow_schema)
    return Table(name, columns, [column for column in columns if column not in kinds], rows, kinds)
