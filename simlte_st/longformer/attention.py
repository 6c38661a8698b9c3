"""Longformer attention over packed documents.

Within its document, a token attends to the tokens at most half a window away and to the global tokens, in one softmax
that counts each token once. A global token attends to its whole document, through separate projections.

Global tokens are few, so the global keys and values of a document are usually not computed. The score of a key is
``q . (W x + b) = (W^T q) . x + q . b``, so the query is projected once, by ``W^T``, and the value projection is applied
to the weighted sum of states. This takes ``heads * tokens`` numbers per global token instead of ``hidden * tokens`` per
document.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.compat import has_hooks
from simlte_st.errors import ConfigurationError
from simlte_st.longformer.blocked import ProductAttention, fused_attention, group_chunks
from simlte_st.longformer.kernels import DEVICE, accepts, cpu_attention, has_cpu_kernel, varlen_attention
from simlte_st.longformer.packing import Packing, attention_bias, to_device


class LongformerSelfAttention(nn.Module):
    """Self-attention of one layer, with six projections named as in the stock Longformer.

    References:
        Longformer, section 3.1; equation 1 for both sets of projections.
    """

    def __init__(self, hidden_size: int, heads: int, window: int, dropout: float) -> None:
        super().__init__()
        if hidden_size % heads:
            raise ConfigurationError(f"hidden_size={hidden_size} must be a multiple of num_attention_heads={heads}.")
        self.heads, self.window = heads, window
        self.dropout = nn.Dropout(dropout)  # a module, as in BERT, so that tools can turn it off
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.query_global = nn.Linear(hidden_size, hidden_size)
        self.key_global = nn.Linear(hidden_size, hidden_size)
        self.value_global = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Return the output of windowed and global attention, ``(slots, hidden)``."""
        dropout = self.dropout.p if self.dropout.training else 0.0
        if packing.slots == 0:
            return hidden
        if packing.weights is not None:
            return self._eager_attention(hidden, packing, packing.weights)
        query, key, value = self._project(hidden)
        if varlen := accepts(query, packing):
            local = varlen_attention(query, key, value, packing, self.window, dropout=dropout)
        else:
            trained = self.training or torch.is_grad_enabled()  # checkpointing first runs a layer without gradients
            local = windowed_attention(query, key, value, packing, self.window, dropout=dropout, trained=trained)
        if len(packing.global_slots) == 0:
            return local
        # At the global tokens, replace the output of the local projections.
        rows = self._global_attention(hidden, packing, dropout, varlen)
        copy = local.index_copy if torch.is_grad_enabled() else local.index_copy_
        return copy(0, packing.global_slots, rows.to(local.dtype))

    def _eager_attention(self, hidden: Tensor, packing: Packing, all_weights: list[Tensor]) -> Tensor:
        """Return the same output from weights for all pairs of slots, which are added to ``all_weights``."""
        query, key, value = self._project(hidden)
        visible = (packing.document[:, None] == packing.document) & packing.valid
        near = (packing.positions[:, None] - packing.positions).abs() <= self.window // 2
        rows, is_row = packing.global_slots, packing.is_global[:, None]
        visible &= near | packing.is_global | is_row
        visible |= torch.eye(len(hidden), dtype=torch.bool, device=hidden.device)  # see chunk_bias

        def scores(query: Tensor, key: Tensor) -> Tensor:
            return torch.einsum("qhd,khd->hqk", query, key) / math.sqrt(query.shape[-1])

        layers = (self.query_global, self.key_global, self.value_global)
        query_all, key_all, value_all = (layer(hidden).view(query.shape) for layer in layers)
        mixed = torch.where(is_row, scores(query_all, key_all), scores(query, key))
        weights = (mixed + attention_bias(visible, mixed.dtype)).softmax(-1)
        all_weights.append(weights)
        weights = self.dropout(weights)
        local, attended = (torch.einsum("hqk,khd->qhd", weights, values) for values in (value, value_all))
        return local.flatten(1).index_copy(0, rows, attended.flatten(1)[rows])

    def _project(self, hidden: Tensor) -> list[Tensor]:
        """Return queries, keys and values, each ``(slots, heads, size)``; on a GPU, from a single matrix product."""
        layers = (self.query, self.key, self.value)
        if hidden.device.type == DEVICE and all(map(_is_plain, layers)):
            weight = torch.cat([layer.weight for layer in layers])
            projections = functional.linear(hidden, weight, torch.cat([layer.bias for layer in layers])).chunk(3, dim=1)
        else:
            projections = tuple(layer(hidden) for layer in layers)
        return [projection.view(len(hidden), self.heads, -1) for projection in projections]

    def _global_attention(self, hidden: Tensor, packing: Packing, dropout: float, varlen: bool) -> Tensor:
        """Return the output at the global tokens, ``(globals, hidden)``, in slot order."""
        query = self.query_global(hidden.index_select(0, packing.global_slots))
        query = query.view(len(query), self.heads, -1)
        # Skipping the projections is faster if a document has fewer global queries (tokens x heads) than the hidden
        # size. On a GPU, one product over all documents is faster than one product per document size.
        plain = _is_plain(self.key_global) and _is_plain(self.value_global)
        plan = _single_bucket if varlen and plain and len(query) * self.heads < hidden.shape[1] else _buckets_by_size
        buckets = packing.once((plan, query.dtype), lambda: plan(packing, query.dtype))
        max_globals = max(bucket.max_globals for bucket in buckets)
        attend = _attend_unprojected if plain and max_globals * self.heads < hidden.shape[1] else _attend_projected
        outputs = []
        for bucket in buckets:
            states = hidden[bucket.start : bucket.start + bucket.documents * bucket.size]
            states = states.view(bucket.documents, bucket.size, -1)
            queries = query[bucket.query_rows].unflatten(0, (-1, bucket.max_globals))
            output = attend(states, queries, self.key_global, self.value_global, bias=bucket.bias, dropout=dropout)
            output = output.flatten(0, 1)
            outputs.append(output if bucket.output_rows is None else output[bucket.output_rows])
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def windowed_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float, trained: bool
) -> Tensor:
    """Return the output within windows, ``(slots, hidden)``; ``trained`` means that a backward pass may follow."""
    on_cpu = query.device.type == "cpu"
    slow = query.dtype != torch.float32 and trained  # in the fused kernel's backward pass; see blocked.py
    if on_cpu and dropout == 0.0 and has_cpu_kernel() and not slow:
        return cpu_attention(query, key, value, packing, window)
    groups = packing.once(("groups", window, query.dtype), lambda: group_chunks(packing, window, query.dtype))
    if on_cpu:
        # Drawn from the global generator, so that resumed runs and recomputed layers get the same seed.
        seed = int(torch.randint(2**31, ())) if dropout else 0
        attended: Tensor = ProductAttention.apply(query, key, value, groups, dropout, seed)  # type: ignore[no-untyped-call]
        return attended.flatten(1)
    outputs = fused_attention(query, key, value, groups, dropout)
    order = packing.once(("order", window), lambda: torch.cat([group.rows.flatten() for group in groups]).argsort())
    return outputs.index_select(0, order)


class _Bucket(NamedTuple):
    """Consecutive documents that have global tokens and the same size."""

    start: int  # first slot of the first document
    documents: int  # number of documents
    size: int  # slots per document
    max_globals: int  # maximum number of global tokens per document
    bias: Tensor  # masks padding and other documents, (documents, 1 or max_globals, size)
    query_rows: slice | Tensor  # rows of the global queries, (documents * max_globals,); arbitrary at padding
    output_rows: Tensor | None = None  # int64, rows of the output that are not padding; None for all rows


def _is_plain(linear: nn.Module) -> bool:
    """Return whether a projection is a plain linear layer, without adapter, quantisation or hooks."""
    plain = type(linear) is nn.Linear and type(linear.weight) in (nn.Parameter, Tensor) and linear.bias is not None
    return plain and not has_hooks(linear)


def _attend_unprojected(
    states: Tensor, query: Tensor, key: nn.Linear, value: nn.Linear, *, bias: Tensor, dropout: float
) -> Tensor:
    """Attend from ``query``, ``(documents, globals, heads, size)``, without projecting ``states``."""
    documents, count, heads, head = query.shape

    def by_document(x: Tensor) -> Tensor:
        return x.view(heads, documents, count, -1).transpose(0, 1)

    def by_head(x: Tensor) -> Tensor:
        return x.view(documents, heads, count, -1).transpose(0, 1).flatten(1, 2)

    # One matrix product per head: (heads, documents * globals, head) @ (heads, head, hidden).
    query = query.flatten(0, 1).transpose(0, 1)
    state_query = by_document(torch.bmm(query, key.weight.view(heads, head, -1))).flatten(1, 2)
    scores = torch.bmm(state_query.to(states.dtype), states.transpose(1, 2)).view(documents, heads, count, -1)
    if key.training or torch.is_grad_enabled():  # the same for all keys and so without effect, but DDP needs a gradient
        scores = scores + by_document(torch.bmm(query, key.bias.view(heads, head, 1)))
    weights = _weights(scores, bias, head, dropout)
    sums = by_head(torch.bmm(weights.flatten(1, 2).to(states.dtype), states))
    value_bias = value.bias.view(heads, 1, head)
    if dropout:  # the weights no longer sum to one
        value_bias = by_head(weights.sum(-1)) * value_bias
    attended = torch.baddbmm(value_bias, sums, value.weight.view(heads, head, -1).transpose(1, 2))
    return attended.transpose(0, 1).reshape(documents, count, heads * head)


def _attend_projected(
    states: Tensor, query: Tensor, key: nn.Module, value: nn.Module, *, bias: Tensor, dropout: float
) -> Tensor:
    """Compute the same as :func:`_attend_unprojected` from projected keys and values."""
    documents, count, heads, head = query.shape
    keys, values = (layer(states).view(documents, -1, heads, head).transpose(1, 2) for layer in (key, value))
    weights = _weights(query.transpose(1, 2) @ keys.transpose(2, 3), bias, head, dropout)
    attended: Tensor = weights.to(values.dtype) @ values
    return attended.transpose(1, 2).reshape(documents, count, heads * head)


def _weights(scores: Tensor, bias: Tensor, head: int, dropout: float) -> Tensor:
    """Return the weights of keys from unscaled scores, ``(documents, heads, globals, size)``."""
    scores = torch.add(bias[:, None], scores, alpha=1 / math.sqrt(head))
    return functional.dropout(scores.softmax(-1).to(scores.dtype), dropout)  # the softmax always sums in float32


def _single_bucket(packing: Packing, dtype: torch.dtype) -> list[_Bucket]:
    """Treat all documents as one, with a mask that confines each global token to its document."""
    slots = packing.global_slots
    bias = attention_bias((packing.document == packing.document[slots][:, None]) & packing.valid, dtype)[None]
    return [_Bucket(0, 1, packing.slots, len(slots), bias=bias, query_rows=slice(None))]


def _buckets_by_size(packing: Packing, dtype: torch.dtype) -> list[_Bucket]:
    """Group the documents with global tokens into one bucket per run of documents of the same size."""
    buckets, first = [], 0
    for (size, has_globals), group in groupby(packing.spans, key=lambda span: (span.size, bool(span.globals))):
        spans = list(group)
        if not has_globals:
            continue
        start, counts = spans[0].start, torch.tensor([len(span.globals) for span in spans])
        max_globals, total = int(counts.max()), int(counts.sum())
        valid = packing.valid[start : start + len(spans) * size].view(len(spans), 1, size)
        bias = attention_bias(valid, dtype)
        query_rows: slice | Tensor = slice(first, first + total)
        output_rows = None
        if total < len(spans) * max_globals:
            filled = (torch.arange(max_globals) < counts[:, None]).flatten()
            numbers = first + (filled.cumsum(0) - 1).clamp(min=0)
            query_rows, output_rows = to_device([numbers, filled.nonzero().squeeze(1)], valid.device)
        buckets.append(
            _Bucket(start, len(spans), size, max_globals, bias=bias, query_rows=query_rows, output_rows=output_rows)
        )
        first += total
    return buckets
