"""The work folder: finished cells with their settings."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from benchmarks.records import environment
from simlte_st.files import read_json, write_json


class SettingsClash(SystemExit):
    """The work folder holds results from different settings."""


class Work:
    """A folder of finished cells.

    A cell is a JSON file with a result, its settings, the seconds it took, and versions. It is written atomically when
    the result is finished.
    """

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        self.folder, self.dtype = folder, dtype

    def path(self, name: str) -> Path:
        """Return the path of a cell."""
        return self.folder / f"{name}.json"

    def find(self, name: str, settings: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return a cell, or None if it is not finished."""
        path = self.path(name)
        if not path.exists():
            return None
        cell: dict[str, Any] = read_json(path)
        different = sorted(differences(cell["settings"], settings))
        if different:
            raise SettingsClash(
                f"{path} was made with different settings: {'; '.join(different)}. Pass another --work or remove it."
            )
        return cell

    def finish(self, name: str, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """Return a cell, computing it first if it is not finished."""
        cell = self.find(name, settings)
        if cell is None:
            began = time.perf_counter()
            result = dict(make())
            seconds = round(time.perf_counter() - began, 2)
            made_in = environment(self.dtype)
            cell = {"settings": settings, "result": result, "seconds": seconds, "environment": made_in}
            write_json(self.path(name), cell)
        return cell

    def finish_aloud(self, name: str, settings: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> None:
        """Compute a cell if it is not finished, printing its name and time."""
        if self.find(name, settings) is None:
            print(name, flush=True)
            print(f"    {self.finish(name, settings, make)['seconds']:.0f} s", flush=True)

    def cells(self, pattern: str) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield all finished cells whose path matches a pattern, with their relative path."""
        for path in sorted(self.folder.glob(f"{pattern}.json")):
            yield path.relative_to(self.folder), read_json(path)


def differences(saved: Any, wanted: Any, name: str = "") -> Iterator[str]:
    """Yield a description of each setting that differs between two records."""
    if isinstance(saved, Mapping) and isinstance(wanted, Mapping):
        for key in dict.fromkeys([*saved, *wanted]):
            yield from differences(saved.get(key), wanted.get(key), f"{name}.{key}" if name else key)
    elif saved != wanted and not (isinstance(wanted, tuple) and saved == list(wanted)):
        yield f"{name} {saved!r}, now {wanted!r}"
