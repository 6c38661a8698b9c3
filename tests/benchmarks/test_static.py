from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_sets_support import write_toy_sets

from benchmarks import static, static_page
from benchmarks.bank.outcomes import FEW, FULL
from benchmarks.static_page import (
    ADAPTED_256,
    AT_256,
    DISTILLED,
    LSA,
    ROWS,
    SHIPPED,
    TFIDF,
    TRAINED,
    TRAINED_LSA,
    WHOLE,
)
from simlte_st.files import read_json
from simlte_st.models.base import load_model


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Documents of two kinds, papers, and sentences."""
    folder = tmp_path / "shared"
    write_toy_sets(folder, sentences=2)
    return folder


def test_all_rows_of_a_toy_and_what_is_finished_is_not_made_again(
    shared: Path, encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    trained: list[dict[str, Any]] = []

    def train(documents: Any, output: str, **settings: Any) -> Any:
        trained.append(settings)
        base = static_path if settings["static"] else encoder_path
        return train_for_real(documents, output, base=base, max_steps=2, batch_size=16, **settings)

    train_for_real: Callable[..., Any] = static.train
    monkeypatch.setattr(static, "train", train)
    monkeypatch.setattr(static, "fixed", partial(fixed, encoder_path, static_path))
    monkeypatch.setattr(static, "PACKAGED_BASE", str(encoder_path))
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    out = tmp_path / "out"
    out.mkdir()
    command = [
        "--shared", str(shared), "--work", str(tmp_path / "work"), "--output", str(out), "--documents", "40",
        "--held-out", "40", "--seeds", "2", "--sets", "brown", "arxiv", "aan",
    ]  # fmt: skip
    static.main(command)
    assert "Skipped arxiv: there is no" in capsys.readouterr().out
    found = read_json(out / "static.json")
    brown, papers = found["results"]["brown"], found["results"]["aan"]
    assert set(brown) == set(ROWS)
    assert set(papers) == {TFIDF, LSA, DISTILLED, SHIPPED, TRAINED, TRAINED_LSA}, "encoders' are those of models.md"
    measured = {row: len(each) for row, each in brown.items() if not any("kept" in one for one in each)}
    assert measured == {row: 2 if row in (TRAINED, TRAINED_LSA) else 1 for row in ROWS if row != ADAPTED_256}
    assert [each["static"] for each in trained] == [True, True, True, False], "two seeds, the papers, the encoder"
    assert all(each["held_out"] == 0 and each["keep"] == "trained" for each in trained)
    assert all(0 <= each[key] <= 1 for values in brown.values() for each in values for key in (FEW, FULL))
    assert brown[TRAINED][0][FEW] != brown[TRAINED_LSA][0][FEW]
    assert brown[TRAINED][0]["training"] > 0
    assert found["sets"]["brown"]["documents"] == 80

    page = (out / "static.md").read_text(encoding="utf-8")
    assert all(f"| {row} " in page for row in ROWS)
    assert f"{100 * papers[SHIPPED][0]['recall@10']:.1f}" in page
    assert f"{100 * np.mean([each[FEW] for each in brown[TRAINED]]):.1f} ±" in page
    static.main(command)
    assert len(trained) == 4


def fixed(encoder_path: Path, static_path: Path, row: str) -> Any:
    return load_model(encoder_path if row in (AT_256, WHOLE) else static_path, dtype=torch.float32).model


def results(gains: dict[str, float]) -> dict[str, Any]:
    return {
        name: {ADAPTED_256: [{FEW: 0.5, FULL: 0.5}], TRAINED_LSA: [{FEW: 0.5 + gain, FULL: 0.5}]}
        for name, gain in gains.items()
    }


def test_the_length_is_chosen_without_the_set_that_it_is_judged_on() -> None:
    sets = {
        name: {"tokens": tokens, "words": tokens}
        for name, tokens in {"a": 50.0, "b": 100.0, "c": 400.0, "d": 1600.0}.items()
    }
    table = static_page._threshold(results({"a": -0.1, "b": -0.1, "c": 0.1, "d": 0.1}), list(sets), sets, 200)[1]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert [(line[0], line[3], line[4]) for line in cells] == [
        ("a", "-10.0", "200, right here"),
        ("b", "-10.0", "141, right here"),
        ("c", "+10.0", "400, right here"),
        ("d", "+10.0", "200, right here"),
    ]
    assert static_page._rule({"a": 10.0, "c": 10.0, "d": -10.0}, "d", sets) == "always static"


def test_a_recipe_is_judged_on_the_set_that_did_not_choose_it() -> None:
    values = {"one": {"x": 9.0, "y": 1.0, "z": 3.0}, "two": {"x": 2.0, "y": 5.0, "z": 4.0}, "partial": {"x": 99.0}}
    about = {"about": "", "values": values, "chosen": "two", "held_out": True}
    text = "\n".join(static_page._choice({"about": "", "sets": ["x", "y", "z"], "tables": {"t": about}}))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "| x | two | 2.0 | 2.0 | 9.0 |" in lines, "on y and z the second is better"
    assert "| y | one | 1.0 | 5.0 | 5.0 |" in lines
