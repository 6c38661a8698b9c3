from __future__ import annotations

import pytest
import torch

from simlte_st.longformer.packing import BLOCK, pack_batch


def mask_of(lengths: list[int], width: int | None = None) -> torch.Tensor:
    return torch.arange(width or max(lengths)) < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("lengths", [[1], [BLOCK], [BLOCK + 1], [5, 100, 32, 33, 1], [7, 0, 3], [40, 40]])
def test_packing_and_unpacking_gives_the_batch_back(lengths: list[int]) -> None:
    mask = mask_of(lengths, max(lengths) + 3)
    padded = torch.randn(*mask.shape, 4)
    packing = pack_batch(mask)
    assert torch.equal(packing.unpack(packing.pack(padded)), padded * mask[..., None])


def test_each_document_takes_whole_blocks_only() -> None:
    packing = pack_batch(mask_of([60, 1, 300]))
    assert packing.slots == 64 + 32 + 320
    assert [span.size for span in packing.spans] == [320, 64, 32], "longer ones first"
    assert [int(packing.source[span.start]) // 300 for span in packing.spans] == [2, 0, 1], "the rows they come from"
    assert packing.valid.sum() == 361


def test_padding_on_the_left_and_masked_tokens_inside() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 0, 1], [1, 1, 0, 0, 0, 0]], dtype=torch.bool)
    packing = pack_batch(mask, cls=True)
    first = packing.spans[0]
    assert (first.length, first.holes) == (4, True), "a masked token keeps its place"
    assert not packing.spans[1].holes
    assert packing.source[:4].tolist() == [2, 3, 4, 5]
    assert packing.valid[:5].tolist() == [True, True, False, True, False]
    assert packing.spans[0].globals == (0,)
    assert packing.spans[1].globals == (BLOCK,)


def test_masked_tokens_have_no_global_attention() -> None:
    mask = mask_of([3, 5])
    packing = pack_batch(mask, torch.ones_like(mask))
    assert packing.is_global.sum() == 8


def test_a_masked_token_inside_a_document_has_no_global_attention() -> None:
    mask = torch.tensor([[1, 0, 1, 1, 0, 0]], dtype=torch.bool)
    packing = pack_batch(mask, torch.ones_like(mask))
    assert packing.is_global.nonzero().flatten().tolist() == [0, 2, 3]
    assert packing.spans[0].globals == (0, 2, 3)


def test_a_batch_without_a_token() -> None:
    packing = pack_batch(torch.zeros(2, 4, dtype=torch.bool), cls=True)
    assert packing.slots == 0
    assert packing.unpack(packing.pack(torch.ones(2, 4, 3))).abs().sum() == 0


def test_padding_slots_are_filled_when_asked() -> None:
    packed = pack_batch(mask_of([2])).pack(torch.tensor([[7, 8]]), fill=1)
    assert packed.tolist() == [7, 8, *[1] * (BLOCK - 2)]
