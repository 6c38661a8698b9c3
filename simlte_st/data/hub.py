"""Data sets of the library ``datasets``, in memory or on the Hugging Face Hub."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from simlte_st.data.arrow import label_names, numbered_row, schema_table
from simlte_st.data.tables import RawRow, Table, mappings_table
from simlte_st.errors import DataError

FORM = "hub:NAME[:CONFIG][:SPLIT]"

_SPLIT = re.compile(r"(train|training|validation|valid|val|dev|test|unsupervised)([^a-z].*)?")
_HUB_SECONDS = 5


def is_hub(source: object) -> bool:
    """Return whether a source is the name of a data set on the Hub."""
    return isinstance(source, str) and source.startswith("hub:")


def parse_hub(source: str) -> tuple[str, str | None, str]:
    """Split ``hub:NAME[:CONFIG][:SPLIT]`` into name, configuration and split.

    A single part after the name is the split if it begins like one (train, validation, valid, val, dev, test,
    unsupervised) or contains a ``[``, else the configuration. An empty part stands for the default, so
    ``hub:NAME::SPLIT`` and ``hub:NAME:CONFIG:`` are never ambiguous.
    """
    # A colon inside brackets belongs to a slice: train[:10%].
    name, *parts = re.split(r":(?![^\[]*\])", source.removeprefix("hub:"))
    if not name.strip() or len(parts) > 2:
        raise DataError(f"{source!r} is not of the form hub:NAME, hub:NAME:SPLIT or hub:NAME:CONFIG:SPLIT.")
    config = split = ""
    if len(parts) == 2:
        config, split = parts
    elif parts and ("[" in parts[0] or _SPLIT.fullmatch(parts[0])):
        split = parts[0]
    elif parts:
        config = parts[0]
    return name, config or None, split or "train"


def load_hub(name: str, splits: Sequence[str], config: str | None = None, *, streaming: bool = False) -> list[Any]:
    """Load splits of a data set from the Hugging Face Hub.

    Unless the cache of ``datasets`` has it (and it is not streamed), the Hub is first asked whether it exists, for at
    most five seconds, so that a machine without a network does not wait.
    """
    import datasets
    from huggingface_hub import HfApi

    cache = Path(datasets.config.HF_DATASETS_CACHE)
    folder = name.replace("/", "___").lower()
    if streaming or not (cache.is_dir() and any(path.name.lower() == folder for path in cache.iterdir())):
        try:
            HfApi().dataset_info(name, timeout=_HUB_SECONDS)
        except Exception as error:  # no network, no such data set, offline: each library version has its own class
            raise DataError(f"{name} on the Hub cannot be reached ({in_short(error)})") from error
    loaded = []
    for split in splits:
        try:
            loaded.append(datasets.load_dataset(name, config, split=split, streaming=streaming))
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(
                f"{name} on the Hub (configuration {config or 'default'}, split {split!r}) cannot be loaded: {error}"
            ) from error
    return loaded


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
