"""The data sets as tasks of mteb: the base as it is, and DocSplit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.models import run_name
from benchmarks.grid.systems import DOCSPLIT

NAME = "mteb"
SEED = 42


def plan(grid: Grid, run: Run, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan a cell for each task of a data set that is here. Without mteb there are none, and that is recorded."""
    if NAME not in experiments or run.system.name not in (f"base-{grid.scale.pooling}", DOCSPLIT):
        return
    if find_spec("mteb") is None:
        if not run.system.rival:
            grid.work.skip(NAME, "mteb is not installed: pip install mteb")
        return
    from benchmarks.tasks import TASKS

    for name, task in TASKS.items():
        if task.data_set in grid.data:
            yield of_task(grid, run, name, task.data_set)


def of_task(grid: Grid, run: Run, task: str, data: str) -> Cell:
    """Plan the cell of a task."""

    def make() -> Mapping[str, Any]:
        from benchmarks.tasks import TASKS, kept_generators, measure

        place = grid.places.get(data)
        if place is not None and data == "lee" and place.is_file():
            place = place.parent
        with kept_generators():
            made = TASKS[task].make(
                place, most=grid.scale.mteb_documents, seed=SEED, cache_dir=grid.work.folder / "data"
            )
            return measure(grid.models.encoder(run.system, run.seed).model, made, batch_size=16)

    return Cell(
        f"results/{NAME}/{task}/{run_name(run.system, run.seed)}",
        {
            "system": grid.models.settings(run.system, run.seed),
            "data": grid.data[data].identity,
            "read": grid.scale.read,
            "documents": grid.scale.mteb_documents,
            "seed": SEED,
            "mteb": version("mteb"),
        },
        make,
        f"{NAME} {task}",
        f"{run.title}: {task}",
        lambda result: f"{result['main_score']} {100 * result['main']:.1f}",
    )
