"""What an experiment plans, and what it plans with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.grid.models import Models
from benchmarks.grid.scales import Scale
from benchmarks.grid.sets import Texts
from benchmarks.grid.systems import System
from benchmarks.grid.work import Work


@dataclass(frozen=True)
class Run:
    """A system, trained with a seed where it is trained."""

    system: System
    seed: int = 0

    @property
    def title(self) -> str:
        """What the log calls it."""
        return f"{self.system.title}, seed {self.seed}" if self.system.rival else self.system.title


@dataclass(frozen=True)
class Cell:
    """One result to be had.

    Attributes:
        name: Its path in the work folder.
        settings: All that decides its numbers.
        make: Gives what comes out.
        subject: What it depends on, a system or an experiment: where that cannot be had, all cells of it are skipped.
        about: What the log calls it.
        tell: Makes a line for the log of what came out.
    """

    name: str
    settings: Mapping[str, Any]
    make: Callable[[], Mapping[str, Any]]
    subject: str
    about: str
    tell: Callable[[Mapping[str, Any]], str] = lambda result: "done"


@dataclass(frozen=True)
class Grid:
    """What experiments are made from.

    Attributes:
        scale: The grid's size.
        work: Where results are kept.
        models: The systems.
        data: The data sets that are there, by name.
        places: Where they are, if not in a package or on the Hub.
    """

    scale: Scale
    work: Work
    models: Models
    data: Mapping[str, Texts] = field(default_factory=dict)
    places: Mapping[str, Path] = field(default_factory=dict)
