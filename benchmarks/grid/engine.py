"""Running the grid: what is planned and not finished, one cell after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.experiments import attention, citations, classification, mteb, redundancy, similarity
from benchmarks.grid.systems import System
from benchmarks.grid.work import Busy, Clash, Unavailable, Work, differences
from simlte_st.errors import MissingExtraError, SimlteError
from simlte_st.files import read_json, write_json

EXPERIMENTS = (
    classification.FULL,
    classification.FEW,
    classification.CURVE,
    citations.NAME,
    similarity.NAME,
    redundancy.NAME,
    attention.NAME,
    mteb.NAME,
)
"""Every experiment by name."""

TRAINED = "systems that are trained"
WAIT = 10.0
"""Seconds between looks at what other processes make."""


def plan(grid: Grid, systems: Sequence[System], seeds: Sequence[int], experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan the cells, system by system, so that each model is loaded once.

    Without a corpus nothing is trained, and that is recorded.
    """
    if grid.models.corpus is None and any(system.rival for system in systems):
        grid.work.skip(TRAINED, "there is no corpus: give --corpus, or a --shared folder that holds one.")
        systems = [system for system in systems if not system.rival]
    else:
        grid.work.unskip(TRAINED)
    for run in runs(systems, seeds):
        for experiment in (classification, similarity, citations, mteb):
            yield from experiment.plan(grid, run, experiments)
    yield from redundancy.plan(grid, experiments)
    yield from attention.plan(grid, experiments, {system.name for system in systems}, seeds)


def runs(systems: Sequence[System], seeds: Sequence[int]) -> Iterator[Run]:
    """Return each system with each seed: what needs no training first, then seed by seed."""
    for system in systems:
        if not system.rival:
            yield Run(system)
    for seed in seeds:
        for system in systems:
            if system.rival:
                yield Run(system, seed)


def common_settings(grid: Grid, overrides: Sequence[str]) -> dict[str, Any]:
    """Return what all cells of a work folder have in common, so that they may stand in one table."""
    scale, corpus = grid.scale, grid.models.corpus
    names = (
        "preset", "steps", "batch_size", "tokens", "learning_rate", "pooling", "dtype", "read", "chunk_tokens",
        "train_documents", "test_documents", "test_share", "head", "draws", "shots", "curve_data", "ablation_data",
        "redundancy_documents",
    )  # fmt: skip
    return {
        "scale": scale.name,
        "overrides": list(overrides),
        "base": grid.models.base.identity,
        "corpus": None if corpus is None else corpus.identity,
        **{name: plain_json(getattr(scale, name)) for name in names},
    }


def keep_common(work: Work, settings: Mapping[str, Any]) -> None:
    """Refuse a work folder that began with other settings; a corpus may come later."""
    path = work.folder / "grid.json"
    saved = read_json(path) if path.exists() else {}
    both = [name for name in settings if saved.get(name) is not None and settings[name] is not None]
    different = sorted(
        line for name in both if name != "overrides" for line in differences(saved[name], settings[name], name)
    )
    if different:
        raise Clash(f"{work.folder} began with other settings: {'; '.join(different)}. Give another --work.")
    merged = {**settings, **{name: saved[name] for name in both}}
    if merged != saved:
        write_json(path, {name: saved.get(name) if value is None else value for name, value in merged.items()})


def plain_json(value: Any) -> Any:
    """Return a setting as JSON gives it back."""
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value


def run(grid: Grid, cells: Sequence[Cell]) -> None:
    """Make the cells that are missing. Those that other processes are at are waited for, and made if they do not."""
    missing = {cell.name: cell for cell in cells if grid.work.find(cell.name, cell.settings) is None}
    print(f"{len(missing)} of {len({cell.name for cell in cells})} cells to make", flush=True)
    total, made, began = len(missing), 0, time.perf_counter()
    lost: set[str] = set()
    while missing:
        before = len(missing)
        for name, cell in list(missing.items()):
            try:
                result = None if cell.subject in lost else grid.work.finish(name, cell.settings, cell.make)["result"]
            except Busy:
                continue
            except (Unavailable, MissingExtraError) as error:
                grid.work.skip(cell.subject, str(error))
                lost.add(cell.subject)
                result = None
            except SimlteError as error:
                grid.work.skip(cell.about, str(error))
                result = None
            del missing[name]
            if result is None:
                continue
            grid.work.unskip(cell.subject)
            grid.work.unskip(cell.about)
            made += 1
            spent = (time.perf_counter() - began) / 60
            print(
                f"[{total - len(missing)}/{total}] {cell.about}: {cell.tell(result)} "
                f"({spent:.1f} min, about {spent / made * len(missing):.0f} left)",
                flush=True,
            )
        if len(missing) == before:
            print(f"{len(missing)} cells are left, which other processes are at: waiting.", flush=True)
            time.sleep(WAIT)
