from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
import torch.distributed
from datasets import Dataset
from torch.testing._internal.distributed.fake_pg import FakeStore

from simlte_st.errors import ConfigurationError
from simlte_st.training.batching import SeededBatchSampler, SimilarBatchSampler, TokenBudgetBatchSampler

ROWS = Dataset.from_dict({"text": ["a"] * 30})


@pytest.fixture
def two_processes() -> Iterator[None]:
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()


def test_several_processes_are_refused(two_processes: None) -> None:
    with pytest.raises(ConfigurationError, match=r"SimilarBatchSampler plans the batches of one process.*are 2"):
        SimilarBatchSampler(ROWS, 4, False, hardness=0, max_similarity=None)
    with pytest.raises(ConfigurationError, match="TokenBudgetBatchSampler plans"):
        TokenBudgetBatchSampler(ROWS, 4, False, lengths=np.ones((30, 2), dtype=np.int64), batch_tokens=20)
    assert len(SeededBatchSampler(ROWS, 4, False)) == 8


def test_accelerate_would_lose_batches_that_are_not_full() -> None:
    # The reason for refusing: if this fails, accelerate has learned to deal them out, and the guard can go.
    from accelerate.data_loader import BatchSamplerShard

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
