from __future__ import annotations

from typing import Any

import pytest
import yaml

from benchmarks.builder.account import LIMITS_TITLE, Build
from benchmarks.builder.distillation import recipe
from simlte_st.models.names import HUB_BASE, OWN_ENCODERS


def build(name: str, **changes: Any) -> Build:
    values: dict[str, Any] = {
        "documents": 3000, "sha256": "ab12", "tokens": 2_000_000, "steps": 300, "teaching_seconds": 600.0,
        "training_seconds": 3000.0, "device": "cpu", "threads": 2, "dtype": "bfloat16", "seed": 4,
        "distance": (0.017, 0.007),
    }  # fmt: skip
    return Build(name=name, recipe=recipe(name), **{**values, **changes})


@pytest.mark.parametrize("name", OWN_ENCODERS)
def test_a_card_is_one_of_the_hubs(name: str) -> None:
    card = build(name).card("Articles of an encyclopedia", "The text is free.")
    _, header, text = card.split("---\n", 2)
    meta = yaml.safe_load(header)
    assert (meta["base_model"], meta["license"]) == (HUB_BASE, "apache-2.0")
    assert meta["co2_eq_emissions"]["emissions"] == 8.0, "an hour of two cores of 10 W, 400 g a kWh"
    assert "1.00 h of 2 CPU cores" in meta["co2_eq_emissions"]["source"]
    for said in (
        f'SentenceTransformer("{name}")', "Articles of an encyclopedia: 3,000", "`ab12`", "The text is free.",
        f"benchmarks.build_model {name} SOURCE --limit 3000 --bf16", "0.0170 in the first", "0.020 kWh", LIMITS_TITLE,
    ):  # fmt: skip
        assert said in text
    assert max(map(len, text.splitlines())) <= 200


def test_of_a_gpu_no_energy_is_guessed() -> None:
    card = build("simlte-bert", device="cuda", dtype="float32").card()
    assert "co2" not in card
    assert "kWh" not in card
    assert "on a GPU" in card
    assert "--bf16" not in card
