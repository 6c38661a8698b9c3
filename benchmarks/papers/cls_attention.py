"""How much ``[CLS]`` attends to each token of a text, in one layer of a model.

That is its row of the attention weights, computed without holding any other. Fused attention holds no weights, and
eager attention holds all of them, ``heads * tokens ** 2`` a layer. The row of one token needs its query and the layer's
keys only: they are computed once more from the hidden states that the layer's attention was given. Architectures whose
scores are more than a product of projections (relative positions, rotations) are run with eager attention instead, and
the row is taken from their own weights.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from transformers import PreTrainedModel

from benchmarks.papers.reading import fast_tokenizer
from simlte_st.backbones.registry import backbone_of
from simlte_st.compat import eager_attention, readable_length
from simlte_st.data.sentences import tokenizer_counter
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.longformer.packing import Packing
from simlte_st.models.truncation import prompt_as_read

_FULL = {
    "bert": ("query", "key"),
    "roberta": ("query", "key"),
    "xlm-roberta": ("query", "key"),
    "camembert": ("query", "key"),
    "electra": ("query", "key"),
    "distilbert": ("q_lin", "k_lin"),
}
"""Architectures in which a score is a product of two projections, and how an attention layer calls them."""


@dataclass(frozen=True, slots=True)
class TextAttention:
    """What ``[CLS]`` attends to in one text.

    Attributes:
        spans: Character offsets of each token in the text, start and stop, ``(tokens, 2)``, int64; meaningless for
            special tokens.
        special: Which tokens are no part of the text: ``[CLS]``, ``[SEP]``, a prompt's, ``(tokens,)``, bool.
        weights: Attention from ``[CLS]`` to each token, mean over the heads, ``(tokens,)``, float64; the sum is 1.
        length: Tokens of the whole text, special tokens not counted, whether or not the model read them.
    """

    spans: NDArray[np.int64]
    special: NDArray[np.bool_]
    weights: NDArray[np.float64]
    length: int

    @property
    def cut(self) -> int:
        """Tokens of the text that the model did not read."""
        return max(0, self.length - int((~self.special).sum()))

    @property
    def extent(self) -> tuple[int, int]:
        """Index of the first character of the text that the model read, and the index after the last."""
        own = self.spans[~self.special]
        return (int(own[:, 0].min()), int(own[:, 1].max())) if len(own) else (0, 0)


def read_texts(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    layer: int = -1,
    max_seq_length: int | None = None,
    batch_size: int = 8,
) -> list[TextAttention]:
    """Let a model read texts as its ``encode`` does, and keep what ``[CLS]`` attends to."""
    encoder, tokenizer = _parts(model)
    length = readable_length(model, max_seq_length)
    prompt = prompt_as_read(model)
    special_tokens = int(tokenizer.num_special_tokens_to_add(pair=False))
    if length is not None and length <= special_tokens:
        raise ConfigurationError(f"max_seq_length={length} leaves no room beside {special_tokens} special tokens.")
    lengths = tokenizer_counter(tokenizer)(texts)
    order = sorted(range(len(texts)), key=lambda number: lengths[number])
    attentions: dict[int, TextAttention] = {}
    for start in range(0, len(order), batch_size):
        numbers = order[start : start + batch_size]
        encoded = tokenizer(
            [prompt + texts[number] for number in numbers],
            padding=True,
            truncation=length is not None,
            max_length=length,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
            verbose=False,
        )
        spans = encoded.pop("offset_mapping").numpy()
        special = encoded.pop("special_tokens_mask").numpy() > 0
        real = encoded["attention_mask"].numpy() > 0
        _check_cls(encoded["input_ids"].numpy(), real, tokenizer)
        features = {name: tensor.to(model.device) for name, tensor in encoded.items()}
        weights = cls_attention(encoder, features, layer).mean(1).double().cpu().numpy()
        for row, number in enumerate(numbers):
            own = spans[row][real[row]].astype(np.int64) - len(prompt)
            # A token that reaches from the prompt into the text is the text's, from where that begins.
            outside = special[row][real[row]] | (own[:, 1] <= 0)
            attentions[number] = TextAttention(np.maximum(own, 0), outside, weights[row][real[row]], lengths[number])
    return [attentions[number] for number in range(len(texts))]


def cls_attention(encoder: PreTrainedModel, features: Mapping[str, Tensor], layer: int = -1) -> Tensor:
    """Compute the attention weights from the first token of each text, ``[CLS]``, to all its tokens.

    Where ``[CLS]`` has global attention in a Longformer, this is its softmax over the whole document, through the
    global projections; where it has not, its softmax over its window and the global tokens.
    """
    index = _layer_index(encoder, layer)
    kind = encoder.config.model_type
    training = encoder.training
    encoder.eval()
    try:
        with torch.no_grad():
            if any(hasattr(module, "query_global") for module in encoder.modules()):
                return _longformer(encoder, features, index)
            if kind in _FULL and not getattr(encoder.config, "is_decoder", False):
                return _full(encoder, features, index)
            return _held(encoder, features, index)
    finally:
        encoder.train(training)


def _parts(model: SentenceTransformer) -> tuple[PreTrainedModel, Any]:
    encoder = getattr(model[0], "auto_model", None)
    if not isinstance(encoder, PreTrainedModel):
        raise ModelError(
            f"Attention is analysed in models that begin with a Transformer; this one begins with "
            f"{type(model[0]).__name__}."
        )
    tokenizer = fast_tokenizer(model)
    if tokenizer.cls_token_id is None:
        raise ModelError(f"{type(tokenizer).__name__} has no [CLS] token: there is no attention from it.")
    return encoder, tokenizer


def _check_cls(ids: NDArray[np.int64], real: NDArray[np.bool_], tokenizer: Any) -> None:
    first = ids[np.arange(len(ids)), real.argmax(1)]
    if (first != tokenizer.cls_token_id).any():
        raise ModelError(
            f"{type(tokenizer).__name__} puts {tokenizer.convert_ids_to_tokens(int(first[0]))!r} first, not "
            f"{tokenizer.cls_token!r}."
        )


def _layer_index(encoder: PreTrainedModel, layer: int) -> int:
    if backbone_of(encoder).pooled_inside:
        raise ModelError(
            "A model that reads in chunks has a [CLS] in every chunk and none that attends to the document: analyse "
            "its encoder."
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
    with _arguments(module) as call:
        encoder(**features)
    query, key = (getattr(module, name) for name in names)
    hidden = call["hidden_states"]
    valid = features["attention_mask"].to(hidden.device) > 0
    rows = torch.arange(len(hidden), device=hidden.device)
    heads = encoder.config.num_attention_heads
    return _softmax(query(hidden[rows, _first(valid)]), key(hidden), valid, heads)


def _longformer(encoder: PreTrainedModel, features: Mapping[str, Tensor], index: int) -> Tensor:
    module = _attention_layer(encoder, ("query_global", "key_global"), index)
    with _arguments(module) as call:
        encoder(**features)
    width = features["attention_mask"].shape[1]
    if isinstance(packing := call.get("packing"), Packing):
        hidden = packing.unpack(call["hidden"])
        valid, is_global = (packing.unpack(flags.long()) > 0 for flags in (packing.valid, packing.is_global))
        reach = int(module.window) // 2
    else:
        # The stock model pads to a multiple of its window, and marks masked tokens by negative numbers.
        hidden = call["hidden_states"][:, :width]
        valid = call["attention_mask"][:, :width] >= 0
        is_global = call["is_index_global_attn"][:, :width]
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
    call: dict[str, Any] = {}
    signature = inspect.signature(module.forward)

    def keep(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        call.update(signature.bind_partial(*args, **kwargs).arguments)

    handle = module.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        yield call
    finally:
        handle.remove()


def _first(valid: Tensor) -> Tensor:
    """Return the column of each row's first token, ``(batch,)``."""
    return valid.long().argmax(1)


def _softmax(query: Tensor, key: Tensor, sees: Tensor, heads: int) -> Tensor:
    """Attend from one token a row."""
    batch, width, _ = key.shape
    by_head = query.float().view(batch, heads, 1, -1)
    keys = key.float().view(batch, width, heads, -1).permute(0, 2, 3, 1)
    scores = (by_head @ keys).squeeze(2) / math.sqrt(by_head.shape[-1])
    return scores.masked_fill(~sees[:, None], float("-inf")).softmax(-1)
