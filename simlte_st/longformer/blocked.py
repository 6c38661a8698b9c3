"""Windowed attention in blocks through PyTorch's own fused attention: everywhere, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from simlte_st.longformer.chunks import by_shape, chunk_bias, chunks_of, far_columns, hidden_bias, ranges
from simlte_st.longformer.cpu_kernel import cpu_attention, has_cpu_kernel
from simlte_st.longformer.packing import Packing

WEIGHTS = 1 << 24
"""Attention weights that are held at once where PyTorch would hold them all: 64 MiB of 32-bit floats."""


@dataclass(frozen=True)
class Group:
    """Chunks of one shape.

    Attributes:
        rows: Slots of the queries, ``(chunks, queries)``, int64.
        columns: Slots of the keys, ``(chunks, keys + far)``, int64; a missing far one is any slot.
        bias: Added to the scores: zero where a query sees a key, ``(chunks or 1, 1, queries, keys + far)``.
    """

    rows: Tensor
    columns: Tensor
    bias: Tensor


def blocked_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float = 0.0
) -> Tensor:
    """Attend within windows and to global tokens, all through the local projections.

    Args:
        query: ``(slots, heads, size)``, any floating dtype.
        key: Same shape.
        value: Same shape.
        packing: How documents stand in the slots.
        window: Tokens seen on both sides together, even.
        dropout: Probability of dropping an attention weight.

    Returns:
        ``(slots, heads * size)``, the queries' dtype.
    """
    if query.device.type == "cpu" and dropout == 0.0 and has_cpu_kernel():
        return cpu_attention(query, key, value, packing, window)
    groups = packing.once(("groups", window, query.dtype), lambda: _groups(packing, window, query.dtype))
    outputs = []
    for group in groups:
        if dropout and query.device.type == "cpu":
            # With dropout, PyTorch's attention on the CPU holds the weights for the backward pass, many times as much
            # as anything else: they are made in parts and computed twice instead, with the same draw.
            for rows, columns, bias in _parts(group, query.shape[1]):
                inputs = (query, key, value, rows, columns, bias, dropout)
                outputs.append(checkpoint(_attend, *inputs, use_reentrant=False))
        else:
            outputs.append(_attend(query, key, value, group.rows, group.columns, group.bias, dropout))
    back = packing.once(("back", window), lambda: torch.cat([group.rows.flatten() for group in groups]).argsort())
    return torch.cat(outputs).index_select(0, back)


def _parts(group: Group, heads: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Part the chunks of a group, so that the weights of a part stay below :data:`WEIGHTS`."""
    weights = heads * group.rows.shape[1] * group.columns.shape[1]
    size = max(1, WEIGHTS // weights)
    for start in range(0, len(group.rows), size):
        part = slice(start, start + size)
        yield group.rows[part], group.columns[part], group.bias if len(group.bias) == 1 else group.bias[part]


def _attend(
    query: Tensor, key: Tensor, value: Tensor, rows: Tensor, columns: Tensor, bias: Tensor, dropout: float
) -> Tensor:
    count, width = columns.shape
    attended: Tensor = functional.scaled_dot_product_attention(
        query.index_select(0, rows.flatten()).view(count, -1, *query.shape[1:]).transpose(1, 2),
        key.index_select(0, columns.flatten()).view(count, width, *key.shape[1:]).transpose(1, 2),
        value.index_select(0, columns.flatten()).view(count, width, *value.shape[1:]).transpose(1, 2),
        attn_mask=bias,
        dropout_p=dropout,
    )
    return attended.transpose(1, 2).flatten(2).flatten(0, 1)


def _groups(packing: Packing, window: int, dtype: torch.dtype) -> list[Group]:
    device = packing.valid.device
    groups = []
    for chunks in by_shape(chunks_of(packing, window)):
        rows = ranges([chunk.query for chunk in chunks], chunks[0].queries, device)
        columns = ranges([chunk.key for chunk in chunks], chunks[0].keys, device)
        bias = chunk_bias(packing, chunks, window, dtype)
        far, real = far_columns(chunks, device)
        if far.shape[1]:
            if real.all():
                beside = torch.zeros(1, 1, 1, far.shape[1], dtype=dtype, device=device)
            else:
                beside = torch.zeros(real.shape, dtype=dtype, device=device)
                beside = beside.masked_fill(~real, hidden_bias(dtype))[:, None, None]
            count = max(len(bias), len(beside))
            shape = (count, 1, rows.shape[1])
            bias = torch.cat([bias.expand(*shape, -1), beside.expand(*shape, -1)], dim=-1)
            columns = torch.cat([columns, far], dim=1)
        groups.append(Group(rows, columns, bias))
    return groups
