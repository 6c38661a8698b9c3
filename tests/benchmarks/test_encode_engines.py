from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import encode_engines
from simlte_st.models.base import load_model
from simlte_st.models.parts import PartEncoder


def test_a_run_is_timed_from_its_first_part_to_its_last(
    encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    (tmp_path / "texts.jsonl").write_text("".join(f'{{"text": "{text}"}}\n' for text in documents))
    options = argparse.Namespace(source=tmp_path / "texts.jsonl", limit=45, part_size=10)
    model = load_model(encoder_path, device="cpu").model
    turn = encode_engines.run("local", PartEncoder(model), options)
    assert turn["texts"] == 35
    assert 0 < turn["wall"] < 60
    assert 0 < turn["cpu"] < 60
    np.testing.assert_allclose(turn["vectors"].reshape(45, 32), model.encode(documents[:45]), atol=1e-5)


def test_the_page_has_medians_and_the_ratio_of_turns() -> None:
    def turn(seconds: float) -> dict[str, Any]:
        return {
            "texts": 100,
            "wall": seconds,
            "cpu": seconds / 2,
            "until_first_part": 2 * seconds,
            "load": 3.1,
            "vectors": np.ones(3),
        }

    turns: list[Any] = [{"local": turn(local), "ray": turn(ray)} for local, ray in ((10, 10), (10, 12.5), (20, 40))]
    record = encode_engines.result(turns, argparse.Namespace(model="tiny", limit=110, part_size=10))
    assert record["ray_to_local_wall"] == record["ray_to_local_cpu"] == pytest.approx(0.8)
    page = encode_engines.page(record)
    assert "| texts a second of the clock |  10.0 |  8.0 | 0.80 (0.50 to 1.00) |" in page
    assert "comes 5 seconds later" in page
    assert "3 processes wanted" in page
