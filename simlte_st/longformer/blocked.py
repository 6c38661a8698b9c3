"""Windowed attention in blocks: which way of computing it is taken where, and the one of GPUs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from simlte_st.longformer.chunks import by_shape, chunk_bias, chunks_of, far_columns, hidden_bias, ranges
from simlte_st.longformer.cpu_kernel import cpu_attention, has_cpu_kernel
from simlte_st.longformer.packing import Packing
from simlte_st.longformer.products import Group, ProductAttention

_FAR = 1 << 24  # numbers of far keys begin here, beyond those of all places in a document
_ROW = 1_000_003  # numbers of a row's queries are so far from those of the next row's


def blocked_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: Packing, window: int, dropout: float = 0.0
) -> Tensor:
    """Attend within windows and to global tokens, all through the local projections."""
    on_cpu = query.device.type == "cpu"
    slow = query.dtype != torch.float32 and torch.is_grad_enabled()  # the fused kernel's backward pass, see products
    if on_cpu and dropout == 0.0 and has_cpu_kernel() and not slow:
        return cpu_attention(query, key, value, packing, window)
    groups = packing.once(("groups", window, query.dtype), lambda: _groups(packing, window, query.dtype))
    if on_cpu:
        # Drawn from the global numbers, so that a run that is resumed, or a layer that is recomputed, has the same.
        seed = int(torch.randint(2**31, ())) if dropout else 0
        attended: Tensor = ProductAttention.apply(query, key, value, groups, dropout, seed)  # type: ignore[no-untyped-call]
        return attended.flatten(1)
    outputs = [_attend(query, key, value, group.rows, group.columns, group.bias, dropout) for group in groups]
    back = packing.once(("back", window), lambda: torch.cat([group.rows.flatten() for group in groups]).argsort())
    return torch.cat(outputs).index_select(0, back)


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
    start = torch.tensor([span.start for span in packing.spans], device=device)
    place = (torch.arange(packing.slots, device=device) - start[packing.document]).int()
    row = (packing.source // max(1, packing.width)).int() * _ROW + place
    for chunks in by_shape(chunks_of(packing, window)):
        rows = ranges([chunk.query for chunk in chunks], chunks[0].queries, device)
        columns = ranges([chunk.key for chunk in chunks], chunks[0].keys, device)
        bias = chunk_bias(packing, chunks, window, dtype)
        numbers = place[columns[:, ::2]] // 2  # stretches begin at even places
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
            others = torch.arange(_FAR, _FAR + (far.shape[1] + 1) // 2, dtype=torch.int32, device=device)
            numbers = torch.cat([numbers, others.expand(len(chunks), -1)], dim=1)
        groups.append(Group(rows, columns, bias, row[rows], numbers))
    return groups
