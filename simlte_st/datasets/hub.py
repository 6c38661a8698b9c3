"""Data sets on the Hugging Face Hub: asked for quickly, so that a machine without a network does not wait."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simlte_st.data.columns import RawRow, Skip
from simlte_st.data.tables import Table, label_name
from simlte_st.errors import DataError

_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Hub:
    """A data set on the Hub.

    Attributes:
        id: Its repository.
        splits: Its splits, each with the name it has here; None where the whole data set is one.
        note: How it differs from what the papers used.
    """

    id: str
    splits: Mapping[str, str | None] = field(default_factory=lambda: {"train": "train", "test": "test"})
    note: str = ""


def load_hub_tables(hub: Hub) -> list[tuple[str | None, Table, Any]]:
    """Load a data set from the Hub, or from the cache of ``datasets``.

    Returns:
        For each split its name here, the table, and what tells this version of it from another.

    Raises:
        DataError: The Hub cannot be reached within five seconds and the cache does not have it, or it cannot be loaded.
    """
    import datasets

    _ask_hub(hub.id)
    tables: list[tuple[str | None, Table, Any]] = []
    for name, part in hub.splits.items():
        try:
            dataset = datasets.load_dataset(hub.id, split=name)
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            raise DataError(f"{hub.id} (split {name}) cannot be loaded: {error}") from error
        version = sorted(file["filename"] for file in dataset.cache_files)  # the path holds the revision
        tables.append((part, dataset_table(dataset, f"{hub.id} ({name})"), version))
    return tables


def dataset_table(dataset: Any, name: str) -> Table:
    """See a ``datasets.Dataset`` as a table, which can be read any number of times."""

    def rows(wanted: Sequence[str], labels: Collection[str]) -> Iterator[RawRow | Skip]:
        chosen = dataset.with_format(None).select_columns(list(wanted))
        names = {label: label_name(dataset.features[label]) for label in labels}
        for index, row in enumerate(chosen):
            yield RawRow(
                f"{name} row {index:,}", str(index), {**row, **{label: of(row[label]) for label, of in names.items()}}
            )

    return Table(name, dataset.column_names, rows)


def _ask_hub(repository: str) -> None:
    """Raise :class:`DataError` unless the Hub, or the cache, has a data set."""
    import datasets
    from huggingface_hub import HfApi

    folder = repository.replace("/", "___").lower()
    cache = Path(datasets.config.HF_DATASETS_CACHE)
    if cache.is_dir() and any(path.name.lower() == folder for path in cache.iterdir()):
        return
    try:
        HfApi().dataset_info(repository, timeout=_SECONDS)
    except Exception as error:  # no network, no such repository, offline mode: each library version has its own class
        raise DataError(f"{repository} on the Hub cannot be reached ({type(error).__name__})") from error
