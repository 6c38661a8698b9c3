from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed
from accelerate.data_loader import BatchSamplerShard
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainingArguments
from torch.testing._internal.distributed.fake_pg import FakeStore

from simlte_st.training.batching import ConfiguredBatchSampler, SeededBatchSampler, TokenBudgetBatchSampler

ROWS = Dataset.from_dict({"text": ["a"] * 30})


@pytest.fixture
def two_processes() -> Iterator[None]:
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("rows", "steps"), [(32, 4), (30, 4), (25, 3), (33, 4), (7, 1)])
def test_two_processes_share_the_batches_of_one(two_processes: None, rows: int, steps: int) -> None:
    dealt = sampler(rows=rows, batch_size=4)
    dealt.set_epoch(3)
    assert len(dealt) == 2 * steps
    order = list(dealt.sampler)[: rows - rows % 2]
    for rank in (0, 1):
        parts = list(BatchSamplerShard(dealt, 2, rank, even_batches=False))
        whole = [order[start : start + 8] for start in range(0, len(order), 8)]
        assert parts == [list(np.split(np.array(batch), 2)[rank]) for batch in whole], "equal parts of the same batches"


def test_accelerate_would_lose_batches_that_are_not_full() -> None:
    # The reason why a sampler of several processes has no batch_size.
    class Batches(torch.utils.data.BatchSampler):
        def __init__(self) -> None:
            super().__init__(range(10), batch_size=3, drop_last=False)

        def __iter__(self) -> Iterator[list[int]]:
            yield from ([0, 1, 2], [3, 4], [5, 6, 7], [8, 9, 10])

        def __len__(self) -> int:
            return 4

    dealt = [
        row for rank in (0, 1) for batch in BatchSamplerShard(Batches(), 2, rank, even_batches=False) for row in batch
    ]
    assert sorted(dealt) == [5, 6, 7, 8, 9, 10]


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
def test_all_rows_exactly_once(rows: int, epoch: int) -> None:
    batches = at_epoch(epoch, rows=rows)
    assert sorted(row for batch in batches for row in batch) == list(range(rows))
    assert [len(batch) for batch in batches] == [5] * (rows // 5) + [rows % 5] * (rows % 5 > 0)
    assert len(batches) == len(sampler(rows=rows))


@pytest.mark.parametrize("rows", [4, 5, 20, 23])
def test_drop_last(rows: int) -> None:
    batches = at_epoch(1, rows=rows, drop_last=True)
    assert [len(batch) for batch in batches] == [5] * (rows // 5)
    assert len(batches) == len(sampler(rows=rows, drop_last=True))
    assert batches == at_epoch(1, rows=rows)[: rows // 5]
    chosen = [row for batch in batches for row in batch]
    assert len(set(chosen)) == len(chosen)


def test_the_order_depends_on_seed_and_epoch() -> None:
    orders = {(seed, epoch): str(at_epoch(epoch, seed=seed)) for seed in range(3) for epoch in range(3)}
    assert len(set(orders.values())) == 9
    assert orders[0, 0] != str([list(range(start, min(23, start + 5))) for start in range(0, 23, 5)])


def test_nothing_that_came_before_matters() -> None:
    # A run that is resumed in epoch 2 sees the order of the run that got there.
    one = sampler(seed=7)
    for epoch in range(3):
        one.set_epoch(epoch)
        order = list(one)
        torch.manual_seed(epoch)  # and the global generator is not used
    assert order == at_epoch(2, seed=7)
    assert list(one) == order
    next(iter(one))  # nor a pass that was broken off
    assert list(one) == order


def test_the_global_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    at_epoch(1)
    assert torch.equal(torch.get_rng_state(), state)


def test_large_seeds_and_epochs() -> None:
    assert len(at_epoch(10**9, seed=2**63 - 1)) == 5


def test_every_row_may_come_first() -> None:
    assert {at_epoch(epoch, rows=6)[0][0] for epoch in range(60)} == set(range(6))


def configured() -> ConfiguredBatchSampler:
    lengths = np.full((5_000, 2), 50)
    return ConfiguredBatchSampler(TokenBudgetBatchSampler, lengths=lengths, batch_tokens=1_000)


def test_it_makes_the_sampler() -> None:
    made = configured()
    dataset = Dataset.from_dict({"text": ["a"] * 5_000})
    sampler = made(dataset, batch_size=8, drop_last=False, valid_label_columns=[], generator=None, seed=3)
    assert isinstance(sampler, TokenBudgetBatchSampler)
    assert (sampler.batch_size, sampler.seed, sampler.batch_tokens) == (8, 3, 1_000)
    assert sampler.lengths is made.settings["lengths"]


def test_it_is_pickled_as_its_name(tmp_path: Path) -> None:
    name = "ConfiguredBatchSampler(TokenBudgetBatchSampler, lengths, batch_tokens)"
    made = configured()
    assert repr(made) == name
    assert pickle.loads(pickle.dumps(made)) == name
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), batch_sampler=made, report_to="none")
    assert "batch_sampler" not in arguments.to_dict()
    buffer = io.BytesIO()
    torch.save(arguments, buffer)  # as the Trainer does with every checkpoint
    assert buffer.tell() < 20_000


def test_copies_share_the_settings(tmp_path: Path) -> None:
    made = configured()
    assert copy.copy(made) is made
    arguments = SentenceTransformerTrainingArguments(output_dir=str(tmp_path), batch_sampler=made, report_to="none")
    assert copy.deepcopy(arguments).batch_sampler is made
