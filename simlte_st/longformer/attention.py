"""Longformer's attention over packed documents: one function with two backends.

A token sees the tokens of its document at most half a window away, and those with global attention, in one softmax in
which each counts once. A token with global attention sees all of its document, through projections of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.checks import check_choice
from simlte_st.errors import ConfigurationError
from simlte_st.longformer.blocked import blocked_attention
from simlte_st.longformer.global_rows import GlobalProjections, global_rows
from simlte_st.longformer.packing import Packing

BACKENDS = ("eager", "sdpa")


@dataclass(frozen=True)
class AttentionInputs:
    """What a layer gives to its attention.

    Attributes:
        query: Local queries, ``(slots, heads, size)``.
        key: Local keys, same shape.
        value: Local values, same shape.
        hidden: What the queries were projected from, ``(slots, heads * size)``; the global projections read it.
        projections: The global projections.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    hidden: Tensor
    projections: GlobalProjections


def longformer_attention(
    inputs: AttentionInputs, packing: Packing, window: int, dropout: float = 0.0, backend: str = "sdpa"
) -> Tensor:
    """Attend within windows, to global tokens, and from global tokens.

    References:
        Longformer, section 3.1; equation 1 for both sets of projections.
    """
    check_choice("attn_implementation", backend, BACKENDS)
    if packing.slots == 0:
        return inputs.query.flatten(1)
    if backend == "eager":
        return _eager(inputs, packing, window, dropout)
    local = blocked_attention(inputs.query, inputs.key, inputs.value, packing, window, dropout)
    of_globals = global_rows(inputs.hidden, inputs.projections, inputs.query.shape[1], packing, dropout)
    if of_globals is None:
        return local
    slots, rows = of_globals
    # What a global token sees through the local projections does not count.
    return local.index_copy(0, slots, rows.to(local.dtype))


def _eager(inputs: AttentionInputs, packing: Packing, window: int, dropout: float) -> Tensor:
    """Attend with one dense matrix of scores a document: slow, and short enough to be seen to be right."""
    slots, heads, size = inputs.query.shape
    queries, keys, values = (
        projection(inputs.hidden).view(slots, heads, size).transpose(0, 1)
        for projection in (inputs.projections.query, inputs.projections.key, inputs.projections.value)
    )
    documents = []
    for start, length, *_ in packing.spans:
        own = slice(start, start + length)
        valid, is_global = packing.valid[own], packing.is_global[own]
        place = torch.arange(length, device=valid.device)
        near = (place[:, None] - place).abs() <= window // 2
        # A masked token sees itself, or its softmax would be over nothing.
        sees = (valid & (near | is_global)) | torch.eye(length, dtype=torch.bool, device=valid.device)
        query, key, value = (x[own].transpose(0, 1) for x in (inputs.query, inputs.key, inputs.value))
        local = _attend(query, key, value, sees, dropout)
        whole = _attend(queries[:, own], keys[:, own], values[:, own], valid.expand(length, -1), dropout)
        documents.append(torch.where(is_global[:, None, None], whole.transpose(0, 1), local.transpose(0, 1)))
    return torch.cat(documents).flatten(1)


def _attend(query: Tensor, key: Tensor, value: Tensor, sees: Tensor, dropout: float) -> Tensor:
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~sees, float("-inf"))
    weights = functional.softmax(scores, dim=-1, dtype=torch.float32).to(value.dtype)
    return functional.dropout(weights, dropout) @ value


class LongformerSelfAttention(nn.Module):
    """The six projections of a layer around :func:`longformer_attention`; weight names are the stock Longformer's."""

    def __init__(self, hidden_size: int, heads: int, window: int, dropout: float) -> None:
        super().__init__()
        if hidden_size % heads:
            raise ConfigurationError(f"hidden_size={hidden_size}: must be a multiple of num_attention_heads={heads}.")
        self.heads = heads
        self.window = window
        self.dropout = float(dropout)
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.query_global = nn.Linear(hidden_size, hidden_size)
        self.key_global = nn.Linear(hidden_size, hidden_size)
        self.value_global = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden: Tensor, packing: Packing, backend: str) -> Tensor:
        """Project and attend."""
        shape = (len(hidden), self.heads, hidden.shape[1] // self.heads)
        query, key, value = (projection(hidden).view(shape) for projection in (self.query, self.key, self.value))
        projections = GlobalProjections(self.query_global, self.key_global, self.value_global)
        inputs = AttentionInputs(query, key, value, hidden, projections)
        return longformer_attention(inputs, packing, self.window, self.dropout if self.training else 0.0, backend)
