"""The experiments; each computes a number or a table for one system on one data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import citation
from benchmarks.grid.models import Models
from benchmarks.grid.printed import DATA
from benchmarks.grid.sets import CITATIONS, LONG, TextSet
from benchmarks.grid.systems import DOCSPLIT, SHOTS, SIMCSE, SYSTEMS, WITHOUT_MLM, System
from benchmarks.papers.citation_links import LRA_HEAD
from benchmarks.papers.mlp import HEADS
from benchmarks.papers.parts_of_speech import measure_attention
from benchmarks.papers.redundancy import measure_redundancy
from benchmarks.papers.tagging import SpacyTagger
from benchmarks.records import TFIDF_INVERSE_L2
from simlte_st.evaluation import ProbeResult, few_shot_probe, fit_probe, tfidf_parts

FEW, FULL = "few-shot", "classification"
CLASSIFICATION = (FEW, FULL)
EXPERIMENTS = (*CLASSIFICATION, "citations", "redundancy", "attention")
ATTENTION_DATA = ("nyt", "bbc", "20news", "arxiv", "fakenews")
"""Data sets in order of preference; the papers use NYT."""

Cell = tuple[str, TextSet, Callable[[], Mapping[str, Any]]]
"""Path in the work folder, data set, and the function that computes the result."""


@dataclass(frozen=True)
class Experiment:
    """A system on a data set, with the seed of its training if it is trained."""

    models: Models
    system: System
    seed: int
    data: TextSet

    def cell(self, experiment: str, make: Callable[[], Mapping[str, Any]], place: str = "", part: str = "") -> Cell:
        """Return a cell of an experiment."""
        name = f"results/{experiment}/{place or self.data.name}/{self.system.file_name(self.seed)}{part}"
        return name, self.data, make

    @property
    def vectors(self) -> np.ndarray:
        """The embeddings of the data set."""
        return self.models.embeddings(self.system, self.seed, self.data)


def plan(
    models: Models, data: Mapping[str, TextSet], systems: Sequence[System], seeds: Sequence[int], names: Sequence[str]
) -> Iterator[Cell]:
    """Yield all cells, ordered so that each model is loaded once: untrained systems first, then seed by seed."""
    order = [(0, system) for system in systems if not system.rival]
    order += [(seed, system) for seed in seeds for system in systems if system.rival]
    for seed, system in order:
        for each in data.values():
            run, ablation = Experiment(models, system, seed, each), system.group == "ablations"
            if each.learn and system.name != "bm25" and each.name not in system.trained_on:
                if not ablation or each.name in models.scale.ablation_data:
                    yield from classification_cells(run, names)
            elif each.name == CITATIONS and "citations" in names and not ablation:
                yield from citation_cells(run)
    if "redundancy" in names:
        for name in (*DATA, *LONG):
            if name in data:
                yield f"results/redundancy/{name}", data[name], lambda name=name: redundancy_result(models, data[name])  # type: ignore[misc]
    if "attention" in names:
        yield from attention_cells(models, data, {system.name for system in systems}, seeds[0])


def classification_cells(run: Experiment, names: Sequence[str]) -> Iterator[Cell]:
    """Probe frozen embeddings: with a few labels per class, and with all (DocSplit, Tables 1 and 2)."""
    scale, shots = run.models.scale, SHOTS.get(run.data.name, 5)
    few = {"shots": shots, "draws": scale.draws}

    def few_shot() -> Mapping[str, Any]:
        if run.system.name == "tfidf":
            return draw_scores(few_shot_probe(*tfidf_probe_parts(run.data), inverse_l2=TFIDF_INVERSE_L2, **few).draws)
        return draw_scores(few_shot_probe(*probe_parts(run.data, run.vectors), fit=HEADS[scale.head], **few).draws)

    def full() -> Mapping[str, Any]:
        if run.system.name == "tfidf":
            return draw_scores([fit_probe(*tfidf_probe_parts(run.data), inverse_l2=TFIDF_INVERSE_L2)])
        return draw_scores([fit_probe(*probe_parts(run.data, run.vectors), fit=HEADS[scale.head])])

    if FEW in names:
        yield run.cell(FEW, few_shot, f"{run.data.name}-{shots}")
    if FULL in names:
        yield run.cell(FULL, full)


def probe_parts(data: TextSet, vectors: Any = None) -> tuple[Any, list[str], Any, list[str]]:
    """Return training texts (or vectors) and labels, then the test ones."""
    rows = data.texts() if vectors is None else vectors
    return rows[: data.learn], data.labels[: data.learn], rows[data.learn :], data.labels[data.learn :]


def tfidf_probe_parts(data: TextSet) -> tuple[Any, list[str], Any, list[str]]:
    """Return :func:`parts` with TF-IDF vectors in place of texts."""
    learned, labels, scored, answers = probe_parts(data)
    first, second = tfidf_parts(learned, scored)
    return first, labels, second, answers


def draw_scores(draws: Sequence[ProbeResult]) -> dict[str, list[float]]:
    """Return both scores of each draw."""
    return {"accuracy": [draw.accuracy for draw in draws], "macro_f1": [draw.macro_f1 for draw in draws]}


def citation_cells(run: Experiment) -> Iterator[Cell]:
    """Retrieve cited papers and classify links (DocSplit, Figure 3); bags of words also read just the beginning."""
    links, texts = run.data.links, run.data.texts
    assert links is not None
    seeds = range(run.models.scale.link_seeds)
    if run.system.embeds:
        fit = LRA_HEAD if run.models.scale.head == "mlp" else None
        yield run.cell("citations", lambda: citation.measure_embeddings(run.vectors, links, seeds, fit=fit))
        return
    title = run.system.title
    yield run.cell("citations", lambda: citation.measure_words(title, texts(), links, seeds))
    first = f"{title}, first {citation.WORDS} words"
    make = lambda: citation.measure_words(first, texts(), links, seeds)  # noqa: E731
    yield run.cell("citations", make, part=f"-{citation.WORDS}")


def redundancy_result(models: Models, data: TextSet) -> Mapping[str, Any]:
    """Measure how often documents repeat nouns and verbs, by length (SimLTE, Table 3)."""
    return measure_redundancy(data.sample_texts(models.scale.redundancy_documents), SpacyTagger())


def attention_cells(models: Models, data: Mapping[str, TextSet], names: set[str], seed: int) -> Iterator[Cell]:
    """Measure the attention of ``[CLS]`` in base, SimCSE and DocSplit (SimLTE, Figure 3) if all three are selected."""
    documents = next((data[name] for name in ATTENTION_DATA if name in data), None)
    wanted = ("base-cls", SIMCSE, DOCSPLIT if DOCSPLIT in names else WITHOUT_MLM)
    if documents is None or not names.issuperset(wanted):
        return

    def make() -> Mapping[str, Any]:
        encoders = {SYSTEMS[name].title: models.encoder(SYSTEMS[name], seed) for name in wanted}
        texts = documents.sample_texts(models.scale.attention_documents)
        return measure_attention(encoders, texts, SpacyTagger(lemmas=False), max_seq_length=models.scale.read)

    yield f"results/attention/{documents.name}", documents, make
