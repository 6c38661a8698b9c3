"""Chunks of queries and the stretches of keys that their windows reach.

A chunk's keys are one contiguous stretch of its own document, so short documents pay for themselves only, and long ones
for the window and one chunk. Tokens with global attention that stand outside the stretch are columns of their own. The
mask states the rule once: a query sees a real token that is near or global; every token has one column, so none is
counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from simlte_st.longformer.packing import BLOCK, Packing, Span

CHUNK = 128
"""Queries that share a stretch of keys: more of them compute more that the mask drops, fewer are smaller products. Of
windows up to as many, half of it."""


@dataclass(frozen=True)
class Chunk:
    """Queries and the keys they may see.

    Attributes:
        query: First slot of the queries.
        queries: How many.
        key: First slot of the stretch of keys.
        keys: How many.
        far: Global tokens of the document outside the stretch.
        plain: Whether all that matters is the distance: every slot is real and no global token is in the stretch.
    """

    query: int
    queries: int
    key: int
    keys: int
    far: tuple[int, ...]
    plain: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """What chunks must have in common to be computed together."""
        # Plain chunks share one mask, for which the distance of keys and queries must be the same too.
        far = len(self.far) and 1 << (len(self.far) - 1).bit_length()
        return (self.queries, self.keys, far, self.plain, self.key - self.query if self.plain else 0)


def chunks_of(packing: Packing, window: int) -> list[Chunk]:
    """Cut the documents into chunks."""
    return [chunk for span in packing.spans for chunk in _cut(span, window // 2)]


def by_shape(chunks: Iterable[Chunk]) -> list[list[Chunk]]:
    """Group chunks that can be computed together, in the order of their first slots."""
    groups: dict[tuple[int, ...], list[Chunk]] = {}
    for chunk in chunks:
        groups.setdefault(chunk.shape, []).append(chunk)
    return list(groups.values())


def _cut(span: Span, reach: int) -> Iterable[Chunk]:
    end = span.start + span.size
    size = CHUNK if 2 * reach > CHUNK else CHUNK // 2
    for query in range(span.start, end, size):
        stop = min(query + size, end)
        first = max(span.start, (query - reach - span.start) // BLOCK * BLOCK + span.start)
        last = min(end, -(-(stop + reach - span.start) // BLOCK) * BLOCK + span.start)
        near = [slot for slot in span.globals if first <= slot < last]
        far = tuple(slot for slot in span.globals if not first <= slot < last)
        plain = not near and not span.holes and last <= span.start + span.length
        yield Chunk(query, stop - query, first, last - first, far, plain)


def hidden_bias(dtype: torch.dtype) -> float:
    """Tell what is added to the score of a key that is not seen.

    It is finite: a query of the padding may see nothing, and a softmax over nothing would give NaN, which reaches the
    gradients of every weight. Half of the lowest, so that a score added to it cannot overflow.
    """
    return torch.finfo(dtype).min / 2


def chunk_bias(packing: Packing, chunks: list[Chunk], window: int, dtype: torch.dtype) -> Tensor:
    """Make the mask of the stretches of chunks of one shape, ``(chunks or 1, 1, queries, keys)``."""
    if chunks[0].plain:
        chunks = chunks[:1]
    device = packing.valid.device
    rows = ranges([chunk.query for chunk in chunks], chunks[0].queries, device)
    columns = ranges([chunk.key for chunk in chunks], chunks[0].keys, device)
    near = (rows[:, :, None] - columns[:, None, :]).abs() <= window // 2
    sees = (near | packing.is_global[columns][:, None]) & packing.valid[columns][:, None]
    return torch.zeros(sees.shape, dtype=dtype, device=device).masked_fill(~sees, hidden_bias(dtype))[:, None]


def far_columns(chunks: list[Chunk], device: torch.device) -> tuple[Tensor, Tensor]:
    """List the far global tokens of chunks of one shape: slots and which are there, ``(chunks, far)`` both."""
    most = chunks[0].shape[2]
    # A missing one points to the chunk's own first query, a slot that is there.
    slots = [[*chunk.far, *[chunk.query] * (most - len(chunk.far))] for chunk in chunks]
    real = [[True] * len(chunk.far) + [False] * (most - len(chunk.far)) for chunk in chunks]
    return (
        torch.tensor(slots, dtype=torch.int64, device=device).view(len(chunks), most),
        torch.tensor(real, dtype=torch.bool, device=device).view(len(chunks), most),
    )


def ranges(starts: list[int], length: int, device: torch.device) -> Tensor:
    """List the slots from each start on, ``(starts, length)``, int64."""
    first = torch.tensor(starts, dtype=torch.int64, device=device)
    return first[:, None] + torch.arange(length, device=device)
