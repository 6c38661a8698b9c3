"""What ``[CLS]`` attends to in one layer: its row of the attention weights, without holding any other.

Fused attention holds no weights, and eager attention holds all of them, ``heads * tokens ** 2`` a layer. The row of one
token needs its query and the layer's keys only: they are computed once more from the hidden states that the layer's
attention was given. Architectures whose scores are more than a product of projections (relative positions, rotations)
are run with eager attention instead, and the row is taken from their own weights.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel
from simlte_st.compat import eager_attention
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.packing import Packing

_FULL = {
    "bert": ("query", "key"),
    "roberta": ("query", "key"),
    "xlm-roberta": ("query", "key"),
    "camembert": ("query", "key"),
    "electra": ("query", "key"),
    "distilbert": ("q_lin", "k_lin"),
}
"""Architectures in which a score is a product of two projections, and how an attention layer calls them."""

_LONGFORMERS = ("longformer", "simlte_longformer")


def cls_attention(encoder: PreTrainedModel, features: Mapping[str, Tensor], layer: int = -1) -> Tensor:
    """Compute the attention weights from the first token of each text, ``[CLS]``, to all its tokens.

    Where ``[CLS]`` has global attention in a Longformer, this is its softmax over the whole document, through the
    global projections; where it has not, its softmax over its window and the global tokens.

    Args:
        encoder: A BERT-like encoder; run once, in evaluation mode, without gradients.
        features: Its padded inputs, with ``attention_mask``, ``(batch, width)``: 0 for padding, on either side.
        layer: Index of the layer; -1 is the last.

    Returns:
        ``(batch, heads, width)``, float32, on the encoder's device; zeros at padding. Each head's weights sum to 1.

    Raises:
        ConfigurationError: There is no such layer.
        ModelError: The encoder holds no such weights: it reads by chunks, or is not BERT-like.
    """
    index = _layer_index(encoder, layer)
    kind = encoder.config.model_type
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            if kind in _LONGFORMERS:
                return _longformer(encoder, features, index)
            if kind in _FULL and not getattr(encoder.config, "is_decoder", False):
                return _full(encoder, features, index)
            return _held(encoder, features, index)
    finally:
        encoder.train(training)


def _layer_index(encoder: PreTrainedModel, layer: int) -> int:
    if isinstance(encoder, SimlteChunkMeanModel):
        raise ModelError(
            "A chunk mean has a [CLS] in every chunk and none that attends to the document: analyse its encoder."
        )
    layers = getattr(encoder.config, "num_hidden_layers", None)
    if not isinstance(layers, int):
        raise ModelError(f"{type(encoder).__name__} has no layers of attention.")
    if not -layers <= layer < layers:
        raise ConfigurationError(f"layer={layer}: the model has the layers 0 to {layers - 1}; -1 is the last.")
    return layer % layers


def _full(encoder: PreTrainedModel, features: Mapping[str, Tensor], index: int) -> Tensor:
    names = _FULL[encoder.config.model_type]
    module = _attention_layer(encoder, names, index)
    with _arguments(module) as given:
        encoder(**features)
    query, key = (getattr(module, name) for name in names)
    hidden = given["hidden_states"]
    valid = features["attention_mask"].to(hidden.device) > 0
    rows = torch.arange(len(hidden), device=hidden.device)
    heads = encoder.config.num_attention_heads
    return _softmax(query(hidden[rows, _first(valid)]), key(hidden), valid, heads)


def _longformer(encoder: PreTrainedModel, features: Mapping[str, Tensor], index: int) -> Tensor:
    module = _attention_layer(encoder, ("query_global", "key_global"), index)
    with _arguments(module) as given:
        encoder(**features)
    width = features["attention_mask"].shape[1]
    if isinstance(packing := given.get("packing"), Packing):
        hidden = packing.unpack(given["hidden"])
        valid, is_global = (packing.unpack(flags.long()) > 0 for flags in (packing.valid, packing.is_global))
        reach = int(module.window) // 2
    else:
        # The stock model pads to a multiple of its window, and marks masked tokens by negative numbers.
        hidden = given["hidden_states"][:, :width]
        valid = given["attention_mask"][:, :width] >= 0
        is_global = given["is_index_global_attn"][:, :width]
        reach = int(module.one_sided_attn_window_size)
    heads = encoder.config.num_attention_heads
    rows, first = torch.arange(len(hidden), device=hidden.device), _first(valid)
    cls = hidden[rows, first]
    near = (torch.arange(width, device=hidden.device) - first[:, None]).abs() <= reach
    local = _softmax(module.query(cls), module.key(hidden), valid & (near | is_global), heads)
    if not is_global[rows, first].any():
        return local
    whole = _softmax(module.query_global(cls), module.key_global(hidden), valid, heads)
    return torch.where(is_global[rows, first, None, None], whole, local)


def _held(encoder: PreTrainedModel, features: Mapping[str, Tensor], index: int) -> Tensor:
    with eager_attention(encoder):
        output = encoder(**features, output_attentions=True, return_dict=True)
    attentions = getattr(output, "attentions", None)
    if not attentions or attentions[index] is None or attentions[index].dim() != 4:
        raise ModelError(
            f"{type(encoder).__name__} ({encoder.config.model_type}) gives no attention weights between its tokens."
        )
    weights: Tensor = attentions[index].float()
    valid = features["attention_mask"].to(weights.device) > 0
    if weights.shape[-1] != valid.shape[1]:
        raise ModelError(
            f"{type(encoder).__name__} ({encoder.config.model_type}) gives attention weights of shape "
            f"{tuple(weights.shape)} for {valid.shape[1]} tokens: which token they are of is not known."
        )
    rows = torch.arange(len(weights), device=weights.device)
    return weights[rows, :, _first(valid)].masked_fill(~valid[:, None], 0.0)


def _attention_layer(encoder: PreTrainedModel, names: tuple[str, str], index: int) -> Any:
    layers = [
        module
        for module in encoder.modules()
        if all(isinstance(getattr(module, name, None), nn.Module) for name in names)
    ]
    if len(layers) != encoder.config.num_hidden_layers:
        raise ModelError(
            f"{type(encoder).__name__} has {len(layers)} attentions with {' and '.join(names)} in "
            f"{encoder.config.num_hidden_layers} layers."
        )
    return layers[index]


@contextmanager
def _arguments(module: nn.Module) -> Iterator[dict[str, Any]]:
    """Collect what a module is called with, by the names of its parameters."""
    given: dict[str, Any] = {}
    signature = inspect.signature(module.forward)

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        given.update(signature.bind_partial(*args, **kwargs).arguments)

    handle = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield given
    finally:
        handle.remove()


def _first(valid: Tensor) -> Tensor:
    """Give the column of each row's first token, ``(batch,)``."""
    return valid.long().argmax(1)


def _softmax(query: Tensor, key: Tensor, sees: Tensor, heads: int) -> Tensor:
    """Attend from one token a row.

    Args:
        query: ``(batch, heads * size)``.
        key: ``(batch, width, heads * size)``.
        sees: What the token sees, ``(batch, width)``, bool.
        heads: Attention heads.

    Returns:
        ``(batch, heads, width)``, float32.
    """
    batch, width, _ = key.shape
    by_head = query.float().view(batch, heads, 1, -1)
    keys = key.float().view(batch, width, heads, -1).permute(0, 2, 3, 1)
    scores = (by_head @ keys).squeeze(2) / math.sqrt(by_head.shape[-1])
    return scores.masked_fill(~sees[:, None], float("-inf")).softmax(-1)
