"""What is finished, by experiment, system and data set, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grid.experiments.classification import FEW, FULL
from benchmarks.grid.sets import CLASSIFICATION
from benchmarks.grid.systems import SYSTEMS
from benchmarks.grid.work import Clash, Work, differences
from benchmarks.records import environments
from benchmarks.relative_gain import Scores, gain_interval, relative_gain
from simlte_st.evaluation import bootstrap_interval

KINDS = (FEW, FULL)
Draws = dict[int, list[float]]
"""Scores of each draw, by seed of the training; 0 where there was none."""


class Results:
    """The finished cells of a work folder."""

    def __init__(self, work: Work, settings: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> None:
        self.work, self.settings = work, settings
        self.cells = {str(path.with_suffix("")): cell for path, cell in work.cells("results/**/*")}
        self.models = {path.stem: cell for path, cell in work.cells("models/*")}
        self.data = {path.stem: cell for path, cell in work.cells("sets/*")}
        self.skipped = work.skipped()
        self.environments = environments([*self.cells.values(), *self.models.values()])
        if earlier is not None:
            self._add(earlier)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Results:
        """Return the results of the record of a page."""
        parts = {name: record.get(name, {}) for name in ("models", "data", "skipped")}
        return cls(Work(Path("nowhere")), record["settings"], {**record, **parts})

    def _add(self, earlier: Mapping[str, Any]) -> None:
        different = sorted(differences(earlier["settings"], self.settings))
        if different:
            raise Clash(f"The earlier page has other settings: {'; '.join(different)}.")
        for name, result in earlier["results"].items():
            cell = self.cells.setdefault(f"results/{name}", {"result": result})
            if {key: value for key, value in cell["result"].items() if key != "per_query"} != result:
                raise Clash(f"{name}: the earlier page has another number than this work folder.")
        for name, model in earlier["models"].items():
            self.models.setdefault(name, {"result": model, "settings": model["settings"]})
        self.data = {**earlier["data"], **self.data}
        self.skipped = {**earlier["skipped"], **self.skipped}
        self.environments += [each for each in earlier["environments"] if each not in self.environments]

    def of(self, experiment: str) -> list[tuple[str, str, int, dict[str, Any]]]:
        """Return an experiment's cells: the data set, the system's name, the seed, and what came out."""
        found = []
        for name, cell in self.cells.items():
            parts = name.split("/")
            if parts[1] == experiment and len(parts) == 4:
                found.append((parts[2], *run_of(parts[3]), cell["result"]))
        return found

    def shots(self, data: str) -> int:
        """Return the examples per class of a data set's few-shot experiment."""
        found: int = self.settings["shots"].get(data, 5)
        return found

    @cached_property
    def scores(self) -> dict[tuple[str, str], dict[str, dict[str, Draws]]]:
        """Scores by kind and metric, then by system and data set: few-shot with the papers' number of examples."""
        found: dict[tuple[str, str], dict[str, dict[str, Draws]]] = {}
        for kind in KINDS:
            for place, system, seed, result in self.of(kind):
                data = place
                if kind == FEW:
                    data, _, shots = place.rpartition("-")
                    if int(shots) != self.shots(data):
                        continue
                for metric in ("accuracy", "macro_f1"):
                    by_system = found.setdefault((kind, metric), {}).setdefault(system, {})
                    by_system.setdefault(data, {})[seed] = result[metric]
        return found

    def curve(self, metric: str) -> dict[str, dict[int, np.ndarray]]:
        """Return the learning curve: system, examples a class, then all draws of all seeds."""
        found: dict[str, dict[int, list[float]]] = {}
        for place, system, _, result in self.of(FEW):
            data, _, shots = place.rpartition("-")
            if data == self.settings["curve_data"]:
                found.setdefault(system, {}).setdefault(int(shots), []).extend(result[metric])
        return {
            system: {shots: np.array(found[system][shots]) for shots in sorted(found[system])}
            for system in SYSTEMS
            if len(found.get(system, {})) > 1
        }

    def systems(self, kind: str, metric: str = "macro_f1") -> list[str]:
        """Name the systems of a kind that are finished somewhere, in the order of the tables."""
        return [name for name in SYSTEMS if name in self.scores.get((kind, metric), {})]

    def gain(self, kind: str, ours: str, theirs: str) -> dict[str, Any] | None:
        """Return the papers' headline for two systems: on the data sets and seeds that both have.

        What needs no training has one seed, which stands beside every seed of what does. ``of_each`` has the gain on
        each data set alone.
        """
        both = [self.scores.get((kind, "macro_f1"), {}).get(name, {}) for name in (ours, theirs)]
        data = [name for name in CLASSIFICATION if name in both[0] and name in both[1]]
        trained = [bool(SYSTEMS[name].rival) for name in (ours, theirs)]
        seeds = [set(side[name]) for side, drawn in zip(both, trained, strict=True) if drawn for name in data]
        common = sorted(set.intersection(*seeds)) if seeds else [0]
        if not data or not common:
            return None
        pair: list[Scores] = [
            {name: np.array([side[name][seed if drawn else 0] for seed in common]) for name in data}
            for side, drawn in zip(both, trained, strict=True)
        ]
        return {
            **_gain_of(*pair),
            "seeds": common,
            "of_each": {name: _gain_of({name: pair[0][name]}, {name: pair[1][name]}) for name in data},
        }

    def difference(
        self, kind: str, ours: str, theirs: str, data: str
    ) -> tuple[float, tuple[float, float] | None] | None:
        """Compare two systems on a data set, draw by draw: mean difference in macro-F1 in points, and its interval.

        The draws are averaged over the seeds that both have; with a single draw, seeds are what varies.
        """
        both = [self.scores.get((kind, "macro_f1"), {}).get(name, {}).get(data, {}) for name in (ours, theirs)]
        seeds = sorted(set(both[0]) & set(both[1]))
        if not seeds:
            return None
        table = 100 * (np.array([both[0][seed] for seed in seeds]) - np.array([both[1][seed] for seed in seeds]))
        values = table.mean(axis=0) if table.shape[1] > 1 else table[:, 0]
        return float(table.mean()), bootstrap_interval(values) if len(values) > 1 else None


def _gain_of(ours: Scores, theirs: Scores) -> dict[str, Any]:
    return {"gain": relative_gain(ours, theirs), "interval": gain_interval(ours, theirs)}


def run_of(stem: str) -> tuple[str, int]:
    """Read a system's name and seed from a file's name."""
    name, _, seed = stem.rpartition("-")
    if stem not in SYSTEMS and seed.isdigit() and name in SYSTEMS and SYSTEMS[name].rival:
        return name, int(seed)
    return stem, 0
