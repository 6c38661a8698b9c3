from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

from benchmarks.builder.difference import take_difference, write_difference
from simlte_st.errors import ModelError
from simlte_st.models.shipped import add_difference


def test_only_what_changed_is_kept_in_half_precision(encoder_path: Path, tmp_path: Path) -> None:
    start, model = (SentenceTransformer(str(encoder_path), device="cpu") for _ in range(2))
    layer = "encoder.layer.1.attention.self.query.weight"
    with torch.no_grad():
        model[0].auto_model.get_parameter(layer).add_(torch.outer(torch.arange(32.0), torch.ones(32)) / 100)
    factors = take_difference(start, model, 1)
    for file in ("a", "b"):
        write_difference(tmp_path / file, factors, {"steps": 3, "rank": 1, "documents": {"b": 1, "a": 2}})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    kept = load_file(tmp_path / "a")
    assert {key: (tuple(value.shape), value.dtype) for key, value in kept.items()} == {
        f"{layer}.left": ((32, 1), torch.float16),
        f"{layer}.right": ((1, 32), torch.float16),
    }
    add_difference(start, tmp_path / "a")
    assert torch.allclose(start[0].auto_model.get_parameter(layer), model[0].auto_model.get_parameter(layer), atol=2e-3)
    assert all(
        torch.equal(value, model.state_dict()[key]) for key, value in start.state_dict().items() if layer not in key
    )


def test_what_rounding_adds_to_a_tiny_change_is_no_change_of_a_higher_rank(encoder_path: Path) -> None:
    start, model = (SentenceTransformer(str(encoder_path), device="cpu") for _ in range(2))
    layer = "encoder.layer.1.attention.self.query.weight"
    with torch.no_grad():
        model[0].auto_model.get_parameter(layer).add_(torch.outer(torch.arange(32.0), torch.ones(32)) / 1e9)
    assert set(take_difference(start, model, 1)) == {f"{layer}.left", f"{layer}.right"}


def change_embeddings(model: SentenceTransformer) -> None:
    model[0].auto_model.get_input_embeddings().weight[7] += 0.1


def change_bias(model: SentenceTransformer) -> None:
    model[0].auto_model.encoder.layer[0].output.dense.bias[0] += 0.1


def change_norm(model: SentenceTransformer) -> None:
    model[0].auto_model.encoder.layer[0].output.LayerNorm.weight[0] += 0.1


def change_too_much(model: SentenceTransformer) -> None:
    torch.manual_seed(0)
    weight = model[0].auto_model.encoder.layer[0].output.dense.weight
    weight += torch.randn_like(weight) / 100


def break_it(model: SentenceTransformer) -> None:
    model[0].auto_model.encoder.layer[0].output.dense.weight[0, 0] = float("nan")


def add_module(model: SentenceTransformer) -> None:
    model.append(torch.nn.Linear(32, 32))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_embeddings, r"word_embeddings\.weight changed: .* linear layers"),
        (change_bias, r"output\.dense\.bias changed: .* linear layers"),
        (change_norm, r"output\.LayerNorm\.weight changed: .* linear layers"),
        (change_too_much, r"output\.dense\.weight changed by more than .* rank 4 hold: \d\d\.\d% of the change"),
        (break_it, r"output\.dense\.weight holds numbers that are not finite"),
        (add_module, r"differ in what 2\.bias is"),
    ],
)
def test_what_is_no_difference_of_a_rank(
    change: Callable[[SentenceTransformer], None], message: str, encoder_path: Path
) -> None:
    start, model = (SentenceTransformer(str(encoder_path), device="cpu") for _ in range(2))
    with torch.no_grad():
        change(model)
    with pytest.raises(ModelError, match=message):
        take_difference(start, model, 4)
