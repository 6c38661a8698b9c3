"""Data sets on the Hugging Face Hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simlte_st.data.columns import Table
from simlte_st.data.sources import load_hub
from simlte_st.data.tables import dataset_table


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
        DataError: As :func:`~simlte_st.data.sources.load_hub`.
    """
    tables: list[tuple[str | None, Table, Any]] = []
    for (name, part), dataset in zip(hub.splits.items(), load_hub(hub.id, list(hub.splits)), strict=True):
        version = sorted(file["filename"] for file in dataset.cache_files)  # the path holds the revision
        tables.append((part, dataset_table(dataset, f"{hub.id} ({name})"), version))
    return tables
