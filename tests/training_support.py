"""What tests of whole trainings share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file
from transformers import TrainerCallback

from simlte_st.training import Preset

# The papers' objective and stock modules, and the trained model whatever a verdict on so few made-up documents says.
OPTIONS: dict[str, Any] = {
    "preset": Preset(warmup=0.1, mlm_weight=0.0, dropout=0.0, max_length="base"),
    "batch_size": 8, "progress": False, "keep": "trained",
}  # fmt: skip

LONG = {"batch_size": 4, "max_steps": 4, "held_out": 0.0, "learning_rate": 3e-3, "save_steps": 2, "progress": False}


def weights(path: Path) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in load_file(path / "model.safetensors").items()}


def assert_same_bytes(first: Path, second: Path) -> None:
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


class Calls(TrainerCallback):
    """Calls a function at one event, with the global step."""

    def __init__(self, event: str, function: Callable[[int], object]) -> None:
        setattr(self, event, lambda args, state, control, **kwargs: function(state.global_step) and None)
