"""What tests of whole trainings share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file

OPTIONS: dict[str, Any] = {"batch_size": 8, "progress": False}

LONG = {"batch_size": 4, "max_steps": 4, "held_out": 0.0, "learning_rate": 3e-3, "save_steps": 2, "progress": False}


def weights(path: Path) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in load_file(path / "model.safetensors").items()}


def assert_same_bytes(first: Path, second: Path) -> None:
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()
