"""What ``[CLS]`` attends to by part of speech, before and after training (SimLTE, Figure 3 and Appendix C)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.grid.cells import Cell, Grid
from benchmarks.grid.sets import sampled
from benchmarks.grid.systems import DOCSPLIT, SIMCSE, SYSTEMS, WITHOUT_MLM, System
from benchmarks.papers.attention import write_attention_map
from benchmarks.papers.parts_of_speech import (
    AttentionResult,
    ClassAttention,
    Estimate,
    ModelAttention,
    document_attention,
    measure_attention,
)
from benchmarks.papers.tagging import SpacyTagger
from simlte_st.models.truncation import Truncation

NAME = "attention"
DATA = ("nyt", "bbc", "20news", "arxiv", "fakenews")
"""Data sets in the order of preference: the papers' is NYT."""


def plan(grid: Grid, experiments: Sequence[str], names: Collection[str], seeds: Sequence[int]) -> Iterator[Cell]:
    """Plan the one cell: base, SimCSE and DocSplit on documents of a data set, where all three are asked for.

    DocSplit is the one without MLM where that alone is; of the seeds it is the first.

    All three pool ``[CLS]``, whatever the scale's pooling: the ``[CLS]`` of a model that was trained on the mean of its
    tokens has been taught nothing.
    """
    data = next((grid.data[name] for name in DATA if name in grid.data), None)
    docsplit = DOCSPLIT if DOCSPLIT in names else WITHOUT_MLM
    if NAME not in experiments or data is None or not {"base-cls", SIMCSE, docsplit} <= set(names):
        return
    systems = [SYSTEMS["base-cls"], *(cls_pooled(SYSTEMS[name], grid) for name in (SIMCSE, docsplit))]
    seed = seeds[0]

    def make() -> Mapping[str, Any]:
        tagger = SpacyTagger(lemmas=False)
        models = {system.title: grid.models.encoder(system, seed).model for system in systems}
        documents = sampled(data, grid.scale.attention_documents)
        result = measure_attention(models, documents, tagger, max_seq_length=grid.scale.read)
        # The first document of some length, with its text: beside the cells, not in the results, as not every data
        # set may be passed on.
        shown = next((document for document in documents if len(document.text.split()) >= 60), documents[0])
        words = document_attention(models, shown.text, tagger, max_seq_length=min(grid.scale.read, 256))
        path = grid.work.folder / "figures" / "attention_map.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_attention_map(path, shown.text, words, f"Attention from [CLS]: {data.name}, document {shown.id}")
        found = result.to_dict()
        for model in found["models"].values():
            model["truncation"]["model"] = ""  # where it lies concerns nobody
        return found

    yield Cell(
        f"results/{NAME}/{data.name}",
        {
            "systems": {system.title: grid.models.settings(system, seed) for system in systems},
            "data": data.identity,
            "documents": grid.scale.attention_documents,
            "read": grid.scale.read,
        },
        make,
        NAME,
        f"attention on {data.name}",
    )


def cls_pooled(system: System, grid: Grid) -> System:
    """Return a system that pools ``[CLS]``: itself, where the scale does."""
    if grid.scale.pooling == "cls":
        return system
    if system.name == DOCSPLIT:
        return replace(SYSTEMS["ablation-pooling-cls"], title=system.title)
    return replace(system, name=f"{system.name}-cls", changes={**system.changes, "pooling": "cls"})


def result_of(cell: Mapping[str, Any]) -> AttentionResult:
    """Make the result again of what is in a cell."""

    def estimates(found: Mapping[str, Any]) -> dict[str, Estimate]:
        return {name: Estimate(**found[name]) for name in ("weight", "share")}

    models = {
        title: ModelAttention(
            **{
                **model,
                "truncation": Truncation(**model["truncation"]),
                "classes": {
                    kind: ClassAttention(found["documents"], found["words"], **estimates(found))
                    for kind, found in model["classes"].items()
                },
            }
        )
        for title, model in cell["models"].items()
    }
    changes = {
        title: {kind: Estimate(**found) for kind, found in kinds.items()} for title, kinds in cell["changes"].items()
    }
    return AttentionResult(models, changes, cell["layer"], cell["tagger"], cell["seed"])
