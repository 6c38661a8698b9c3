"""Data sets of the library ``datasets``, in memory or on the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from simlte_st.data.arrow import label_names, numbered_row, schema_table
from simlte_st.data.tables import RawRow, Table, mappings_table
from simlte_st.errors import DataError

FORM = "hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT"


def is_hub(source: object) -> bool:
    """Return whether a source is the name of a data set on the Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def parse_hub(source: str) -> tuple[str, str | None, str]:
    """Split ``hub:NAME``, ``hub:NAME:SPLIT`` or ``hub:NAME:CONFIG:SPLIT`` into name, configuration and split.

    An empty part stands for the default.
    """
    # A colon inside brackets belongs to a slice: train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} is not of the form {FORM}.")
    config, split = [None, None, *parts][-2:]
    return name, config or None, split or "train"


def load_hub(name: str, splits: Sequence[str], config: str | None = None, *, streaming: bool = False) -> list[Any]:
    """Load splits of a data set from the Hugging Face Hub."""
    import datasets

    try:
        return [datasets.load_dataset(name, config, split=split, streaming=streaming) for split in splits]
    except Exception as error:  # no network, no such data set, offline: each library version has its own class
        raise DataError(
            f"{name} on the Hub (configuration {config or 'default'}, split {', '.join(splits)}) cannot be loaded: "
            f"{error}"
        ) from error


def in_short(error: Exception) -> str:
    """Return the kind of an error and the first line of its message."""
    return ": ".join([type(error).__name__, *str(error).splitlines()[:1]])


def dataset_table(dataset: Any, name: str, first: int = 0, batch_size: int = 1) -> Table:
    """Return the table of a ``Dataset`` or ``IterableDataset``, from a row on; only the wanted columns are read."""
    # A format (torch, numpy) would turn strings into something else.
    plain = dataset.with_format(None)
    features = plain.features
    if features is None:  # a stream without a schema
        return mappings_table(name, (numbered_row(number, row, {}) for number, row in enumerate(plain)))

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow]:
        names = label_names(features, labels)
        number, rest = first, plain.select_columns(list(wanted))
        # In batches: row by row, each process that loads data would read other shards of a stream.
        for batch in (rest.skip(first) if first else rest).iter(batch_size=batch_size):
            for values in zip(*batch.values(), strict=True):
                yield numbered_row(number, dict(zip(batch, values, strict=True)), names)
                number += 1

    return schema_table(name, features.arrow_schema, rows)
