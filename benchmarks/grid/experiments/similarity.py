"""Document similarity against people's judgement: the Lee corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.bm25 import Bm25Scores
from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.models import run_name
from benchmarks.grid.sets import SIMILARITY, Judged, digest
from benchmarks.papers.document_similarity import document_similarity
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores

NAME = "similarity"


def plan(grid: Grid, run: Run, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan the cell of a system."""
    data = grid.data.get(SIMILARITY)
    if NAME not in experiments or run.system.group == "ablations" or not isinstance(data, Judged):
        return
    pairs = data.pairs
    assert pairs is not None

    def make() -> Mapping[str, Any]:
        if run.system.embeds:
            scores: PairScores = CosineScores(grid.models.embeddings(run.system, run.seed, data))
        else:
            scores = TfidfScores(data.texts()) if run.system.name == "tfidf" else Bm25Scores(data.texts())
        return document_similarity(scores, pairs.pairs, pairs.scores).metrics()

    if run.system.embeds:
        settings = grid.models.embedding_settings(run.system, run.seed, data)
    else:
        settings = {"system": grid.models.settings(run.system, run.seed), "data": data.identity}
    yield Cell(
        f"results/{NAME}/{data.name}/{run_name(run.system, run.seed)}",
        {**settings, "judged": digest(pairs.scores.tolist())},
        make,
        run.system.name,
        f"{run.title}: document similarity",
        lambda result: f"Pearson {result['pearson']:.3f}",
    )
