"""Finished cells by experiment, system and data set, and the papers' headline gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks.grid.experiments import CLASSIFICATION, FEW
from benchmarks.grid.printed import DATA
from benchmarks.grid.systems import SHOTS, SYSTEMS
from benchmarks.grid.work import Work
from benchmarks.records import environments
from simlte_st.evaluation import bootstrap_interval
from simlte_st.files import read_json

Draws = dict[int, list[float]]
"""Scores of each draw by training seed; 0 for untrained systems."""

Scores = Mapping[str, ArrayLike]
"""Macro-F1 by data set, ``(seeds, draws)``: one row per training, one column per draw of labelled examples."""

RESAMPLES = 2000


def collect_record(work: Work) -> dict[str, Any]:
    """Return the finished results of a work folder as JSON values."""
    cells = {str(path.with_suffix("")).removeprefix("results/"): cell for path, cell in work.cells("results/**/*")}
    if not cells:
        raise SystemExit(f"Nothing is finished in {work.folder}.")
    identities = {cell["settings"]["data"]["name"]: cell["settings"]["data"] for cell in cells.values()}
    return {
        **read_json(work.folder / "grid.json"),
        "environments": environments(cells.values()),
        "data": {name: {"identity": identities[name]} for name in sorted(identities)},
        "results": {
            name: {key: value for key, value in cell["result"].items() if key != "per_query"}
            for name, cell in cells.items()
        },
    }


class Results:
    """The results of a record."""

    def __init__(self, results: Mapping[str, Any]) -> None:
        self.cells = results
        self.scores: dict[tuple[str, str], dict[str, dict[str, Draws]]] = {}
        """Draws by experiment and metric, then by system and data set."""
        for experiment in CLASSIFICATION:
            for data, system, seed, result in self.experiment_cells(experiment):
                if experiment == FEW:
                    data, _, shots = data.rpartition("-")
                    if int(shots) != SHOTS.get(data, 5):
                        continue
                for metric in ("accuracy", "macro_f1"):
                    system_scores = self.scores.setdefault((experiment, metric), {}).setdefault(system, {})
                    system_scores.setdefault(data, {})[seed] = result[metric]

    def experiment_cells(self, experiment: str) -> list[tuple[str, str, int, dict[str, Any]]]:
        """Return data set, system, seed and result of an experiment's cells."""
        cells = []
        for name, result in self.cells.items():
            parts = name.split("/")
            if parts[0] == experiment and len(parts) == 3:
                cells.append((parts[1], *parse_run(parts[2]), result))
        return cells

    def systems(self, experiment: str) -> list[str]:
        """Return the systems with results, in the order of the tables."""
        return [name for name in SYSTEMS if name in self.scores.get((experiment, "macro_f1"), {})]

    def gain(self, experiment: str, ours: str, theirs: str) -> dict[str, Any] | None:
        """Return the papers' headline number for two systems, on their common data sets and seeds.

        An untrained system is compared with every seed of a trained one. ``of_each`` holds the gain on each data set.
        """
        scores = [self.scores.get((experiment, "macro_f1"), {}).get(name, {}) for name in (ours, theirs)]
        data = [name for name in DATA if name in scores[0] and name in scores[1]]
        trained = [bool(SYSTEMS[name].rival) for name in (ours, theirs)]
        seeds = [set(side[name]) for side, is_run in zip(scores, trained, strict=True) if is_run for name in data]
        common = sorted(set.intersection(*seeds)) if seeds else [0]
        if not data or not common:
            return None
        pair: list[Scores] = [
            {name: np.array([side[name][seed if is_run else 0] for seed in common]) for name in data}
            for side, is_run in zip(scores, trained, strict=True)
        ]
        return {
            **_gain_with_interval(*pair),
            "seeds": common,
            "of_each": {name: _gain_with_interval({name: pair[0][name]}, {name: pair[1][name]}) for name in data},
        }

    def difference(self, experiment: str, ours: str, theirs: str, data: str) -> str:
        """Format two systems' mean difference in macro-F1 on a data set, in points, with its interval.

        Draws are paired and averaged over common seeds. With a single draw, the interval is over seeds.
        """
        scores = [self.scores.get((experiment, "macro_f1"), {}).get(name, {}).get(data, {}) for name in (ours, theirs)]
        seeds = sorted(set(scores[0]) & set(scores[1]))
        if not seeds:
            return ""
        table = 100 * np.subtract(*([side[seed] for seed in seeds] for side in scores))
        values = table.mean(axis=0) if table.shape[1] > 1 else table[:, 0]
        if len(values) < 2:
            return f"{table.mean():+.1f}"
        low, high = bootstrap_interval(values)
        return f"{table.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


def parse_run(stem: str) -> tuple[str, int]:
    """Parse a system's name and seed from a file name."""
    name, _, seed = stem.rpartition("-")
    if stem not in SYSTEMS and seed.isdigit() and name in SYSTEMS and SYSTEMS[name].rival:
        return name, int(seed)
    return stem, 0


def _gain_with_interval(ours: Scores, theirs: Scores) -> dict[str, Any]:
    return {"gain": relative_gain(_score_pairs(ours, theirs)), "interval": gain_interval(ours, theirs)}


def relative_gain(pairs: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]]) -> float:
    """Return the mean over data sets of ``mean(ours) / mean(theirs) - 1``."""
    return float(np.mean([ours.mean() / theirs.mean() - 1 for ours, theirs in pairs]))


def gain_interval(ours: Scores, theirs: Scores) -> tuple[float, float] | None:
    """Return a 95% percentile bootstrap interval of :func:`relative_gain`.

    The bootstrap resamples seeds, jointly for all data sets because each training is measured on all of them, and draws
    within each data set. Both systems stay paired by seed and draw. Data sets are not resampled, so the interval
    describes only these data sets. With a single draw per run, it is the range of the gains over training runs.
    """
    pairs = _score_pairs(ours, theirs)
    (count,) = {len(scores) for scores, _ in pairs}
    if all(scores.shape[1] == 1 for scores, _ in pairs):
        run_gains = [relative_gain([(scores[row], base[row]) for scores, base in pairs]) for row in range(count)]
        return (min(run_gains), max(run_gains)) if count > 1 else None
    generator = np.random.default_rng(0)
    gains = np.empty(RESAMPLES)
    for number in range(RESAMPLES):
        rows = generator.integers(0, count, count)
        resampled = []
        for scores, base in pairs:
            cells = np.ix_(rows, generator.integers(0, scores.shape[1], scores.shape[1]))
            resampled.append((scores[cells], base[cells]))
        gains[number] = relative_gain(resampled)
    low, high = np.quantile(gains, [0.025, 0.975])
    return float(low), float(high)


def _score_pairs(ours: Scores, theirs: Scores) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    return [(np.asarray(ours[data], dtype=float), np.asarray(theirs[data], dtype=float)) for data in ours]
