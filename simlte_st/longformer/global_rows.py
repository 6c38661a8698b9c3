"""What tokens with global attention see: all of their document, through projections of their own.

There are few such tokens, so the global keys and values of the whole document are never made. A key's score is
``q . (W x + b) = (W^T q) . x + q . b``: the query is carried back through the projection once, and so is the weighted
sum of values. That is ``heads * tokens`` numbers a global token instead of ``hidden * tokens`` a document.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.longformer.packing import Packing, Span


class GlobalProjections(NamedTuple):
    """The projections that global attention uses, ``hidden`` to ``hidden`` each."""

    query: nn.Module
    key: nn.Module
    value: nn.Module


@dataclass(frozen=True)
class _Bucket:
    """Documents of one size with global tokens.

    Attributes:
        start: First slot of the first of them; they stand one after another.
        documents: How many they are.
        size: Slots of each.
        queries: Index of each document's global tokens in the list of all, ``(documents, most)``; missing ones are 0.
        real: Which of them are there, ``(documents, most)``, bool; None where all are.
        bias: What masks padding: added to the scores, ``(documents, 1, size)``.
    """

    start: int
    documents: int
    size: int
    queries: Tensor
    real: Tensor | None
    bias: Tensor


def global_rows(
    hidden: Tensor, projections: GlobalProjections, heads: int, packing: Packing, dropout: float
) -> tuple[Tensor, Tensor] | None:
    """Compute the attention of all global tokens.

    References:
        Longformer, section 3.1, "Linear projections for global attention".
    """
    slots = packing.once("global slots", lambda: packing.is_global.nonzero().squeeze(1))
    if len(slots) == 0:
        return None
    query = projections.query(hidden.index_select(0, slots))
    query = (query / math.sqrt(query.shape[-1] // heads)).view(len(slots), heads, -1)
    buckets = packing.once(("global buckets", query.dtype), lambda: _buckets(packing, query.dtype))
    most = max(bucket.queries.shape[1] for bucket in buckets)
    # Carrying back pays as long as a document's queries are fewer than the numbers in a hidden state.
    plain = all(_is_plain(linear) for linear in (projections.key, projections.value))
    attend = _carried_back if plain and most * heads < hidden.shape[1] else _projected
    outputs, places = [], []
    for bucket in buckets:
        states = hidden[bucket.start : bucket.start + bucket.documents * bucket.size]
        states = states.view(bucket.documents, bucket.size, -1)
        attended = attend(states, query[bucket.queries], projections, bucket.bias, dropout)
        if bucket.real is None:
            outputs.append(attended.flatten(0, 1))
            places.append(bucket.queries.flatten())
        else:
            outputs.append(attended[bucket.real])
            places.append(bucket.queries[bucket.real])
    return slots.index_select(0, torch.cat(places)), torch.cat(outputs)


def _is_plain(linear: nn.Module) -> bool:
    """Return whether a projection is its weight and bias and nothing else: no adapter, no quantisation, no hook."""
    return type(linear) is nn.Linear and not linear._forward_hooks and not linear._forward_pre_hooks


def _carried_back(
    states: Tensor, query: Tensor, projections: GlobalProjections, bias: Tensor, dropout: float
) -> Tensor:
    """Attend without projecting the document."""
    documents, most, heads, head = query.shape
    key, value = projections.key, projections.value
    assert isinstance(key, nn.Linear)
    assert isinstance(value, nn.Linear)
    # One matrix product a head: (heads, documents * most, head) @ (heads, head, hidden).
    by_head = query.flatten(0, 1).transpose(0, 1)
    back = torch.bmm(by_head, key.weight.view(heads, head, -1)).view(heads, documents, most, -1)
    back = back.permute(1, 2, 0, 3).reshape(documents, most * heads, -1).to(states.dtype)
    scores = torch.bmm(back, states.transpose(1, 2))
    if key.bias is not None:
        scores = scores + (query * key.bias.view(heads, head)).sum(-1).view(documents, most * heads, 1)
    weights = _weights(scores + bias, dropout)
    sums = torch.bmm(weights.to(states.dtype), states).view(documents * most, heads, -1).transpose(0, 1)
    attended: Tensor = torch.bmm(sums, value.weight.view(heads, head, -1).transpose(1, 2)).transpose(0, 1)
    if value.bias is not None:
        # After dropout the weights no longer sum to one.
        total = weights.sum(-1).view(documents * most, heads, 1)
        attended = attended + total * value.bias.view(heads, head)
    return attended.reshape(documents, most, heads * head)


def _projected(states: Tensor, query: Tensor, projections: GlobalProjections, bias: Tensor, dropout: float) -> Tensor:
    """Attend to the projected document; arguments and result are those of :func:`_carried_back`."""
    documents, most, heads, head = query.shape
    key, value = (
        projection(states).view(documents, -1, heads, head).transpose(1, 2)
        for projection in (projections.key, projections.value)
    )
    weights = _weights(query.transpose(1, 2) @ key.transpose(2, 3) + bias[:, None], dropout)
    attended: Tensor = weights.to(value.dtype) @ value
    return attended.transpose(1, 2).reshape(documents, most, heads * head)


def _weights(scores: Tensor, dropout: float) -> Tensor:
    weights: Tensor = functional.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)
    return functional.dropout(weights, dropout)


def _buckets(packing: Packing, dtype: torch.dtype) -> list[_Bucket]:
    buckets, before = [], 0
    # A document without global tokens parts its neighbours.
    for key, group in groupby(packing.spans, key=lambda span: (span.size, bool(span.globals))):
        spans: list[Span] = list(group)
        if not key[1]:
            continue
        start, size, device = spans[0].start, spans[0].size, packing.valid.device
        counts = torch.tensor([len(span.globals) for span in spans])
        places = torch.arange(int(counts.max()))
        real = places < counts[:, None]
        queries = (before + (counts.cumsum(0) - counts)[:, None] + places).where(real, 0)
        before += int(counts.sum())
        valid = packing.valid[start : start + len(spans) * size].view(len(spans), 1, size)
        bias = torch.zeros(valid.shape, dtype=dtype, device=device).masked_fill(~valid, float("-inf"))
        complete = bool(real.all())
        buckets.append(
            _Bucket(start, len(spans), size, queries.to(device), None if complete else real.to(device), bias)
        )
    return buckets
