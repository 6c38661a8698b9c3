"""The data sets as tasks of mteb: the base as it is, and DocSplit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.models import run_name
from benchmarks.grid.systems import DOCSPLIT
from simlte_st.errors import MissingExtraError

NAME = "mteb"
SEED = 42


def plan(grid: Grid, run: Run, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan a cell for each task of a data set that is here. Without mteb there are none, and that is recorded."""
    if NAME not in experiments or run.system.name not in (f"base-{grid.scale.pooling}", DOCSPLIT):
        return
    try:
        from simlte_st.tasks import TASKS
    except MissingExtraError as error:
        if not run.system.rival:
            grid.work.skip(NAME, str(error))
        return
    for name, task in TASKS.items():
        if task.data_set in grid.data:
            yield of_task(grid, run, name, task.data_set)


def of_task(grid: Grid, run: Run, task: str, data: str) -> Cell:
    """Plan the cell of a task."""

    def make() -> Mapping[str, Any]:
        from benchmarks.mteb_tasks import measure
        from simlte_st.tasks import paper_tasks

        place = grid.places.get(data)
        if place is not None and data == "lee" and place.is_file():
            place = place.parent
        most = grid.scale.mteb_documents
        paths = {} if place is None else {data: place}
        cache = {"cache_dir": grid.work.folder / "data"}
        [made] = paper_tasks([task], paths=paths, max_documents=most, seed=SEED, settings=cache)
        made.load_data()
        found = measure(grid.models.encoder(run.system, run.seed).model, made, batch_size=16)
        return {name: value for name, value in found.items() if name != "environment"}

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
