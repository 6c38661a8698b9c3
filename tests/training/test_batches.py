from __future__ import annotations

import pytest
import torch
from accelerate.data_loader import BatchSamplerShard
from datasets import Dataset

from simlte_st.training.batches import SeededBatchSampler


@pytest.mark.parametrize("rows", [32, 30, 25, 33, 7])
def test_two_processes_share_each_batch(rows: int) -> None:
    dealt = sampler(rows=rows, batch_size=4, drop_last=True)
    dealt.set_epoch(3)
    order = list(dealt.sampler)
    for rank in (0, 1):
        parts = list(BatchSamplerShard(dealt, 2, rank))
        wholes = [order[start : start + 8] for start in range(0, rows // 8 * 8, 8)]
        assert parts == [whole[4 * rank : 4 * rank + 4] for whole in wholes], "equal parts of the same batches"


def sampler(rows: int = 23, batch_size: int = 5, drop_last: bool = False, seed: int = 0) -> SeededBatchSampler:
    generator = torch.Generator().manual_seed(seed)
    dataset = Dataset.from_dict({"text": [str(number) for number in range(rows)]})
    return SeededBatchSampler(dataset, batch_size=batch_size, drop_last=drop_last, generator=generator, seed=seed)


def at_epoch(epoch: int, **settings: int | bool) -> list[list[int]]:
    one = sampler(**settings)  # type: ignore[arg-type]
    one.set_epoch(epoch)
    return list(one)


@pytest.mark.parametrize("rows", [1, 4, 5, 20, 23])
@pytest.mark.parametrize("epoch", [0, 3])
def test_each_row_occurs_once_except_in_a_dropped_batch(rows: int, epoch: int) -> None:
    batches = at_epoch(epoch, rows=rows)
    assert sorted(row for batch in batches for row in batch) == list(range(rows))
    assert [len(batch) for batch in batches] == [5] * (rows // 5) + [rows % 5] * (rows % 5 > 0)
    assert len(batches) == len(sampler(rows=rows))
    assert at_epoch(epoch, rows=rows, drop_last=True) == batches[: rows // 5]
    assert len(sampler(rows=rows, drop_last=True)) == rows // 5


def test_order_depends_on_seed_and_epoch() -> None:
    orders = {(seed, epoch): str(at_epoch(epoch, seed=seed)) for seed in range(3) for epoch in range(3)}
    assert len(set(orders.values())) == 9
    assert orders[0, 0] != str([list(range(start, min(23, start + 5))) for start in range(0, 23, 5)])


def test_order_does_not_depend_on_earlier_epochs() -> None:
    # A run resumed in epoch 2 sees the same order as an uninterrupted one.
    one = sampler(seed=7)
    for epoch in range(3):
        one.set_epoch(epoch)
        order = list(one)
        torch.manual_seed(epoch)  # the order does not depend on the global generator
    assert order == at_epoch(2, seed=7)
    assert list(one) == order
    next(iter(one))  # nor does it depend on an unfinished pass
    assert list(one) == order
