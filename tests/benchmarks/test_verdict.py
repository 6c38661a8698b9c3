from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import make_document

from benchmarks import verdict
from benchmarks.bank import documents, make, page, recipes
from benchmarks.bank.judge import MEASURES, RETRIEVAL, SIMILARITIES, STRUCTURE, judge, measures
from benchmarks.bank.make import HeldOutVectors
from benchmarks.bank.outcomes import CITES, FEW, FULL, outcomes
from benchmarks.bank.page import PRESET, gains, probabilities, record
from benchmarks.bank.sets import BankSet, display_name, load_set
from benchmarks.bank.static import StaticRecipe
from benchmarks.bank.trust import coefficients, label_outcome, left_out, regression, select_kind, set_name
from benchmarks.grid.work import Work
from benchmarks.records import RESULTS
from simlte_st.data import Document
from simlte_st.evaluation.halves import neighbours_by_words
from simlte_st.evaluation.verdict import RECORD_FILE, in_errors
from simlte_st.files import read_json
from simlte_st.training import get_preset


def made(noise: float, seed: int = 1) -> tuple[HeldOutVectors, list[list[str]], list[str]]:
    """Documents of six topics; vectors and words show the topic, more or less clearly."""
    generator = np.random.default_rng(seed)
    topics = np.arange(120) % 6
    places = np.random.default_rng(0).normal(size=(6, 16))[topics]
    rows = [places + noise * generator.normal(size=places.shape) for _ in range(3)]
    rows = [(part / np.linalg.norm(part, axis=1, keepdims=True)).astype(np.float32) for part in rows]
    words = [[f"word{topic}x{generator.integers(8)}" for topic in topics for _ in range(6)] for _ in range(2)]
    halves = [[" ".join(side[6 * row : 6 * row + 6]) for row in range(120)] for side in words]
    return HeldOutVectors(*rows), halves, [str(topic) for topic in topics]


def test_measures_prefer_vectors_that_separate_topics() -> None:
    found = []
    for noise in (0.3, 3.0):
        vectors, halves, _ = made(noise)
        found.append(measures(vectors, neighbours_by_words(*halves), static=True))
    assert set(found[0]) == {*MEASURES, SIMILARITIES}
    assert all(np.mean(found[0][name]) > np.mean(found[1][name]) for name in found[0])


def test_outcomes_follow_labels_and_links() -> None:
    for noise, low, high in ((0.1, 0.95, 1.0), (20.0, 0.0, 0.4)):
        vectors, _, labels = made(noise)
        data = BankSet("made", [], [Document(str(row), "text") for row in range(120)], labels)
        found = outcomes(data, vectors.whole)
        assert (len(found[FEW]), len(found[FULL])) == (30, 10)
        assert all(low <= np.mean(values) <= high for values in found.values())
    links = np.array([[row, (row + 6) % 120] for row in range(120)])
    found = outcomes(BankSet("cited", [], [], links=links), made(0.3)[0].whole)
    assert 0 < np.mean(found[CITES]) < 1


def entry(recipe: str, value: float, label: float, clear: bool = True, **candidates: float) -> dict[str, Any]:
    """An encoder whose measures are all ``value``, except the named ones; split-half retrieval is neutral."""

    def number(mean: float) -> dict[str, float]:
        margin = 0.01 if clear else 1.0
        return {"value": 0.5 + mean, "difference": mean, "low": mean - margin, "high": mean + margin}

    judged = {"outcomes": {FEW: number(label), FULL: number(label)}}
    values = {**dict.fromkeys(MEASURES, value), RETRIEVAL: 0.0, **candidates}
    numbers = {name: number(each) for name, each in values.items()}
    return {"recipe": recipe, "seed": 0, "stage": "", **judged, "candidates": numbers}


def test_disagreeing_labels_are_unclear() -> None:
    judged = [entry("base", 0, 0), entry("a", 0.1, 0.2), entry("b", -0.1, 0.3), entry("c", -0.2, -0.1, False)]
    assert [label_outcome(item) for item in judged] == [0, 1, 1, 0]
    torn = entry("d", 0, 0.1)
    torn["outcomes"][FULL] = entry("e", 0, -0.1)["outcomes"][FULL]
    assert label_outcome(torn) == 0
    assert label_outcome(judged[1], {FEW: 30, FULL: 30}) == 0
    assert label_outcome(judged[1], {FEW: 1, FULL: 30}) == 1


def judged_by_chance(misled: str = "") -> dict[str, list[dict[str, Any]]]:
    """Two sets; structure agrees with the labels, or contradicts them on a misleading set."""
    every = {}
    for name in ("20news", "bbc"):
        sign = -1 if name == misled else 1
        values = [(number % 5 - 2) / 100 for number in range(20)]
        labels = [0.1 * sign if value > 0 else -0.1 * sign for value in values]
        every[name] = [entry("base", 0, 0), *(entry("crop", *pair) for pair in zip(values, labels, strict=True))]
    return every


def test_record_counts_encoders_by_outcome() -> None:
    judged = judged_by_chance()
    made = record(judged)
    assert (made["sets"], made["encoders"]) == (2, 40)
    assert made["regression"]["weights"][0] > 0
    counted = {word: sum(each[word] for each in made["calibration"]) for word in ("better", "unclear", "worse")}
    assert counted == {"better": 16, "unclear": 0, "worse": 24}
    assert page.left_out_cells("data set left out", left_out(judged, set_name))["encoders"]["all"] == "40"


def test_coefficients_reproduce_the_regression() -> None:
    every = [item for entries in judged_by_chance().values() for item in entries[1:]]
    fitted = coefficients(every)
    for item in every[:5]:
        numbers = [item["candidates"][name] for name in MEASURES]
        errors = [in_errors(each["difference"], each["low"], each["high"]) for each in numbers]
        odds = fitted["intercept"] + float(np.dot(fitted["weights"], errors))
        expected = regression(every).predict_proba([errors])[0, 1]
        assert 1 / (1 + np.exp(-odds)) == pytest.approx(expected, abs=1e-3)


def test_regression_is_fitted_without_the_judged_part() -> None:
    judged = judged_by_chance(misled="bbc")
    for each in left_out(judged, set_name):
        structure = each.entry["candidates"][STRUCTURE]["difference"]
        if structure:
            # It learned from the other set.
            assert (each.probability > 0.5) == ((structure > 0) == (each.part == "bbc"))
    assert set(probabilities(judged)) == {id(item) for entries in judged.values() for item in entries[1:]}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    rows = [{"text": make_document(number), "label": "ab"[number % 2]} for number in range(80)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "brown_genres.parquet")
    return tmp_path


def test_static_base_takes_only_static_recipes(
    shared: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipes.RECIPES["static docsplit"]
    assert isinstance(recipe, StaticRecipe)
    short = {"static docsplit": replace(recipe, batch=8, passes=1), "crop": recipes.RECIPES["crop"]}
    monkeypatch.setattr(make, "RECIPES", short)
    data = load_set("brown", shared / "brown_genres.parquet", train=30, held=24)
    bank = make.Bank(Work(tmp_path / "work"), {"brown": data}, 1, False, str(static_path))
    bank.make("brown", list(short), [0])
    made = {(recipe, stage): vectors for recipe, _, stage, vectors in bank.entries("brown")}
    assert {recipe for recipe, _ in made} == {"base", "static docsplit"}
    assert bank.is_static("brown")
    before, after = (made[key].whole for key in (("base", ""), ("static docsplit", "")))
    assert np.abs(before - after).max() > 1e-3
    judged = {display_name("brown", "static"): judge(bank, "brown")}
    assert select_kind(judged, True) == judged
    assert select_kind(judged, False) == {}
    assert SIMILARITIES in judged["brown, static"][0]["candidates"]


def test_static_regression_has_no_intercept() -> None:
    values = [(number % 5 - 2) / 100 for number in range(40)]
    every = [entry("static docsplit", 0.1, value, **{SIMILARITIES: value}) for value in values]
    fitted = coefficients(every)
    assert fitted["intercept"] == 0
    [weight] = fitted["weights"]
    assert weight > 0
    judgements = left_out({"20news, s": every[:20], "bbc, s": every[20:]}, set_name)
    labels = [(each.probability > 0.5, label_outcome(each.entry)) for each in judgements]
    assert all(likely == (label == 1) for likely, label in labels if label)


def test_bank_is_made_once_and_reported(
    shared: Path, encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    for name, value in (("READ", 48), ("HALF", 22)):
        monkeypatch.setattr(make, name, value)
    short = {"tuned": replace(recipes.RECIPES["tuned"], tokens=24, rank=2), "docsplit-cls": recipes.Recipe(tokens=24)}
    attention = "docsplit, token attention, reconstruction"
    short[attention] = replace(recipes.RECIPES[attention], tokens=24)
    monkeypatch.setattr(make, "RECIPES", {**recipes.RECIPES, **short})
    command = f"--shared {shared} --work {tmp_path / 'work'} --results {tmp_path / 'results'} --data brown sotu".split()
    command += ["--recipes", "tuned", "docsplit-cls", attention]
    command += f"--steps 3 --train-documents 30 --held-out 30 --base {encoder_path}".split()
    (tmp_path / "results").mkdir()
    verdict.main(command)
    out = capsys.readouterr().out
    assert "Skipped sotu: " in out
    assert "tuned, seed 0" in out
    text = (tmp_path / "results" / "verdict.md").read_text()
    name = display_name("brown", str(encoder_path))
    assert f"## {name}" in text
    numbers = read_json(tmp_path / "results" / "recipe.json")
    trained = {"tuned", "tuned, half way", "docsplit-cls", "docsplit-cls, half way", attention}
    made = gains(read_json(tmp_path / "results" / "verdict.json")["judged"], {})
    assert set(made["recipe"]) == {"base-cls", *trained}
    assert numbers["words"][name].keys() == {FEW, FULL}
    documents.main([*command[: command.index("--recipes")], "--train-documents", "30", "--held-out", "30"])
    found = read_json(tmp_path / "results" / documents.FILE)
    assert len(found["encoders"]) == 8, "all but the base"
    assert found["wider"][FEW] > 0
    verdict.main(command)
    assert "seed 0:" not in capsys.readouterr().out, "nothing is made twice"
    with pytest.raises(SystemExit, match="steps 3, now 4"):
        verdict.main([*command, "--steps", "4"])
    command.remove(attention)
    another = [item if item != "docsplit-cls" else "tsdae" for item in command]
    another[another.index(str(tmp_path / "work"))] = str(tmp_path / "another")
    verdict.main([*another, "--seeds", "1", "--earlier", str(tmp_path / "results" / "verdict.json")])
    made = gains(read_json(tmp_path / "results" / "verdict.json")["judged"], {})
    assert made[made["outcome"] == FEW].groupby("recipe").size().to_dict() == {
        "base-cls": 1, "docsplit-cls": 1, "docsplit-cls, half way": 1, "tuned": 2, "tuned, half way": 2,
        "tsdae": 1,
        attention: 1,
    }  # fmt: skip
    assert " ± " in (tmp_path / "results" / "recipe.md").read_text()


def test_preset_matches_its_recipe() -> None:
    recipe, preset = recipes.RECIPES[PRESET], get_preset("docsplit-tuned")
    assert isinstance(recipe, recipes.Recipe)
    assert (recipe.view, 1 / recipe.temperature, recipe.learning_rate) == (
        preset.view, preset.scale, preset.learning_rate
    )  # fmt: skip
    assert (recipe.contrast, recipe.teacher, recipe.dropout) == (1.0, 0.0, preset.dropout)
    assert (recipes.BATCH, preset.mlm_weight) == (preset.batch_size, 0.0)


def test_package_record_and_pages_match_the_results(tmp_path: Path) -> None:
    assert read_json(RECORD_FILE) == record(read_json(RESULTS / "verdict.json")["judged"])
    found, words = read_json(RESULTS / "verdict.json"), read_json(RESULTS / "recipe.json")
    page.write_pages(found["judged"], words["words"], words, tmp_path)
    for name in ("verdict.md", "recipe.md"):
        assert (tmp_path / name).read_text(encoding="utf-8") == (RESULTS / name).read_text(encoding="utf-8")
