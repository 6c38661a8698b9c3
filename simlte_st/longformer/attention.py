"""Longformer attention over packed documents.

A token attends to tokens of its document at most half a window away and to those with global attention, each once, in
one softmax. A token with global attention attends to its whole document, through projections of its own.

Global tokens are few, so the global keys and values of the whole document are never computed. A key's score is
``q . (W x + b) = (W^T q) . x + q . b``: the query is carried back through the projection once, and so is the weighted
sum of values. This takes ``heads * tokens`` numbers per global token instead of ``hidden * tokens`` per document.
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
from simlte_st.longformer.cpu_kernel import cpu_attention, has_cpu_kernel
from simlte_st.longformer.packing import PackedSpan, Packing, to_device
from simlte_st.longformer.varlen import DEVICE, accepts, varlen_attention


class LongformerSelfAttention(nn.Module):
    """A layer's attention with its six projections, named as in the stock Longformer.

    References:
        Longformer, section 3.1; equation 1 for both sets of projections.
    """

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

    def forward(self, hidden: Tensor, packing: Packing) -> Tensor:
        """Attend within windows, to global tokens and from them."""
        dropout = self.dropout if self.training else 0.0
        if packing.slots == 0:
            return hidden
        query, key, value = self._projected(hidden)
        if varlen := accepts(query, packing):
            local = varlen_attention(query, key, value, packing, self.window, dropout)
        else:
            trained = self.training or torch.is_grad_enabled()  # checkpointing runs a layer first without gradients
            local = windowed_attention(query, key, value, packing, self.window, dropout, trained)
        if len(packing.global_slots) == 0:
            return local
        # Replaces the output of the local projections.
        rows = self._global_rows(hidden, packing, dropout, varlen)
        return local.index_copy(0, packing.global_slots, rows.to(local.dtype))

    def _projected(self, hidden: Tensor) -> list[Tensor]:
        """Return queries, keys and values, ``(slots, heads, size)``; from one product on a GPU, to launch it once."""
        local = (self.query, self.key, self.value)
        if hidden.device.type == DEVICE and all(map(_is_plain, local)):
            weight, bias = (torch.cat([getattr(each, name) for each in local]) for name in ("weight", "bias"))
            projected = functional.linear(hidden, weight, bias).chunk(3, dim=1)
        else:
            projected = tuple(each(hidden) for each in local)
        return [each.view(len(hidden), self.heads, -1) for each in projected]

    def _global_rows(self, hidden: Tensor, packing: Packing, dropout: float, varlen: bool) -> Tensor:
        """Return the output of all global tokens, by slot, ``(globals, hidden)``."""
        query = self.query_global(hidden.index_select(0, packing.global_slots))
        query = (query / math.sqrt(query.shape[-1] // self.heads)).view(len(query), self.heads, -1)
        # Carrying back pays while a document has fewer queries (tokens x heads) than a hidden state has numbers. On a
        # GPU one product over all documents is faster than one for each size.
        plain = _is_plain(self.key_global) and _is_plain(self.value_global)
        make = _one_bucket if varlen and plain and len(query) * self.heads < hidden.shape[1] else _buckets
        buckets = packing.once((make, query.dtype), lambda: make(packing, query.dtype))
        most = max(bucket.most for bucket in buckets)
        attend = _carried_back if plain and most * self.heads < hidden.shape[1] else _projected_document
        outputs = []
        for bucket in buckets:
            states = hidden[bucket.start : bucket.start + bucket.documents * bucket.size]
            states = states.view(bucket.documents, bucket.size, -1)
            own = query[bucket.places].unflatten(0, (-1, bucket.most))
            attended = attend(states, own, self.key_global, self.value_global, bucket.bias, dropout).flatten(0, 1)
            outputs.append(attended if bucket.real is None else attended[bucket.real])
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)


def windowed_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float, trained: bool
) -> Tensor:
    """Attend through the local projections; ``trained`` announces a backward pass."""
    on_cpu = query.device.type == "cpu"
    slow = query.dtype != torch.float32 and trained  # the fused kernel's backward pass, see blocked
    if on_cpu and dropout == 0.0 and has_cpu_kernel() and not slow:
        return cpu_attention(query, key, value, packing, window)
    groups = packing.once(("groups", window, query.dtype), lambda: group_chunks(packing, window, query.dtype))
    if on_cpu:
        # From the global generator: resumed runs and recomputed layers draw the same seed.
        seed = int(torch.randint(2**31, ())) if dropout else 0
        attended: Tensor = ProductAttention.apply(query, key, value, groups, dropout, seed)  # type: ignore[no-untyped-call]
        return attended.flatten(1)
    outputs = fused_attention(query, key, value, groups, dropout)
    back = packing.once(("back", window), lambda: torch.cat([group.rows.flatten() for group in groups]).argsort())
    return outputs.index_select(0, back)


class _Bucket(NamedTuple):
    """Consecutive documents of one size that have global tokens."""

    start: int  # first slot of the first document
    documents: int  # number of documents
    size: int  # slots of each
    most: int  # most global tokens of a document
    bias: Tensor  # masks padding and other documents: added to the scores, (documents, 1 or most, size)
    places: slice | Tensor  # numbers of their global tokens in the batch; any where one is missing, (documents * most,)
    real: Tensor | None = None  # int64, rows of their output; None if no token is missing


def _is_plain(linear: nn.Module) -> bool:
    """Return whether a projection is a plain linear layer, without adapter, quantisation or hook."""
    plain = type(linear) is nn.Linear and type(linear.weight) in (nn.Parameter, Tensor) and linear.bias is not None
    return plain and not has_hooks(linear)


def _carried_back(
    states: Tensor, query: Tensor, key: nn.Linear, value: nn.Linear, bias: Tensor, dropout: float
) -> Tensor:
    """Attend from ``query``, ``(documents, most, heads, size)``, without projecting ``states``."""
    documents, most, heads, head = query.shape

    def by_document(x: Tensor) -> Tensor:
        return x.view(heads, documents, most, -1).transpose(0, 1)

    def by_head(x: Tensor) -> Tensor:
        return x.view(documents, heads, most, -1).transpose(0, 1).flatten(1, 2)

    # One matrix product a head: (heads, documents * most, head) @ (heads, head, hidden).
    query = query.flatten(0, 1).transpose(0, 1)
    back = by_document(torch.bmm(query, key.weight.view(heads, head, -1))).flatten(1, 2)
    scores = torch.bmm(back.to(states.dtype), states.transpose(1, 2)).view(documents, heads, most, -1)
    scores = scores + by_document(torch.bmm(query, key.bias.view(heads, head, 1))) + bias[:, None]
    weights = _softmax(scores, dropout, scores.dtype)
    sums = by_head(torch.bmm(weights.flatten(1, 2).to(states.dtype), states))
    attended = torch.bmm(sums, value.weight.view(heads, head, -1).transpose(1, 2))
    # After dropout the weights no longer sum to one.
    total = by_head(weights.sum(-1)) if dropout else 1.0
    attended = attended + total * value.bias.view(heads, 1, head)
    return attended.transpose(0, 1).reshape(documents, most, heads * head)


def _projected_document(
    states: Tensor, query: Tensor, key: nn.Module, value: nn.Module, bias: Tensor, dropout: float
) -> Tensor:
    """Attend as :func:`_carried_back` does, to projected documents."""
    documents, most, heads, head = query.shape
    keys, values = (each(states).view(documents, -1, heads, head).transpose(1, 2) for each in (key, value))
    scores = query.transpose(1, 2) @ keys.transpose(2, 3) + bias[:, None]
    attended: Tensor = _softmax(scores, dropout, scores.dtype).to(values.dtype) @ values
    return attended.transpose(1, 2).reshape(documents, most, heads * head)


def _softmax(scores: Tensor, dropout: float, dtype: torch.dtype) -> Tensor:
    return functional.dropout(scores.softmax(-1).to(dtype), dropout)  # the sums are in 32 bits in any case


def _one_bucket(packing: Packing, dtype: torch.dtype) -> list[_Bucket]:
    """Return all documents as one, with a mask that confines each global token to its own."""
    slots = packing.global_slots
    sees = (packing.document == packing.document[slots][:, None]) & packing.valid
    bias = torch.zeros(sees.shape, dtype=dtype, device=slots.device).masked_fill(~sees, float("-inf"))
    return [_Bucket(0, 1, packing.slots, len(slots), bias[None], slice(None))]


def _buckets(packing: Packing, dtype: torch.dtype) -> list[_Bucket]:
    buckets, before = [], 0
    # A bucket is contiguous: a document without global tokens ends it.
    for key, group in groupby(packing.spans, key=lambda span: (span.size, bool(span.globals))):
        spans: list[PackedSpan] = list(group)
        if not key[1]:
            continue
        start, size, device = spans[0].start, spans[0].size, packing.valid.device
        counts = torch.tensor([len(span.globals) for span in spans])
        most, total = int(counts.max()), int(counts.sum())
        valid = packing.valid[start : start + len(spans) * size].view(len(spans), 1, size)
        bias = torch.zeros(valid.shape, dtype=dtype, device=device).masked_fill(~valid, float("-inf"))
        bucket = _Bucket(start, len(spans), size, most, bias, slice(before, before + total))
        if total < len(spans) * most:
            real = torch.arange(most) < counts[:, None]
            places = before + (real.flatten().cumsum(0) - 1).clamp(min=0)
            places, real = to_device([places, real.flatten().nonzero().squeeze(1)], device)
            bucket = bucket._replace(places=places, real=real)
        buckets.append(bucket)
        before += total
    return buckets
