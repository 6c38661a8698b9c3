"""Chunks of queries and the stretches of keys that their windows reach.

A chunk's keys are one contiguous stretch of its own document, so short documents pay for themselves only, and long ones
for the window and one chunk. Tokens with global attention that stand outside the stretch are columns of their own. The
mask states the rule once: a query sees a real token that is near or global; every token has one column, so none is
counted twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from simlte_st.longformer.packing import BLOCK, Packing, Span

CHUNK = 128
"""Queries that share a stretch of keys: with more, more is masked; with fewer, products are smaller. Half as many for
windows of up to this size."""


class Chunk(NamedTuple):
    """Queries and the keys that they may see."""

    query: int  # first slot of the queries
    queries: int  # number of queries
    key: int  # first slot of the stretch of keys
    keys: int  # number of keys
    far: tuple[int, ...]  # global tokens of the document outside the stretch
    plain: bool  # whether only the distance matters: every slot is real and no global token is in the stretch

    @property
    def shape(self) -> tuple[int, ...]:
        """What chunks must have in common to be computed together."""
        # Plain chunks share one mask, for which the distance of keys and queries must be the same too.
        far = len(self.far) and 1 << (len(self.far) - 1).bit_length()
        return (self.queries, self.keys, far, self.plain, self.key - self.query if self.plain else 0)


def grouped_chunks(packing: Packing, window: int) -> list[list[Chunk]]:
    """Cut the documents into chunks; those that can be computed together are a group, in the order of their slots."""
    groups: dict[tuple[int, ...], list[Chunk]] = {}
    for span in packing.spans:
        for chunk in _cut(span, window // 2):
            groups.setdefault(chunk.shape, []).append(chunk)
    return list(groups.values())


def _cut(span: Span, reach: int) -> Iterable[Chunk]:
    end = span.start + span.size
    size = CHUNK if 2 * reach > CHUNK else CHUNK // 2
    for query in range(span.start, end, size):
        stop = min(query + size, end)
        first = max(span.start, (query - reach - span.start) // BLOCK * BLOCK + span.start)
        last = min(end, -(-(stop + reach - span.start) // BLOCK) * BLOCK + span.start)
        far = tuple(slot for slot in span.globals if not first <= slot < last)
        plain = len(far) == len(span.globals) and not span.holes and last <= span.start + span.length
        yield Chunk(query, stop - query, first, last - first, far, plain)


def hidden_bias(dtype: torch.dtype) -> float:
    """Return the number that is added to the score of a key that is not seen.

    It is finite: a query of the padding may see nothing, and a softmax over nothing would give NaN, which reaches the
    gradients of every weight. Half of the lowest, so that a score added to it cannot overflow.
    """
    return torch.finfo(dtype).min / 2


def chunk_bias(packing: Packing, chunks: list[Chunk], window: int, dtype: torch.dtype) -> Tensor:
    """Return the mask of the stretches of chunks of one shape, ``(chunks or 1, 1, queries, keys)``."""
    rows, columns = slots_of(chunks[:1] if chunks[0].plain else chunks, packing.valid.device)
    near = (rows[:, :, None] - columns[:, None, :]).abs() <= window // 2
    sees = (near | packing.is_global[columns][:, None]) & packing.valid[columns][:, None]
    return torch.zeros(sees.shape, dtype=dtype, device=sees.device).masked_fill(~sees, hidden_bias(dtype))[:, None]


def far_columns(chunks: list[Chunk], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the slots of the far global tokens of chunks of one shape, and which are there, ``(chunks, far)`` both."""
    most = chunks[0].shape[2]
    # A missing one points to the chunk's own first query, a slot that is there.
    slots = [[*chunk.far, *[chunk.query] * (most - len(chunk.far))] for chunk in chunks]
    counts = torch.tensor([len(chunk.far) for chunk in chunks], device=device)
    real = torch.arange(most, device=device) < counts[:, None]
    return torch.tensor(slots, dtype=torch.int64, device=device).view(len(chunks), most), real


def slots_of(chunks: list[Chunk], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the slots of the queries and of the keys of chunks of one shape, ``(chunks, queries or keys)``, int64."""
    first = torch.tensor([(chunk.query, chunk.key) for chunk in chunks], device=device)
    rows = first[:, :1] + torch.arange(chunks[0].queries, device=device)
    return rows, first[:, 1:] + torch.arange(chunks[0].keys, device=device)
