"""Windowed attention in groups of chunks, through PyTorch's fused function or, on the CPU, matrix products.

The keys of a chunk are one contiguous stretch of its document: short documents cost only their own tokens, and long
ones the window and one chunk. Global tokens outside the stretch are extra columns. A query sees real tokens that are
near or global; every token has one column, so none counts twice.

PyTorch's fused attention on the CPU has no dropout, and its backward pass in bfloat16 takes twice as long as in
float32. The products compute the weights of a few chunks at a time, and again in the backward pass. Dropout masks are
not stored: they are hashed from a seed and the positions of query and key in their document, so they are the same both
times and for any packing.
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
from simlte_st.longformer.packing import BLOCK, PackedSpan, Packing, to_device

CHUNK = 128
"""Queries that share a stretch of keys: more would mask more keys, fewer would shrink the products. Halved for windows
up to this size."""

WEIGHTS = 1 << 20
"""Attention weights computed at once: 4 MiB in float32."""

_FAR = 1 << 24  # far keys are numbered from here, beyond all positions in a document
_ROW = 1_000_003  # offset between the query numbers of one row and the next

_FIRST, _SECOND = 0x7FEB352D, -0x7B935975  # Wellons' hash "lowbias32", whose low and high bits are equally good
_GOLDEN = -0x61C88647  # 2 ** 32 / golden ratio


class QueryChunk(NamedTuple):
    """Consecutive queries and the keys in their reach."""

    query: int  # first slot of the queries
    queries: int  # number of queries
    key: int  # first slot of the stretch of keys
    keys: int  # number of keys
    far: tuple[int, ...]  # slots of the document's global tokens outside the stretch
    plain: bool  # whether distance alone decides: all slots are real and no global token is in the stretch

    @property
    def shape(self) -> tuple[int, ...]:
        """The key by which chunks are grouped."""
        # Plain chunks share one mask, so the offset from queries to keys must match too.
        far = len(self.far) and 1 << (len(self.far) - 1).bit_length()
        return (self.queries, self.keys, far, self.plain, self.key - self.query if self.plain else 0)


def grouped_chunks(packing: Packing, window: int) -> list[list[QueryChunk]]:
    """Split documents into chunks, grouped by shape and ordered by slot."""
    groups: dict[tuple[int, ...], list[QueryChunk]] = {}
    for span in packing.spans:
        for chunk in _cut(span, window // 2):
            groups.setdefault(chunk.shape, []).append(chunk)
    return list(groups.values())


def _cut(span: PackedSpan, reach: int) -> Iterable[QueryChunk]:
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
    """Return the mask of chunks of one shape, added to their scores, ``(chunks or 1, 1, queries, keys)``."""
    rows, columns = chunk_slots(chunks[:1] if chunks[0].plain else chunks, packing.valid.device)
    distance = (rows[:, :, None] - columns[:, None, :]).abs()
    sees = ((distance <= window // 2) | packing.is_global[columns][:, None]) & packing.valid[columns][:, None]
    # Padding sees itself: a softmax over nothing is NaN, and would spread to the gradients of every weight. A finite
    # bias would leak masked tokens in float16, where scores may differ by as much.
    sees |= distance == 0
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill(~sees, float("-inf"))[:, None]


def far_columns(chunks: list[QueryChunk], device: torch.device) -> list[Tensor]:
    """Return the slots of far global tokens, padded, ``(chunks, far)``, and which are real, ``(chunks or 1, far)``."""
    most = chunks[0].shape[2]
    # Pad with the chunk's first query, a valid slot.
    slots = [[*chunk.far, *[chunk.query] * (most - len(chunk.far))] for chunk in chunks]
    real = torch.arange(most) < torch.tensor([len(chunk.far) for chunk in chunks])[:, None]
    columns = torch.tensor(slots, dtype=torch.int64).view(len(chunks), most)
    return to_device([columns, real[:1] if real.all() else real], device)


def chunk_slots(chunks: list[QueryChunk], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the slots of queries and of keys of chunks of one shape, ``(chunks, queries or keys)``, int64."""
    [first] = to_device([torch.tensor([(chunk.query, chunk.key) for chunk in chunks])], device)
    rows = first[:, :1] + torch.arange(chunks[0].queries, device=device)
    return rows, first[:, 1:] + torch.arange(chunks[0].keys, device=device)


class Group(NamedTuple):
    """Chunks of one shape."""

    rows: Tensor  # slots of the queries, (chunks, queries), int64
    columns: Tensor  # slots of the keys, (chunks, keys + far), int64; a missing far key has any slot
    bias: Tensor  # added to the scores: 0 where a query sees a key, (chunks or 1, 1, queries, keys + far)
    row_numbers: Tensor  # unique for each query of a batch, (chunks, queries), int32
    column_numbers: Tensor  # unique for each pair of keys of a document, (chunks, half of the columns), int32

    def parts(self, heads: int) -> Iterator[Group]:
        """Split the group into parts of at most :data:`WEIGHTS` weights."""
        size = max(1, WEIGHTS // (heads * self.rows.shape[1] * self.columns.shape[1]))
        for start in range(0, len(self.rows), size):
            part = slice(start, start + size)
            bias = self.bias if len(self.bias) == 1 else self.bias[part]
            yield Group(self.rows[part], self.columns[part], bias, self.row_numbers[part], self.column_numbers[part])


def group_chunks(packing: Packing, window: int, dtype: torch.dtype) -> list[Group]:
    """Return all chunks of a batch in groups."""
    device, groups = packing.valid.device, []
    place = packing.places().int()
    row = (packing.source // max(1, packing.width)).int() * _ROW + place
    for chunks in grouped_chunks(packing, window):
        rows, columns = chunk_slots(chunks, device)
        bias = chunk_bias(packing, chunks, window, dtype)
        numbers = place[columns[:, ::2]] // 2  # stretches begin at even places
        far, real = far_columns(chunks, device)
        if far.shape[1]:
            beside = torch.zeros(real.shape, dtype=dtype, device=device).masked_fill(~real, float("-inf"))
            count = max(len(bias), len(beside))
            shape = (count, 1, rows.shape[1])
            bias = torch.cat([bias.expand(*shape, -1), beside[:, None, None].expand(*shape, -1)], dim=-1)
            columns = torch.cat([columns, far], dim=1)
            others = torch.arange(_FAR, _FAR + (far.shape[1] + 1) // 2, dtype=torch.int32, device=device)
            numbers = torch.cat([numbers, others.expand(len(chunks), -1)], dim=1)
        groups.append(Group(rows, columns, bias, row[rows], numbers))
    return groups


def fused_attention(query: Tensor, key: Tensor, value: Tensor, groups: list[Group], dropout: float) -> Tensor:
    """Attend through PyTorch's function; return ``(chunks * queries of all groups, heads * size)``.

    cuDNN's kernel is excluded: it plans every new shape, which took six times as long as the attention on an H200.
    """
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        attended = [
            functional.scaled_dot_product_attention(
                _taken(query, group.rows),
                _taken(key, group.columns),
                _taken(value, group.columns),
                attn_mask=group.bias,
                dropout_p=dropout,
            )
            for group in groups
        ]
    return torch.cat([_given(each).flatten(1) for each in attended])


def kept(group: Group, heads: int, dropout: float, seed: int, dtype: torch.dtype) -> Tensor:
    """Draw the dropout mask, ``(chunks, heads, queries, columns)``: 1 for kept weights."""
    start = _mixed(torch.arange(heads, dtype=torch.int32) * _GOLDEN + ((seed + 2**31) % 2**32 - 2**31))
    rows = _mixed(group.row_numbers[:, None] * _GOLDEN ^ start[None, :, None])
    columns = _mixed(group.column_numbers * _GOLDEN)
    # Both are hashed, so two more rounds remove the pattern of rows and columns from their sum.
    numbers = rows[..., None] + columns[:, None, None]
    other = numbers >> 15
    numbers ^= other
    numbers *= _FIRST
    torch.bitwise_right_shift(numbers, 15, out=other)
    numbers ^= other
    numbers *= _SECOND
    torch.bitwise_right_shift(numbers, 16, out=other)
    other &= 0xFFFF  # the shift extends the sign, which would bias half of the draws
    numbers ^= other
    halves = numbers.view(torch.int16)  # two draws from every number
    return halves.ge_(round(dropout * 65536) - 32768).to(dtype)[..., : group.columns.shape[1]]


def _mixed(numbers: Tensor) -> Tensor:
    """Hash 32-bit integers."""
    numbers = numbers ^ (numbers >> 16 & 0xFFFF)
    numbers = numbers * _FIRST
    numbers = numbers ^ (numbers >> 15 & 0x1FFFF)
    numbers = numbers * _SECOND
    return numbers ^ (numbers >> 16 & 0xFFFF)


class ProductAttention(torch.autograd.Function):
    """Attention of queries ``(slots, heads, size)`` to keys and values of the same shape, by groups of chunks."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, groups: list[Group], dropout: float, seed: int
    ) -> Tensor:
        """Attend; the result has the queries' shape and dtype."""
        out = torch.empty_like(query)
        scaled = query / math.sqrt(query.shape[-1])
        for group in groups:
            for part in group.parts(query.shape[1]):
                weights = _weights(scaled, key, part)
                if dropout:
                    weights *= kept(part, query.shape[1], dropout, seed, query.dtype)
                out[part.rows.flatten()] = _given(weights @ _taken(value, part.columns))
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
        wide = torch.promote_types(query.dtype, torch.float32)  # sums over the chunks that share a key
        to_query = torch.empty_like(query)
        to_key, to_value = (torch.zeros(key.shape, dtype=wide, device=key.device) for _ in range(2))
        for group in ctx.groups:
            for part in group.parts(query.shape[1]):
                rows, columns = part.rows.flatten(), part.columns.flatten()
                weights, grads = _weights(scaled, key, part), _taken(grad, part.rows)
                to_weights = grads @ _taken(value, part.columns).transpose(2, 3)
                used = weights
                if ctx.dropout:
                    mask = kept(part, query.shape[1], ctx.dropout, ctx.seed, query.dtype)
                    used = weights * mask
                    to_weights *= mask
                to_value.index_add_(0, columns, _given(used.transpose(2, 3) @ grads).to(wide))
                to_scores = softmax_gradient(to_weights, weights)
                to_query[rows] = _given(to_scores @ _taken(key, part.columns)) * scale
                to_key.index_add_(0, columns, _given(to_scores.transpose(2, 3) @ _taken(scaled, part.rows)).to(wide))
        return to_query, to_key.to(key.dtype), to_value.to(value.dtype), None, None, None


def _taken(x: Tensor, slots: Tensor) -> Tensor:
    """Return slots of ``(slots, heads, size)`` as ``(chunks, heads, slots of a chunk, size)``."""
    return x.index_select(0, slots.flatten()).view(*slots.shape, *x.shape[1:]).transpose(1, 2)


def _given(x: Tensor) -> Tensor:
    """Undo :func:`_taken`: ``(chunks * slots of a chunk, heads, size)``."""
    return x.transpose(1, 2).flatten(0, 1)


def _weights(scaled: Tensor, key: Tensor, part: Group) -> Tensor:
    """Return the weights before dropout, ``(chunks, heads, queries, keys + far)``."""
    scores = _taken(scaled, part.rows) @ _taken(key, part.columns).transpose(2, 3)
    scores += part.bias
    return torch.softmax(scores, -1)
