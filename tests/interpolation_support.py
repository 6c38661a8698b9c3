"""Two models on one line, for the tests of interpolation."""

from __future__ import annotations

from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn


def load(path: Path) -> SentenceTransformer:
    return SentenceTransformer(str(path), device="cpu")


def moved(path: Path, amount: float = 0.05, seed: int = 0) -> SentenceTransformer:
    """The model of a folder with every weight moved at random: what training would make of it, and worse."""
    model = load(path)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=generator), alpha=amount)
    return model


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())
