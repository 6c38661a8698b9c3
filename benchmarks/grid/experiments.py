"""The experiments, each of which computes the result of a system on a data set."""

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
"""Data sets for the attention experiment in order of preference; the papers use NYT."""

Cell = tuple[str, TextSet, Callable[[], Mapping[str, Any]]]
"""Path in the work folder, data set, and function that computes the result."""


@dataclass(frozen=True)
class Experiment:
    """A system on a data set, and the seed of its training."""

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
    """Yield all cells: first of untrained systems, then seed by seed, so that each model is loaded once."""
    order = [(0, system) for system in systems if not system.rival]
    order += [(seed, system) for seed in seeds for system in systems if system.rival]
    for seed, system in order:
        for text_set in data.values():
            run, ablation = Experiment(models, system, seed, text_set), system.group == "ablations"
            if text_set.learn and system.name != "bm25" and text_set.name not in system.trained_on:
                if not ablation or text_set.name in models.scale.ablation_data:
                    yield from classification_cells(run, names)
            elif text_set.name == CITATIONS and "citations" in names and not ablation:
                yield from citation_cells(run)
    if "redundancy" in names:
        for name in (*DATA, *LONG):
            if name in data:
                yield f"results/redundancy/{name}", data[name], lambda name=name: redundancy_result(models, data[name])  # type: ignore[misc]
    if "attention" in names:
        yield from attention_cells(models, data, {system.name for system in systems}, seeds[0])


def classification_cells(run: Experiment, names: Sequence[str]) -> Iterator[Cell]:
    """Probe frozen embeddings with a few labels per class and with all labels (DocSplit, Tables 1 and 2)."""
    scale, shots = run.models.scale, SHOTS.get(run.data.name, 5)

    def probe_inputs() -> tuple[tuple[Any, ...], dict[str, Any]]:
        if run.system.name == "tfidf":
            return tfidf_probe_parts(run.data), {"inverse_l2": TFIDF_INVERSE_L2}
        return probe_parts(run.data, run.vectors), {"fit": HEADS[scale.head]}

    def few_shot() -> Mapping[str, Any]:
        parts, settings = probe_inputs()
        return draw_scores(few_shot_probe(*parts, shots=shots, draws=scale.draws, **settings).draws)

    def full() -> Mapping[str, Any]:
        parts, settings = probe_inputs()
        return draw_scores([fit_probe(*parts, **settings)])

    if FEW in names:
        yield run.cell(FEW, few_shot, f"{run.data.name}-{shots}")
    if FULL in names:
        yield run.cell(FULL, full)


def probe_parts(data: TextSet, vectors: Any = None) -> tuple[Any, list[str], Any, list[str]]:
    """Return training texts (or vectors) and labels, then test texts and labels."""
    rows = data.texts() if vectors is None else vectors
    return rows[: data.learn], data.labels[: data.learn], rows[data.learn :], data.labels[data.learn :]


def tfidf_probe_parts(data: TextSet) -> tuple[Any, list[str], Any, list[str]]:
    """Return :func:`probe_parts` with TF-IDF vectors in place of texts."""
    train, train_labels, test, test_labels = probe_parts(data)
    train_vectors, test_vectors = tfidf_parts(train, test)
    return train_vectors, train_labels, test_vectors, test_labels


def draw_scores(draws: Sequence[ProbeResult]) -> dict[str, list[float]]:
    """Return accuracy and macro-F1 of each draw."""
    return {"accuracy": [draw.accuracy for draw in draws], "macro_f1": [draw.macro_f1 for draw in draws]}


def citation_cells(run: Experiment) -> Iterator[Cell]:
    """Retrieve cited papers and classify links (DocSplit, Figure 3); bags of words also read only the beginnings."""
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
    """Measure the repetition of nouns and verbs by document length (SimLTE, Table 3)."""
    return measure_redundancy(data.sample_texts(models.scale.redundancy_documents), SpacyTagger())


def attention_cells(models: Models, data: Mapping[str, TextSet], names: set[str], seed: int) -> Iterator[Cell]:
    """Measure the attention of ``[CLS]`` in base, SimCSE and DocSplit if all are selected (SimLTE, Figure 3)."""
    documents = next((data[name] for name in ATTENTION_DATA if name in data), None)
    system_names = ("base-cls", SIMCSE, DOCSPLIT if DOCSPLIT in names else WITHOUT_MLM)
    if documents is None or not names.issuperset(system_names):
        return

    def make() -> Mapping[str, Any]:
        encoders = {SYSTEMS[name].title: models.encoder(SYSTEMS[name], seed) for name in system_names}
        texts = documents.sample_texts(models.scale.attention_documents)
        return measure_attention(encoders, texts, SpacyTagger(lemmas=False), max_seq_length=models.scale.read)

    yield f"results/attention/{documents.name}", documents, make
