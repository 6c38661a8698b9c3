from __future__ import annotations

from random import Random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simlte_st.longformer.packing import BLOCK, pack_batch


@settings(max_examples=40)
@given(st.integers(1, 5), st.integers(1, 90), st.randoms(use_true_random=False), st.booleans())
def test_any_mask_is_packed_and_unpacked(rows: int, width: int, draw: Random, cls: bool) -> None:
    density = draw.choice([0.02, 0.5, 0.98])
    mask = torch.tensor([[draw.random() < density for _ in range(width)] for _ in range(rows)])
    global_mask = torch.tensor([[draw.random() < 0.2 for _ in range(width)] for _ in range(rows)])
    padded = torch.arange(rows * width).view(rows, width) + 1
    packing = pack_batch(mask, None if cls else global_mask, cls=cls)
    # A masked token between others keeps its place.
    within = (mask.cumsum(dim=1) > 0) & (mask.flip(1).cumsum(dim=1).flip(1) > 0)
    assert torch.equal(packing.unpack(packing.pack(padded, fill=-1)), padded * within)
    sizes = [span.size for span in packing.spans]
    assert packing.slots == sum(sizes)
    assert sizes == sorted(sizes, reverse=True), "documents of one size stand together"
    assert len(packing.spans) == int(mask.any(dim=1).sum())
    assert int(packing.valid.sum()) == int(mask.sum())
    assert [slot for span in packing.spans for slot in span.globals] == packing.is_global.nonzero().flatten().tolist()
    expected = mask & (mask.cumsum(dim=1) == 1) if cls else mask & global_mask
    assert int(packing.is_global.sum()) == int(expected.sum())
    for span in packing.spans:
        own = slice(span.start, span.start + span.size)
        assert span.size % BLOCK == 0
        assert len(packing.document[own].unique()) == 1
        assert packing.valid[span.start]
        assert packing.valid[span.start + span.length - 1]
        assert not packing.valid[span.start + span.length : span.start + span.size].any()
        assert span.holes is (not bool(packing.valid[span.start : span.start + span.length].all()))
