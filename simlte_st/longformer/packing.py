"""Pack and unpack padded batches, so that cost scales with the number of non-padding tokens.

Documents are laid out one after another in a row of slots, longest first. Each takes whole blocks of :data:`BLOCK`
slots, and only its last block has padding. Neighbouring tokens stay neighbours, so a window in the document is a window
in the row. Documents with the same number of blocks are adjacent and form a batch without copying.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T")

BLOCK = 32
"""Number of slots per block; on average, a document leaves half a block unused."""


class PackedSpan(NamedTuple):
    """The slots of a packed document."""

    start: int  # first slot
    size: int  # number of slots, a multiple of the block
    length: int  # number of slots from the first to the last token
    globals: tuple[int, ...]  # slots with global attention, ascending
    holes: bool  # whether a slot within the length is masked


@dataclass(frozen=True)
class Packing:
    """The layout of a padded batch in packed slots.

    Unless stated otherwise, tensors have shape ``(slots,)``, one value per slot.
    """

    batch: int  # rows of the padded batch
    width: int  # columns of the padded batch
    spans: list[PackedSpan]  # the packed documents, in order; empty rows have no span
    source: Tensor  # int64, index of the token in the flattened batch; at padding, of the document's last token
    inside: Tensor  # bool, whether the slot is inside a document
    valid: Tensor  # bool, whether the slot can be attended to (inside a document and not masked)
    is_global: Tensor  # bool, whether the token has global attention
    document: Tensor  # int64, index of the document in ``spans``
    positions: Tensor  # int64, position in the document, counted from 0
    filled: Tensor  # int64, the slots inside documents, (tokens,)
    global_slots: Tensor  # int64, the slots with global attention, (globals,)
    # For eager attention: each layer adds its weights, (heads, slots, slots).
    weights: list[Tensor] | None = field(default=None, kw_only=True)
    _cache: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self.source)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return ``make()``, cached for all layers; it may depend only on the packing."""
        if key not in self._cache:
            self._cache[key] = make()
        return cast(T, self._cache[key])

    def pack(self, padded: Tensor, fill: int) -> Tensor:
        """Pack the values of a padded batch, ``(batch, width)``, into slots, with ``fill`` at padding."""
        return padded.flatten().index_select(0, self.source).masked_fill(~self.inside, fill)

    def unpack(self, packed: Tensor) -> Tensor:
        """Unpack values from slots into a padded batch, with zeros at padding."""
        padded = packed.new_zeros(self.batch * self.width, *packed.shape[1:])
        targets = self.once("targets", lambda: self.source.index_select(0, self.filled))
        padded = padded.index_copy(0, targets, packed.index_select(0, self.filled))
        return padded.view(self.batch, self.width, *packed.shape[1:])

    def unpack_pairs(self, packed: Tensor) -> Tensor:
        """Unpack ``(heads, slots, slots)`` into ``(batch, heads, width, width)``, with zeros at padding."""
        rows = self.unpack(packed.permute(1, 0, 2)).permute(3, 0, 1, 2)  # (slots, batch, width, heads)
        return self.unpack(rows).diagonal(dim1=0, dim2=2).permute(3, 2, 1, 0)


def document_spans(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index of each document's first token in the flattened batch, and each document's length.

    A document extends from its first to its last unmasked token, so padding may be on either side.
    """
    batch, width = mask.shape
    unmasked, columns = mask > 0, torch.arange(width)
    first = torch.where(unmasked, columns, width).amin(1) if width else torch.zeros(batch, dtype=torch.int64)
    last = torch.where(unmasked, columns, -1).amax(1) if width else torch.full((batch,), -1)
    return torch.arange(batch) * width + first, (last + 1 - first).clamp(min=0)


def pack_batch(
    mask: Tensor, global_mask: Tensor | None = None, cls: bool = False, device: torch.device | None = None
) -> Packing:
    """Plan the packing of a batch on the CPU and copy it to ``device``.

    Masked tokens inside a document keep their slots, because they count when distances are measured.
    """
    device, mask = device or mask.device, mask.cpu()
    batch, width = mask.shape
    begins, lengths = document_spans(mask)
    sizes = (lengths + BLOCK - 1) // BLOCK * BLOCK
    order = sizes.argsort(descending=True, stable=True)[: int((sizes > 0).sum())]
    begins, lengths, sizes = begins[order], lengths[order], sizes[order]
    starts = sizes.cumsum(0) - sizes

    document = torch.repeat_interleave(torch.arange(len(order)), sizes)
    positions = torch.arange(len(document)) - starts[document]
    inside = positions < lengths[document]
    source = begins[document] + torch.minimum(positions, lengths[document] - 1)
    valid = inside & mask.flatten()[source]
    if global_mask is not None:
        is_global = valid & global_mask.cpu().flatten()[source]
    else:
        is_global = (positions == 0) if cls else torch.zeros_like(valid)

    global_slots: list[list[int]] = [[] for _ in range(len(order))]
    slots = is_global.nonzero().squeeze(1)
    for number, slot in zip(document[slots].tolist(), slots.tolist(), strict=True):
        global_slots[number].append(slot)
    counts = torch.zeros(len(order), dtype=torch.int64).index_add_(0, document, valid.long())
    columns = (starts.tolist(), sizes.tolist(), lengths.tolist(), map(tuple, global_slots), (counts < lengths).tolist())
    spans = [PackedSpan(*fields) for fields in zip(*columns, strict=True)]
    tensors = [source, inside, valid, is_global, document, positions, inside.nonzero().squeeze(1), slots]
    return Packing(batch, width, spans, *to_device(tensors, device))


def attention_bias(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """Return an additive attention mask: 0 where a key is visible, minus infinity elsewhere."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill(~visible, float("-inf"))


def to_device(tensors: list[Tensor], device: torch.device) -> list[Tensor]:
    """Copy int64 and bool CPU tensors to a device in a single transfer, without synchronizing with CUDA."""
    if device.type == "cpu":
        return tensors
    flat = torch.cat([tensor.flatten().long() for tensor in tensors])
    flat = (flat.pin_memory() if device.type == "cuda" else flat).to(device, non_blocking=True)
    parts = flat.split([tensor.numel() for tensor in tensors])
    return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in zip(parts, tensors, strict=True)]
