"""Classification from frozen embeddings: of all labelled documents, and of a few (Tables 1 and 2, Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.models import run_name
from benchmarks.grid.sets import Labelled
from benchmarks.papers.mlp import HEADS
from benchmarks.records import TFIDF_INVERSE_L2
from simlte_st.evaluation import ProbeResult, few_shot_probe, fit_probe, tfidf_few_shot, tfidf_probe

FULL = "classification"
FEW = "few-shot"
CURVE = "curve"


def plan(grid: Grid, run: Run, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan the cells of a system. A point of the learning curve is a few-shot cell with another number of shots."""
    if run.system.ranks_only:
        return
    for data in grid.data.values():
        ablation = run.system.group == "ablations"
        chosen = grid.scale.ablation_data if ablation else None
        if not isinstance(data, Labelled) or (chosen is not None and data.name not in chosen):
            continue
        if FEW in experiments:
            yield few_shot(grid, run, data, data.shots)
        if FULL in experiments:
            yield full(grid, run, data)
        if CURVE in experiments and data.name == grid.scale.curve_data and not ablation:
            for shots in grid.scale.curve:
                yield few_shot(grid, run, data, shots)


def settings_of(grid: Grid, run: Run, data: Labelled) -> dict[str, Any]:
    """Return what decides the numbers: the embeddings and the head, or TF-IDF's documents."""
    if run.system.name == "tfidf":
        head = f"logistic, C={TFIDF_INVERSE_L2:g}"
        return {"system": grid.models.settings(run.system, run.seed), "data": data.identity, "head": head}
    return {**grid.models.embedding_settings(run.system, run.seed, data), "head": grid.scale.head}


def full(grid: Grid, run: Run, data: Labelled) -> Cell:
    """Plan the probe that learns from all documents of the training part."""

    def make() -> Mapping[str, Any]:
        if run.system.name == "tfidf":
            return scores([tfidf_probe(*columns(data), inverse_l2=TFIDF_INVERSE_L2)])
        return scores([fit_probe(*embedded(grid, run, data), fit=HEADS[grid.scale.head])])

    return Cell(
        f"results/{FULL}/{data.name}/{run_name(run.system, run.seed)}",
        settings_of(grid, run, data),
        make,
        run.system.name,
        f"{run.title}: {data.name}, all documents",
        told,
    )


def few_shot(grid: Grid, run: Run, data: Labelled, shots: int) -> Cell:
    """Plan the probe that learns from a few documents a class, drawn again and again."""
    draws = grid.scale.draws

    def make() -> Mapping[str, Any]:
        if run.system.name == "tfidf":
            return scores(tfidf_few_shot(*columns(data), inverse_l2=TFIDF_INVERSE_L2, shots=shots, draws=draws).draws)
        rows = embedded(grid, run, data)
        return scores(few_shot_probe(*rows, shots=shots, draws=draws, fit=HEADS[grid.scale.head]).draws)

    return Cell(
        f"results/{FEW}/{data.name}-{shots}/{run_name(run.system, run.seed)}",
        {**settings_of(grid, run, data), "shots": shots, "draws": draws},
        make,
        run.system.name,
        f"{run.title}: {data.name}, {shots} a class",
        told,
    )


def columns(data: Labelled) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return texts and labels to learn from, then those to score on."""
    return (
        data.texts(0, data.learn),
        data.labels[: data.learn],
        data.texts(data.learn),
        data.labels[data.learn :],
    )


def embedded(grid: Grid, run: Run, data: Labelled) -> tuple[np.ndarray, list[str], np.ndarray, list[str]]:
    """Return the same with embeddings in place of texts."""
    rows = grid.models.embeddings(run.system, run.seed, data)
    return rows[: data.learn], data.labels[: data.learn], rows[data.learn :], data.labels[data.learn :]


def scores(draws: Sequence[ProbeResult]) -> dict[str, list[float]]:
    """Return both scores of each draw."""
    return {"accuracy": [draw.accuracy for draw in draws], "macro_f1": [draw.macro_f1 for draw in draws]}


def told(result: Mapping[str, Any]) -> str:
    """Return a result as a line."""
    return f"macro-F1 {100 * np.mean(result['macro_f1']):.1f}"
