"""A padded batch to packed documents and back: what the model computes follows the real tokens.

The documents of a batch stand one after another in one row of tokens, each on whole blocks of :data:`BLOCK` tokens, the
longer ones first. Nothing but the last block of a document holds padding. Because neighbours in a document stay
neighbours in the row, a window in the document is a window in the row; because documents of the same number of blocks
stand together, they are a batch without a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T")

BLOCK = 32
"""Tokens in a block: a document wastes half of that on average."""


class Span(NamedTuple):
    """Where a packed document stands.

    Attributes:
        start: Its first slot.
        size: Its slots, a multiple of the block.
        globals: Its slots with global attention, ascending.
        holes: Whether some of its first ``length`` slots are masked.
        length: Slots from its first to its last token.
    """

    start: int
    size: int
    length: int
    globals: tuple[int, ...]
    holes: bool


@dataclass(frozen=True)
class Packing:
    """How the tokens of a padded batch stand in packed slots.

    Attributes:
        batch: Rows of the padded batch.
        width: Columns of the padded batch.
        spans: The packed documents in their order; rows without a token have none.
        source: For each slot the index of its token in the flattened batch, ``(slots,)``, int64; a padding slot has
            that of its document's last token.
        inside: Whether a slot lies in a document, ``(slots,)``, bool.
        valid: Whether a slot holds a token to attend to, ``(slots,)``, bool: inside and not masked.
        is_global: Whether it has global attention, ``(slots,)``, bool.
        document: Number of the slot's document in ``spans``, ``(slots,)``, int64.
    """

    batch: int
    width: int
    spans: list[Span]
    source: Tensor
    inside: Tensor
    valid: Tensor
    is_global: Tensor
    document: Tensor
    _cache: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def slots(self) -> int:
        """Number of slots."""
        return len(self.source)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Make something that depends on the packing only, once for all layers."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast(T, self._cache[key])

    def pack(self, padded: Tensor, fill: int | None = None) -> Tensor:
        """Take what stands at each slot."""
        packed = padded.reshape(self.batch * self.width, *padded.shape[2:]).index_select(0, self.source)
        if fill is None:
            return packed
        return packed.masked_fill(~self.inside.view(-1, *[1] * (packed.dim() - 1)), fill)

    def unpack(self, packed: Tensor) -> Tensor:
        """Put slots back where their tokens stood."""
        padded = packed.new_zeros(self.batch * self.width, *packed.shape[1:])
        targets, slots = self.once("targets", lambda: (self.source[self.inside], self.inside.nonzero().squeeze(1)))
        padded = padded.index_copy(0, targets, packed.index_select(0, slots))
        return padded.view(self.batch, self.width, *packed.shape[1:])


def pack_batch(
    mask: Tensor,
    global_mask: Tensor | None = None,
    cls: bool = False,
    device: torch.device | None = None,
) -> Packing:
    """Plan the packing of a batch.

    A document reaches from its first to its last unmasked token, so that padding may stand on either side; masked
    tokens in between keep their places, because distances in the window count them.
    """
    device = device or mask.device
    # The plan is made of many small decisions: on the CPU.
    seen = mask.cpu()
    batch, width = seen.shape
    columns = torch.arange(width)
    first = torch.where(seen, columns, width).amin(1) if width else torch.zeros(batch, dtype=torch.int64)
    last = torch.where(seen, columns, -1).amax(1) if width else torch.full((batch,), -1)
    lengths = (last + 1 - first).clamp(min=0)
    sizes = (lengths + BLOCK - 1) // BLOCK * BLOCK
    order = sizes.argsort(descending=True, stable=True)[: int((sizes > 0).sum())]
    first, lengths, sizes = first[order], lengths[order], sizes[order]
    starts = sizes.cumsum(0) - sizes

    document = torch.repeat_interleave(torch.arange(len(order)), sizes)
    place = torch.arange(len(document)) - starts[document]
    inside = place < lengths[document]
    source = order[document] * width + first[document] + torch.minimum(place, lengths[document] - 1)
    valid = inside & seen.flatten()[source]
    if global_mask is not None:
        is_global = valid & global_mask.cpu().flatten()[source]
    else:
        is_global = (place == 0) if cls else torch.zeros_like(valid)

    global_slots: list[list[int]] = [[] for _ in range(len(order))]
    slots = is_global.nonzero().squeeze(1)
    for number, slot in zip(document[slots].tolist(), slots.tolist(), strict=True):
        global_slots[number].append(slot)
    counts = torch.zeros(len(order), dtype=torch.int64).index_add_(0, document, valid.long())
    numbers = zip(
        starts.tolist(), sizes.tolist(), lengths.tolist(), global_slots, (counts < lengths).tolist(), strict=True
    )
    return Packing(
        batch=batch,
        width=width,
        spans=[Span(start, size, length, tuple(places), holes) for start, size, length, places, holes in numbers],
        source=source.to(device),
        inside=inside.to(device),
        valid=valid.to(device),
        is_global=is_global.to(device),
        document=document.to(device),
    )
