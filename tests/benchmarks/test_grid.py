"""The grid's parts, one by one; the whole is in test_paper.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from datasets import Dataset

from benchmarks.grid import tables
from benchmarks.grid.experiments import classification
from benchmarks.grid.results import Results, run_of
from benchmarks.grid.scales import SCALES
from benchmarks.grid.sets import Labelled, draw
from benchmarks.grid.systems import ABLATIONS, DOCSPLIT, SIMCSE, SYSTEMS, chosen_systems, preset_of, steps_of
from benchmarks.grid.views import FrozenView, WordSplit
from benchmarks.grid.work import Busy, Work
from benchmarks.rivals import RIVALS
from simlte_st.data import DocSplit
from simlte_st.data.document import SegmentedDocument
from simlte_st.data.drawing import draw_views
from simlte_st.files import write_json
from simlte_st.training import Preset

TEXT = SegmentedDocument("one", ("A b c d.", "E f g h.", "I j.", "K l m n o."), (0, 2), (5, 5, 3, 6))


@pytest.mark.parametrize("scale", SCALES.values(), ids=list(SCALES))
@pytest.mark.parametrize("system", ABLATIONS, ids=[system.name for system in ABLATIONS])
def test_an_ablation_changes_one_thing(system: Any, scale: Any) -> None:
    against = SYSTEMS[system.against]
    ours, theirs = preset_of(system, scale), preset_of(against, scale)
    changed = {item.name for item in fields(Preset) if getattr(ours, item.name) != getattr(theirs, item.name)}
    changed |= {"corpus_share"} if system.corpus_share != against.corpus_share else set()
    if system in chosen_systems(scale, None):
        assert len(changed) == 1
    else:
        assert changed == set(), "what changes nothing is not measured"
        assert system.name in (f"ablation-pooling-{scale.pooling}", f"ablation-batch-{scale.batch_size}")
    documents = [steps_of(each, scale, 3600) * preset_of(each, scale).batch_size for each in (system, against)]
    assert documents[0] == pytest.approx(documents[1], rel=0.5 if scale.name == "tiny" else 0.05) or (
        scale.name == "tiny" and "batch" in system.name
    ), "the budget of documents is the same"


def test_objectives_differ_in_what_they_shall() -> None:
    scale = SCALES["cpu"]

    def changed(name: str) -> set[str]:
        ours, theirs = preset_of(SYSTEMS[name], scale), preset_of(SYSTEMS[DOCSPLIT], scale)
        return {item.name for item in fields(Preset) if getattr(ours, item.name) != getattr(theirs, item.name)}

    assert {name for name, system in SYSTEMS.items() if system.group == "trained"} >= set(RIVALS)
    assert changed(DOCSPLIT) == set()
    assert changed("docsplit-no-mlm") == changed(SIMCSE) == {"mlm_weight"}
    assert changed("simcse-mlm") == set(), "the view and the dropout are the objective's own"
    assert preset_of(SYSTEMS[SIMCSE], scale).mlm_weight == 0
    assert changed("contrastive-tension") == {"batch_size"}
    assert preset_of(SYSTEMS["contrastive-tension"], scale).batch_size % 8 == 0


def test_probes_learn_from_one_part_and_are_scored_on_the_other() -> None:
    data = Labelled("abc", Dataset.from_dict({"text": ["a", "b", "c"], "label": ["x", "y", "z"]}), learn=2)
    assert classification.columns(data) == (["a", "b"], ["x", "y"], ["c"], ["z"])
    grid, run = MagicMock(), MagicMock()
    grid.models.embeddings.return_value = np.arange(3)
    learned, labels, scored, answers = classification.embedded(grid, run, data)
    assert (learned.tolist(), labels, scored.tolist(), answers) == ([0, 1], ["x", "y"], [2], ["z"])


def test_systems_are_chosen_by_name_and_group() -> None:
    names = [system.name for system in chosen_systems(SCALES["cpu"], ["docsplit", "untrained"])]
    assert names == ["tfidf", "bm25", "base-cls", "base-mean", "chunk-mean", "docsplit"]
    assert all(system.group != "hub" for system in chosen_systems(SCALES["cpu"], None))
    assert any(system.group == "hub" for system in chosen_systems(SCALES["gpu"], None))
    assert SYSTEMS["instructor"].contaminated("20news")
    assert not SYSTEMS["instructor"].contaminated("bbc")


def test_frozen_splits_are_the_same_in_every_epoch() -> None:
    fresh = {draw_views(TEXT, DocSplit(), seed=3, epoch=epoch).anchor for epoch in range(12)}
    frozen = {draw_views(TEXT, FrozenView(DocSplit(), 3), seed=3, epoch=epoch) for epoch in range(12)}
    assert len(fresh) > 1
    assert frozen == {draw_views(TEXT, DocSplit(), seed=3, epoch=0)}
    frozen_presets = [preset_of(SYSTEMS["ablation-epochs-frozen"], SCALES["cpu"], seed).view for seed in (0, 1)]
    assert frozen_presets == [FrozenView(DocSplit(), 0), FrozenView(DocSplit(), 1)]


def test_words_are_dealt_to_two_views() -> None:
    everything = Counter(" ".join(TEXT.sentences).split())
    seen = set()
    for epoch in range(12):
        pair = draw_views(TEXT, WordSplit(), epoch=epoch)
        assert Counter(pair.anchor.split()) + Counter(pair.positive.split()) == everything
        assert pair.anchor
        assert pair.positive
        seen.add(pair.anchor)
    assert len(seen) > 6
    single = replace(TEXT, sentences=("A b.",), paragraphs=(0,), tokens=(2,))
    assert WordSplit().accepts(single)
    assert not WordSplit().accepts(replace(TEXT, sentences=("A",), paragraphs=(0,), tokens=(1,)))
    first, second = WordSplit().draw(TEXT, 1, Random(0))
    assert first
    assert second


def test_documents_are_drawn_by_class() -> None:
    labels = ["a"] * 600 + ["b"] * 300 + ["c"] * 100 + ["d"] * 3
    drawn = draw(labels, 100, 1)
    assert drawn == sorted(set(drawn)) == draw(labels, 100, 1)
    assert len(drawn) == 100
    counts = Counter(labels[index] for index in drawn)
    assert [counts[label] for label in "abcd"] == pytest.approx([60, 30, 10, 1], abs=1)
    counts = Counter(labels[index] for index in draw(labels, 100, 20))
    assert counts["c"] >= 20
    assert counts["d"] == 3
    assert draw(labels[:5], 100, 1) == draw(labels[:5], None, 1) == [0, 1, 2, 3, 4]


def test_a_cell_is_one_process_s(tmp_path: Path) -> None:
    work = Work(tmp_path)
    with work.claim("a/b"):
        with pytest.raises(Busy), Work(tmp_path).claim("a/b"):
            pass
        with Work(tmp_path).claim("a/c"):
            pass
    with Work(tmp_path).claim("a/b"):
        pass


def test_names_of_files_tell_systems_and_seeds() -> None:
    assert run_of("docsplit-2") == ("docsplit", 2)
    assert run_of("docsplit-no-mlm-0") == ("docsplit-no-mlm", 0)
    assert run_of("ablation-batch-12-1") == ("ablation-batch-12", 1)
    assert run_of("base-mean") == ("base-mean", 0)
    assert run_of("tfidf-250") == ("tfidf-250", 0)


def test_gains_and_differences_from_known_numbers(tmp_path: Path) -> None:
    scores = {
        # In the mean over draws and the two seeds that both have: 0.6 against 0.5, and 0.45 against 0.5.
        "docsplit": {"bbc": {0: [0.5, 0.6], 1: [0.6, 0.7]}, "20news": {0: [0.45, 0.45], 1: [0.45, 0.45]}},
        "simcse": {"bbc": {0: [0.4, 0.5], 1: [0.5, 0.6], 2: [0.9, 0.9]},
                   "20news": {0: [0.5, 0.5], 1: [0.5, 0.5], 2: [0.9, 0.9]}},
        "docsplit-no-mlm": {"bbc": {0: [0.48, 0.59]}},
    }  # fmt: skip
    for system, sets in scores.items():
        for data, seeds in sets.items():
            for seed, values in seeds.items():
                cell = {"settings": {}, "result": {"macro_f1": values, "accuracy": values}, "environment": {}}
                write_json(tmp_path / "results" / "few-shot" / f"{data}-5" / f"{system}-{seed}.json", cell)
    settings = {"shots": {}, "ablation_data": None, "curve_data": "20news", "preset": "docsplit-bert"}
    results = Results(Work(tmp_path), settings)
    gain = results.gain("few-shot", DOCSPLIT, SIMCSE)
    assert gain is not None
    assert gain["seeds"] == [0, 1]
    assert gain["gain"] == pytest.approx((0.2 - 0.1) / 2)
    assert {data: each["gain"] for data, each in gain["of_each"].items()} == pytest.approx({"bbc": 0.2, "20news": -0.1})
    assert gain["interval"][0] <= gain["gain"] <= gain["interval"][1]
    line = next(
        line for line in tables.gain_table(tables.gains(results)).splitlines() if line.startswith("| DocSplit ")
    )
    assert "+5.0% [" in line
    assert "| 2 | 2 |" in " ".join(line.split()), "data sets and seeds"
    by_data = tables.gain_by_data_table(tables.gains(results)).splitlines()
    # Printed: 86.31 over 83.75, and 55.43 over 41.42.
    assert any("| bbc " in line and "+20.0% [" in line and "(+3.1%)" in line for line in by_data)
    assert any("| 20news " in line and "-10.0%" in line and "(+33.8%)" in line for line in by_data)
    longformer = Results(Work(tmp_path), {**settings, "preset": "docsplit-longformer"})
    of = tables.architecture(longformer)
    assert "+24.3%" in tables.gain_table(tables.gains(longformer), of), "the other headline: over LongFormer"
    assert tables.gain_by_data_table(tables.gains(longformer), of) == "", "which nothing here was compared with"
    assert results.gain("classification", DOCSPLIT, SIMCSE) is None
    found = {each["name"]: each for each in tables.ablations(results)}
    mean, interval = found["docsplit-no-mlm"]["few-shot"]["bbc"]
    assert mean == pytest.approx(-1.5)
    assert interval == pytest.approx((-2.0, -1.0))
    assert "-1.5 [-2.0, -1.0]" in tables.ablation_table(list(found.values()))
