"""How often documents repeat nouns and verbs, by length (SimLTE, Equation 2, Table 3): of data sets, not systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from benchmarks.grid.cells import Cell, Grid
from benchmarks.grid.sets import CLASSIFICATION, LONG, Texts, sampled
from benchmarks.papers.redundancy import measure_redundancy
from benchmarks.papers.tagging import SpacyTagger

NAME = "redundancy"


def plan(grid: Grid, experiments: Sequence[str]) -> Iterator[Cell]:
    """Plan a cell for each data set of the papers and for the very long documents."""
    if NAME not in experiments:
        return
    for name in (*CLASSIFICATION, *LONG):
        if name in grid.data:
            yield of_data(grid, grid.data[name])


@cache
def tagger() -> SpacyTagger:
    """Load the tagger, once."""
    return SpacyTagger()


def of_data(grid: Grid, data: Texts) -> Cell:
    """Plan the cell of a data set."""

    def make() -> Mapping[str, Any]:
        documents = sampled(data, grid.scale.redundancy_documents)
        return measure_redundancy(documents, tagger()).to_dict()

    return Cell(
        f"results/{NAME}/{data.name}",
        {"data": data.identity, "documents": grid.scale.redundancy_documents},
        make,
        NAME,
        f"redundancy of {data.name}",
        lambda result: "" if result["all"]["mean"] is None else f"{result['all']['mean']:.2f}",
    )
