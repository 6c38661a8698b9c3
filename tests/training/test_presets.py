from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import Any

import pytest

from simlte_st import train
from simlte_st.data import DocSplit
from simlte_st.errors import ConfigurationError
from simlte_st.training import Preset, get_preset
from simlte_st.training.presets import preset_changes


@pytest.mark.parametrize(("name", "batch_size"), [("docsplit-bert", 36), ("docsplit-longformer", 12)])
def test_paper_presets(name: str, batch_size: int) -> None:
    preset = get_preset(name)
    assert preset.view == DocSplit(p=0.5)
    assert (preset.batch_size, preset.learning_rate, preset.epochs) == (batch_size, 5e-5, 1)
    assert (preset.scale, preset.mlm_weight, preset.pooling) == (20.0, 0.1, "cls")
    assert preset.dropout is None


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_size": 1}, {"batch_size": 0}, {"learning_rate": 0.0}, {"epochs": -1.0}, {"scale": 0.0},
        {"pooling": "max"}, {"warmup": 1.0}, {"dropout": 1.5}, {"attention_dropout": -0.1}, {"max_length": 0},
        {"max_length": "all"}, {"backbone": "chunks"}, {"backbone": "chunk-mean"},
        {"backbone": "chunk-mean", "max_length": "base"},
        {"mini_batch_num_tokens": 0},
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(settings))):
        Preset(**settings)


def test_train_accepts_every_preset_field() -> None:
    arguments = inspect.signature(train).parameters
    assert {item.name for item in fields(Preset)} - set(arguments) == {"steps", "most_passes"}
    assert {arguments[item.name].default for item in fields(Preset) if item.name in arguments} == {None}


@pytest.mark.parametrize(
    ("told", "batches", "steps"),
    [
        ({}, 5, 10), ({}, 100, 50), ({"epochs": 1.5}, 5, 8), ({"max_steps": 3}, 5, 3), ({"max_steps": 90}, 5, 90),
        ({"epochs": 2.0, "max_steps": 3}, 5, 3),
    ],
    ids=str,
)  # fmt: skip
def test_planned_steps(told: dict[str, Any], batches: int, steps: int) -> None:
    preset = Preset(steps=50, most_passes=2)
    assert replace(preset, **preset_changes({"max_steps": None, **told})).planned_steps(batches) == steps
