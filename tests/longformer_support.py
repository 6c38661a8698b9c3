"""Small Longformers, with weights large enough to reveal a wrong mask, batches and gradients."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import LongformerConfig, PreTrainedModel

from simlte_st.longformer import SimlteLongformerConfig, SimlteLongformerModel, attention, kernels

HIDDEN = 32


def stock_config(window: int | list[int] = 16, **fields: object) -> LongformerConfig:
    """Configure a stock Longformer of 2 layers without dropout."""
    settings = {
        "vocab_size": 60, "hidden_size": HIDDEN, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 48, "max_position_embeddings": 1200, "attention_window": window, "pad_token_id": 1,
        "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    }  # fmt: skip
    return LongformerConfig(**{**settings, **fields})


def ours_like(stock: PreTrainedModel) -> SimlteLongformerModel:
    """Build this package's Longformer with a stock model's weights."""
    fields = stock.config.to_dict()
    ours = SimlteLongformerModel(SimlteLongformerConfig(**{k: v for k, v in fields.items() if k != "model_type"}))
    ours.load_state_dict(stock.state_dict())
    return ours.train(stock.training)


def randomise(model: nn.Module, seed: int = 0) -> None:
    """Redraw all weights, large enough that attention is far from uniform and every bias matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.3, generator=generator)


def make_batch(lengths: Sequence[int], globals_each: int, seed: int = 0) -> dict[str, Tensor]:
    """Make a padded batch of random tokens with global attention on some random tokens of each document."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(lengths), max(lengths))
    ids = torch.full(shape, 1)
    mask, global_mask = torch.zeros(shape, dtype=torch.int64), torch.zeros(shape, dtype=torch.int64)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(2, 60, (length,), generator=generator)
        mask[row, :length] = 1
        chosen = torch.randperm(length, generator=generator)[:globals_each]
        global_mask[row, chosen] = 1
    return {"input_ids": ids, "attention_mask": mask, "global_attention_mask": global_mask}


def gradients(model: nn.Module, hidden: Tensor, mask: Tensor, seed: int = 0) -> dict[str, Tensor]:
    """Return the gradient of every weight for a random weighting of all non-padding hidden states."""
    weights = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(seed)) * mask[..., None]
    model.zero_grad()
    (hidden * weights).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def assert_same_gradients(actual: dict[str, Tensor], expected: dict[str, Tensor], relative: float = 1e-3) -> None:
    """Compare gradients; a missing one counts as zero.

    A key bias adds the same value to all scores of a query, so its gradient is zero except for rounding and is compared
    on the scale of the layer's keys. Other gradients can also be zero, such as a single token's query gradients, so
    differences below a millionth of the largest gradient count as rounding.
    """
    rounding = 1e-6 * max(float(gradient.norm()) for gradient in expected.values())
    for name in expected.keys() | actual.keys():
        gradient, reference = actual.get(name), expected.get(name)
        if gradient is None or reference is None:
            zeros = reference if gradient is None else gradient
            assert zeros is not None
            assert zeros.abs().max() == 0, name
            continue
        is_key_bias = name.endswith(("key.bias", "key_global.bias"))
        scale = expected[name.replace(".bias", ".weight")] if is_key_bias else reference
        assert (gradient - reference).norm() <= relative * scale.norm() + rounding, name


def treat_as_gpu(patch: pytest.MonkeyPatch, device: str) -> None:
    """Let the model use PyTorch's FlashAttention operators on a device that has none."""
    patch.setattr(kernels, "has_kernel", lambda device: True)
    patch.setattr(kernels, "DEVICE", device)
    patch.setattr(attention, "DEVICE", device)


def emulate_kernel(patch: pytest.MonkeyPatch) -> None:
    """Replace PyTorch's FlashAttention operators by dense products on a CPU."""
    masks: list[Tensor] = []

    def scores(query: Tensor, key: Tensor, rows: Tensor, columns: Tensor, *sizes: int, reach: int | None) -> Tensor:
        for bounds, size in zip((rows, columns), sizes, strict=True):
            assert bounds.dtype == torch.int32
            assert bounds.diff().max() <= size
        queries, keys = torch.arange(len(query))[:, None], torch.arange(len(key))
        visible = torch.bucketize(queries, rows, right=True) == torch.bucketize(keys, columns, right=True)
        if reach is not None:
            visible &= (queries - keys).abs() <= reach
        logits = torch.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
        return logits.masked_fill(~visible, float("-inf"))

    def forward(query, key, value, *arguments, window_size_left=None, window_size_right=None):  # type: ignore[no-untyped-def]
        *bounds, dropout, causal, debug = arguments
        assert (causal, debug, window_size_left) == (False, False, window_size_right)
        logits = scores(query, key, *bounds, reach=window_size_left)
        total = logits.logsumexp(-1)
        masks.append(functional.dropout(torch.ones_like(logits), dropout))
        out = torch.einsum("hqk,khd->qhd", (logits - total[..., None]).exp() * masks[-1], value)
        return out, total, torch.tensor(len(masks) - 1), torch.zeros(()), torch.zeros(0)

    def backward(grad, query, key, value, out, total, *arguments, window_size_left=None, window_size_right=None):  # type: ignore[no-untyped-def]
        *bounds, _, causal, number, __ = arguments
        assert (causal, window_size_left) == (False, window_size_right)
        weights = (scores(query, key, *bounds, reach=window_size_left) - total[..., None]).exp()
        gains = torch.einsum("qhd,khd->hqk", grad, value) * masks[number] - (grad * out).sum(-1).T[..., None]
        slopes = weights * gains / query.shape[-1] ** 0.5
        query_grad = torch.einsum("hqk,khd->qhd", slopes, key)
        factors = ((slopes, query), (weights * masks[number], grad))
        return (query_grad, *(torch.einsum("hqk,qhd->khd", *pair) for pair in factors))

    patch.setattr(torch.ops.aten, "_flash_attention_forward", forward)
    patch.setattr(torch.ops.aten, "_flash_attention_backward", backward)
    treat_as_gpu(patch, "cpu")
    patch.setattr(kernels, "DTYPES", (torch.float32, torch.float64))
