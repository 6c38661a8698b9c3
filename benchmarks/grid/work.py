"""Work folders, which keep finished cells with their settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks.records import environment
from simlte_st.files import read_json, write_json


class SettingsClash(SystemExit):
    """The work folder has results with other settings."""


class Work:
    """A folder of finished cells.

    A cell is a JSON file with a result, its settings, the computing time in seconds, and versions. It is written
    atomically.
    """

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.folder, self.dtype = folder, dtype

    def path(self, name: str) -> Path:
        """Return the path of a cell."""
        return self.folder / f"{name}.json"

    def find(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a cell, or None if it is unfinished."""
        path = self.path(name)
        if not path.exists():
            return None
        cell: dict[str, Any] = read_json(path)
        different = sorted(differences(cell["settings"], settings))
        if different:
            raise SettingsClash(
                f"{path} has different settings: {'; '.join(different)}. Remove it, or pass another --work."
            )
        return cell

    def finish(self, name: str, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a cell, computing it first if unfinished."""
        cell = self.find(name, settings)
        if cell is None:
            began = time.perf_counter()
            result = dict(make())
            seconds = round(time.perf_counter() - began, 2)
            versions = environment(self.dtype)
            cell = {"settings": settings, "result": result, "seconds": seconds, "environment": versions}
            write_json(self.path(name), cell)
        return cell

    def finish_aloud(
        self, name: str, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return a cell, computing it first if unfinished and printing its name and time."""
        if (cell := self.find(name, settings)) is None:
            print(name, flush=True)
            cell = self.finish(name, settings, make)
            print(f"    {cell['seconds']:.0f} s", flush=True)
        return cell

    def cells(self, pattern: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield relative path and content of the finished cells that match a pattern."""
        for path in sorted(self.folder.glob(f"{pattern}.json")):
            yield path.relative_to(self.folder), read_json(path)


def differences(saved: Any, current: Any, name: str = "") -> Iterator[str]:
    """Describe each setting that differs between two records."""
    if isinstance(saved, Mapping) and isinstance(current, Mapping):
        for key in dict.fromkeys([*saved, *current]):
            yield from differences(saved.get(key), current.get(key), f"{name}.{key}" if name else key)
    elif saved != current and not (isinstance(current, tuple) and saved == list(current)):
        yield f"{name} {saved!r}, now {current!r}"
