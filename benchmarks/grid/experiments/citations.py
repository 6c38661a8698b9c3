"""Citations among papers: retrieval of the cited ones, and link or no link from two embeddings (DocSplit, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.bm25 import Bm25Scores
from benchmarks.citation import ENGLISH, SPLITS, WORDS, KnownScores, measure
from benchmarks.grid.cells import Cell, Grid, Run
from benchmarks.grid.models import run_name
from benchmarks.grid.sets import CITATIONS, Papers
from benchmarks.papers.citation_links import LRA_HEAD, citation_link_probe
from benchmarks.papers.link_pairs import LinkPairs, link_pairs
from simlte_st.evaluation import CosineScores, PairScores, TfidfScores

NAME = "citations"

Tasks = dict[str, list[tuple[LinkPairs, LinkPairs]]]


def plan(grid: Grid, run: Run, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan the cells of a system: one, or two for a bag of words, which also reads the beginning only."""
    data = grid.data.get(CITATIONS)
    if NAME not in experiments or run.system.group == "ablations" or not isinstance(data, Papers):
        return
    if run.system.embeds:
        yield embedded(grid, run, data)
    else:
        yield from (lexical(grid, run, data, words) for words in (None, WORDS))


def embedded(grid: Grid, run: Run, data: Papers) -> Cell:
    """Plan retrieval by the cosine, and link classification with the head of the Long Range Arena."""

    def make() -> Mapping[str, Any]:
        rows = grid.models.embeddings(run.system, run.seed, data)
        tasks, head = make_tasks(grid, data), LRA_HEAD if grid.scale.head == "mlp" else None
        heads = {
            split: [
                citation_link_probe(rows, train, test, fit=head, seed=seed).accuracy
                for seed, (train, test) in enumerate(pairs)
            ]
            for split, pairs in tasks.items()
        }
        return {**measured(CosineScores(rows), data, tasks), "head": heads}

    settings = {
        **grid.models.embedding_settings(run.system, run.seed, data),
        **link_settings(grid, data),
        "head": grid.scale.head,
    }
    return Cell(
        f"results/{NAME}/{data.name}/{run_name(run.system, run.seed)}",
        settings,
        make,
        run.system.name,
        f"{run.title}: citations",
        told,
    )


def lexical(grid: Grid, run: Run, data: Papers, words: int | None) -> Cell:
    """Plan the same for a bag of words, without a head."""

    def make() -> Mapping[str, Any]:
        texts = [" ".join(text.split()[:words]) if words else text for text in data.texts()]
        kind: PairScores = TfidfScores(texts, **ENGLISH) if run.system.name == "tfidf" else Bm25Scores(texts)
        scores = KnownScores(kind, np.unique(data.links[:, 0]), np.unique(data.links[:, 1]))
        return measured(scores, data, make_tasks(grid, data))

    part = f"-{words}" if words else ""
    settings = {
        "system": grid.models.settings(run.system, run.seed),
        "data": data.identity,
        "words": words,
        **link_settings(grid, data),
    }
    return Cell(
        f"results/{NAME}/{data.name}/{run.system.name}{part}",
        settings,
        make,
        run.system.name,
        f"{run.title}{f', first {words} words' if words else ''}: citations",
        told,
    )


def link_settings(grid: Grid, data: Papers) -> dict[str, Any]:
    """Return what decides the tasks."""
    return {"links": data.links_sha256, "link_seeds": grid.scale.link_seeds, "negatives": "rewired"}


def make_tasks(grid: Grid, data: Papers) -> Tasks:
    """Make pairs with and without a link, divided by links and by papers, once a seed."""
    return {
        split: [
            link_pairs(data.links, split=split, negatives="rewired", seed=seed, **more)  # type: ignore[arg-type]
            for seed in range(grid.scale.link_seeds)
        ]
        for split, more in SPLITS.items()
    }


def measured(scores: PairScores, data: Papers, tasks: Tasks) -> dict[str, Any]:
    """Measure retrieval, and link classification by a threshold."""
    found = measure(scores, data.links, tasks)
    return {name: value for name, value in found.items() if name != "environment"}


def told(result: Mapping[str, Any]) -> str:
    """Return a result as a line."""
    return f"R@10 {100 * result['retrieval']['recall@10']:.1f}"
