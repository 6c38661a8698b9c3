"""Documents to chunks that fit the encoder, and chunks to batches without much padding."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from simlte_st.errors import ConfigurationError


class ChunkBatch(NamedTuple):
    """Chunks that go through the encoder together, the longest first, padded on the right."""

    source: Tensor  # (chunks, width), int64, index of a slot's token in the flattened documents; at padding any token's
    inside: Tensor  # (chunks, width), bool, whether a slot is of the chunk, not padding
    document: Tensor  # (chunks,), int64, number of the chunk's document
    weight: Tensor  # (chunks,), float32, weight of the chunk in its document's mean; a document's weights sum to 1
    # (kept,), int64, which slots, of all flattened, hold a state that goes back to its document: each token's once, but
    # not the document's first token's, whose place the mean takes.
    kept: Tensor
    targets: Tensor  # (kept,), int64, where in the flattened documents these tokens stand

    def to(self, device: torch.device) -> ChunkBatch:
        """Move all tensors to a device."""
        return ChunkBatch(*(tensor.to(device) for tensor in self))


def plan_chunks(
    starts: Tensor,
    lengths: Tensor,
    chunk_length: int,
    prefix: int = 1,
    slots_per_pass: int = 2048,
    slack: int = 64,
) -> list[ChunkBatch]:
    """Split documents into chunks, and batch chunks of similar lengths.

    A document that fits a chunk is one, as it is. Each chunk of a longer one has the document's ``prefix`` first tokens
    (``[CLS]`` and the prompt), a stretch of what follows, and the document's last token (``[SEP]``). All stretches but
    the last are as long as possible. A chunk's weight is the number of its tokens.
    """
    room = chunk_length - prefix - 1
    long = lengths > chunk_length
    if bool(long.any()) and room <= 0:
        raise ConfigurationError(
            f"A prompt of {prefix - 1} tokens leaves no room in chunks of {chunk_length}: use longer chunks or a "
            "shorter prompt."
        )
    room = max(1, room)
    body = (lengths - prefix - 1).clamp(min=0)
    counts = torch.where(long, -(-body // room), (lengths > 0).long())
    document = torch.repeat_interleave(torch.arange(len(lengths)), counts)
    number = torch.arange(len(document)) - (counts.cumsum(0) - counts)[document]
    # Per chunk, counted in tokens of its document: where its stretch begins, and which tokens have its states.
    begin = prefix + number * room
    stretch = torch.where(long[document], (body[document] - number * room).clamp(max=room), body[document])
    size = torch.where(long[document], prefix + stretch + 1, lengths[document])
    is_last = number == counts[document] - 1
    keep_from = torch.where(number == 0, 1, begin)
    keep_to = torch.where(is_last, lengths[document], begin + room)

    share = stretch.clamp(min=1).float()
    sums = torch.zeros(len(lengths)).index_add(0, document, share)
    weight = share / sums[document]

    batches = []
    order = size.argsort(descending=True, stable=True)
    for chosen in split_by_length(order, size[order].tolist(), slots_per_pass, slack):
        slot = torch.arange(int(size[chosen[0]]))
        inside = slot < size[chosen, None]
        owner = document[chosen]
        place = torch.where(slot < prefix, slot, begin[chosen, None] + slot - prefix)
        place = torch.where(slot >= size[chosen, None] - 1, lengths[owner, None] - 1, place)
        source = starts[owner, None] + place
        mine = inside & (place >= keep_from[chosen, None]) & (place < keep_to[chosen, None])
        kept = mine.flatten().nonzero().squeeze(1)
        batches.append(ChunkBatch(source, inside, owner, weight[chosen], kept, source.flatten()[kept]))
    return batches


def split_by_length(order: Tensor, sizes: list[int], slots_per_pass: int, slack: int) -> list[Tensor]:
    """Split what is sorted by length, the longest first, where a batch would be too large or have too much padding."""
    pieces, start, padding = [], 0, 0
    for index, size in enumerate(sizes):
        width = sizes[start]
        padding += width - size
        if index > start and (padding > slack or (index + 1 - start) * width > slots_per_pass):
            pieces.append(order[start:index])
            start, padding = index, 0
    if sizes:
        pieces.append(order[start:])
    return pieces
