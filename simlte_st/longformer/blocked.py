"""Windowed attention in groups of chunks, through PyTorch's fused function or, on the CPU, matrix products.

The keys of a chunk are one contiguous stretch of its document, so the cost per token scales with the document length
for short documents, and with the window plus one chunk for long ones. Global tokens outside the stretch are extra
columns. A query sees nearby and global tokens; each token has one column, so none is counted twice.

PyTorch's fused attention on the CPU has no dropout, and its backward pass in bfloat16 takes twice as long as in
float32. The matrix products compute the weights of a few chunks at a time, and recompute them in the backward pass.
Dropout masks are not stored: they are hashed from a seed and the positions of query and key in their document, which
makes them identical in both passes and for any packing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from simlte_st.compat import softmax_gradient
from simlte_st.longformer.packing import BLOCK, PackedSpan, Packing, attention_bias, to_device

CHUNK = 128
"""Number of queries that share a stretch of keys: a larger chunk masks more keys, a smaller one makes the products less
efficient. Halved for windows up to this size."""

WEIGHTS = 1 << 20
"""Maximum number of attention weights to compute at once (4 MiB in float32)."""

_FAR = 1 << 24  # number of the first far key, beyond any position in a document
_ROW = 1_000_003  # difference between the query numbers of consecutive rows

_FIRST, _SECOND = 0x7FEB352D, -0x7B935975  # Wellons' hash "lowbias32"; its low bits are as random as its high bits
_GOLDEN = -0x61C88647  # 2 ** 32 / golden ratio


class QueryChunk(NamedTuple):
    """Consecutive queries and the keys within their window."""

    query: int  # first slot of the queries
    queries: int  # number of queries
    key: int  # first slot of the stretch of keys
    keys: int  # number of keys
    far: tuple[int, ...]  # slots of the document's global tokens that are outside the stretch
    plain: bool  # whether the mask depends on distance only: no padding and no global tokens in the stretch

    @property
    def shape(self) -> tuple[int, ...]:
        """Key for grouping chunks."""
        # Plain chunks share one mask, so they must also have the same offset from queries to keys.
        far = len(self.far) and 1 << (len(self.far) - 1).bit_length()
        return (self.queries, self.keys, far, self.plain, self.key - self.query if self.plain else 0)


def grouped_chunks(packing: Packing, window: int) -> list[list[QueryChunk]]:
    """Split documents into chunks, grouped by shape and ordered by slot."""
    groups: dict[tuple[int, ...], list[QueryChunk]] = {}
    for span in packing.spans:
        for chunk in _split_span(span, window // 2):
            groups.setdefault(chunk.shape, []).append(chunk)
    return list(groups.values())


def _split_span(span: PackedSpan, reach: int) -> Iterable[QueryChunk]:
    end = span.start + span.size
    size = CHUNK if 2 * reach > CHUNK else CHUNK // 2
    for query in range(span.start, end, size):
        stop = min(query + size, end)
        first = max(span.start, (query - reach - span.start) // BLOCK * BLOCK + span.start)
        last = min(end, -(-(stop + reach - span.start) // BLOCK) * BLOCK + span.start)
        far = tuple(slot for slot in span.globals if not first <= slot < last)
        plain = len(far) == len(span.globals) and not span.holes and last <= span.start + span.length
        yield QueryChunk(query, stop - query, first, last - first, far, plain)


def chunk_bias(packing: Packing, chunks: list[QueryChunk], window: int, dtype: torch.dtype) -> Tensor:
    """Return the additive attention mask of chunks of one shape, ``(chunks or 1, 1, queries, keys)``."""
    rows, columns = chunk_slots(chunks[:1] if chunks[0].plain else chunks, packing.valid.device)
    distance = (rows[:, :, None] - columns[:, None, :]).abs()
    visible = ((distance <= window // 2) | packing.is_global[columns][:, None]) & packing.valid[columns][:, None]
    # Padding attends to itself, because a softmax over nothing is NaN, which would spread to the gradients of every
    # weight. A finite bias would leak masked tokens in float16, where scores may differ by as much.
    visible |= distance == 0
    return attention_bias(visible, dtype)[:, None]


def far_columns(chunks: list[QueryChunk], device: torch.device) -> list[Tensor]:
    """Return the slots of far global tokens, padded, ``(chunks, far)``, and their mask, ``(chunks or 1, far)``."""
    width = chunks[0].shape[2]
    # Pad with the slot of the chunk's first query, which is always valid.
    slots = [[*chunk.far, *[chunk.query] * (width - len(chunk.far))] for chunk in chunks]
    real = torch.arange(width) < torch.tensor([len(chunk.far) for chunk in chunks])[:, None]
    columns = torch.tensor(slots, dtype=torch.int64).view(len(chunks), width)
    return to_device([columns, real[:1] if real.all() else real], device)


def chunk_slots(chunks: list[QueryChunk], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the query slots, ``(chunks, queries)``, and key slots, ``(chunks, keys)``, of chunks of one shape."""
    [starts] = to_device([torch.tensor([(chunk.query, chunk.key) for chunk in chunks])], device)
    rows = starts[:, :1] + torch.arange(chunks[0].queries, device=device)
    return rows, starts[:, 1:] + torch.arange(chunks[0].keys, device=device)


class Group(NamedTuple):
    """Chunks of one shape."""

    rows: Tensor  # slots of the queries, (chunks, queries), int64
    columns: Tensor  # slots of the keys, (chunks, keys + far), int64; arbitrary at padding
    bias: Tensor  # additive mask, 0 where a query sees a key, (chunks or 1, 1, queries, keys + far)
    row_numbers: Tensor  # a unique number for each query of the batch, (chunks, queries), int32
    column_numbers: Tensor  # a unique number for each pair of keys of a document, (chunks, columns / 2), int32

    def parts(self, heads: int) -> Iterator[Group]:
        """Split the group into parts of at most :data:`WEIGHTS` weights."""
        size = max(1, WEIGHTS // (heads * self.rows.shape[1] * self.columns.shape[1]))
        for start in range(0, len(self.rows), size):
            part = slice(start, start + size)
            bias = self.bias if len(self.bias) == 1 else self.bias[part]
            yield Group(self.rows[part], self.columns[part], bias, self.row_numbers[part], self.column_numbers[part])


def group_chunks(packing: Packing, window: int, dtype: torch.dtype) -> list[Group]:
    """Split a batch into groups of chunks of the same shape."""
    device, groups = packing.valid.device, []
    positions = packing.positions.int()
    row_numbers = (packing.source // max(1, packing.width)).int() * _ROW + positions
    for chunks in grouped_chunks(packing, window):
        rows, columns = chunk_slots(chunks, device)
        bias = chunk_bias(packing, chunks, window, dtype)
        numbers = positions[columns[:, ::2]] // 2  # every stretch begins at an even position
        far, real = far_columns(chunks, device)
        if far.shape[1]:
            far_bias = attention_bias(real, dtype)
            shape = (max(len(bias), len(far_bias)), 1, rows.shape[1])
            bias = torch.cat([bias.expand(*shape, -1), far_bias[:, None, None].expand(*shape, -1)], dim=-1)
            columns = torch.cat([columns, far], dim=1)
            far_numbers = torch.arange(_FAR, _FAR + (far.shape[1] + 1) // 2, dtype=torch.int32, device=device)
            numbers = torch.cat([numbers, far_numbers.expand(len(chunks), -1)], dim=1)
        groups.append(Group(rows, columns, bias, row_numbers[rows], numbers))
    return groups


def fused_attention(query: Tensor, key: Tensor, value: Tensor, groups: list[Group], dropout: float) -> Tensor:
    """Attend through PyTorch's fused function; return the groups' outputs, ``(rows, heads * size)``, concatenated.

    cuDNN's kernel is excluded: on an H200, planning for each new shape took six times as long as the attention itself.
    """
    outputs = []
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        for group in groups:
            inputs = _gather(query, group.rows), _gather(key, group.columns), _gather(value, group.columns)
            output = functional.scaled_dot_product_attention(*inputs, attn_mask=group.bias, dropout_p=dropout)
            outputs.append(_flatten_chunks(output).flatten(1))
    return torch.cat(outputs)


def dropout_mask(group: Group, heads: int, dropout: float, seed: int, dtype: torch.dtype) -> Tensor:
    """Draw the dropout mask, ``(chunks, heads, queries, columns)``: 0 drops a weight, 1 keeps it."""
    start = _hash(torch.arange(heads, dtype=torch.int32) * _GOLDEN + ((seed + 2**31) % 2**32 - 2**31))
    rows = _hash(group.row_numbers[:, None] * _GOLDEN ^ start[None, :, None])
    columns = _hash(group.column_numbers * _GOLDEN)
    # The sum of two hashes still shows a pattern of rows and columns; two more rounds remove it.
    numbers = rows[..., None] + columns[:, None, None]
    shifted = numbers >> 15
    numbers ^= shifted
    numbers *= _FIRST
    torch.bitwise_right_shift(numbers, 15, out=shifted)
    numbers ^= shifted
    numbers *= _SECOND
    torch.bitwise_right_shift(numbers, 16, out=shifted)
    shifted &= 0xFFFF  # the arithmetic shift extends the sign, which would bias half of the draws
    numbers ^= shifted
    halves = numbers.view(torch.int16)  # two draws from each number
    return halves.ge_(round(dropout * 65536) - 32768).to(dtype)[..., : group.columns.shape[1]]


def _hash(numbers: Tensor) -> Tensor:
    """Hash 32-bit integers."""
    numbers = numbers ^ (numbers >> 16 & 0xFFFF)
    numbers = numbers * _FIRST
    numbers = numbers ^ (numbers >> 15 & 0x1FFFF)
    numbers = numbers * _SECOND
    return numbers ^ (numbers >> 16 & 0xFFFF)


class ProductAttention(torch.autograd.Function):
    """Windowed attention over queries, keys and values, each ``(slots, heads, size)``, computed group by group."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, groups: list[Group], dropout: float, seed: int
    ) -> Tensor:
        """Return the output, in the shape and dtype of the queries."""
        out = torch.empty_like(query)
        scaled = query / math.sqrt(query.shape[-1])
        for group in groups:
            for part in group.parts(query.shape[1]):
                weights = _weights(_gather(scaled, part.rows), _gather(key, part.columns), part)
                if dropout:
                    weights *= dropout_mask(part, query.shape[1], dropout, seed, query.dtype)
                out[part.rows.flatten()] = _flatten_chunks(weights @ _gather(value, part.columns))
        ctx.save_for_backward(query, key, value)
        ctx.groups, ctx.dropout, ctx.seed = groups, dropout, seed
        return out.mul_(1 / (1 - dropout)) if dropout else out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        """Recompute the weights, and return the gradients of queries, keys and values."""
        query, key, value = ctx.saved_tensors
        scale = 1 / math.sqrt(query.shape[-1])
        scaled, grad = query * scale, grad / (1 - ctx.dropout)
        wide = torch.promote_types(query.dtype, torch.float32)  # for sums over the chunks that share a key
        query_grad = torch.empty_like(query)
        key_grad, value_grad = (torch.zeros(key.shape, dtype=wide, device=key.device) for _ in range(2))
        for group in ctx.groups:
            for part in group.parts(query.shape[1]):
                columns, queries, grads = part.columns.flatten(), _gather(scaled, part.rows), _gather(grad, part.rows)
                keys = _gather(key, part.columns)
                weights = _weights(queries, keys, part)
                weights_grad = grads @ _gather(value, part.columns).transpose(2, 3)
                used = weights
                if ctx.dropout:
                    mask = dropout_mask(part, query.shape[1], ctx.dropout, ctx.seed, query.dtype)
                    used = weights * mask
                    weights_grad *= mask
                value_grad.index_add_(0, columns, _flatten_chunks(used.transpose(2, 3) @ grads).to(wide))
                scores_grad = softmax_gradient(weights_grad, weights)
                query_grad[part.rows.flatten()] = _flatten_chunks(scores_grad @ keys) * scale
                key_grad.index_add_(0, columns, _flatten_chunks(scores_grad.transpose(2, 3) @ queries).to(wide))
        return query_grad, key_grad.to(key.dtype), value_grad.to(value.dtype), None, None, None


def _gather(states: Tensor, slots: Tensor) -> Tensor:
    """Gather states ``(slots, heads, size)`` at ``slots`` ``(chunks, length)`` to ``(chunks, heads, length, size)``."""
    return states.index_select(0, slots.flatten()).view(*slots.shape, *states.shape[1:]).transpose(1, 2)


def _flatten_chunks(states: Tensor) -> Tensor:
    """Reshape ``(chunks, heads, length, size)`` to ``(chunks * length, heads, size)``, which is copied.

    Adding the rows of a view to other rows takes ten times as long.
    """
    return states.transpose(1, 2).flatten(0, 1).contiguous()


def _weights(queries: Tensor, keys: Tensor, part: Group) -> Tensor:
    """Return the attention weights before dropout, ``(chunks, heads, queries, keys + far)``."""
    return (queries @ keys.transpose(2, 3)).add_(part.bias).softmax(-1)
