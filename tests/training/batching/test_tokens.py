from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from transformers import TrainerCallback

from simlte_st.data import DocSplitTransform
from simlte_st.errors import ConfigurationError
from simlte_st.training.batching import (
    ConfiguredBatchSampler,
    SeededBatchSampler,
    TokenBudgetBatchSampler,
    ViewLengths,
    base,
)
from simlte_st.training.batching.tokens import deal

Train = Callable[..., tuple[Any, list[list[str]]]]


def lengths_of(epoch: int, documents: int = 700, longest: int = 130) -> np.ndarray:
    """Two views of each document, of chance lengths that add up to the document's."""
    sizes = np.random.default_rng(0).lognormal(4, 1, size=documents)
    share = np.random.default_rng([1, epoch]).beta(6, 6, size=documents)
    views = np.stack([sizes * share, sizes * (1 - share)], axis=1)
    return np.minimum(views.astype(np.int64) + 3, longest)


def sampler(lengths: Any = lengths_of, batch_tokens: int = 4_000, documents: int = 700, **settings: Any) -> Any:
    settings = {"seed": 1, **settings}
    return TokenBudgetBatchSampler(range(documents), 8, False, lengths=lengths, batch_tokens=batch_tokens, **settings)


def padded(batches: Any, lengths: np.ndarray) -> float:
    """The share of padding among the tokens of batches."""
    batches = [lengths[batch] for batch in batches]
    return 1 - sum(batch.sum() for batch in batches) / sum(batch.max() * batch.size for batch in batches)


def at_epoch(one: TokenBudgetBatchSampler, epoch: int) -> list[list[int]]:
    one.set_epoch(epoch)
    return list(one)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("settings", [{}, {"batch_tokens": 800}])
def test_each_document_once_and_no_batch_too_large(packed: bool, settings: dict[str, Any]) -> None:
    one = sampler(packed=packed, **settings)
    budget = settings.get("batch_tokens", 4_000)
    for epoch in range(6):
        batches = at_epoch(one, epoch)
        assert sorted(row for batch in batches for row in batch) == list(range(700))
        assert len(batches) == len(one)
        sizes = [len(batch) for batch in batches]
        assert min(sizes) >= 2
        lengths = lengths_of(epoch)
        for batch in batches:
            tokens = lengths[batch]
            assert (tokens.sum() if packed else tokens.max() * tokens.size) <= budget
        assert all(type(row) is int for row in batches[0])


def test_little_is_padded() -> None:
    one = sampler()
    for epoch in range(3):
        lengths = lengths_of(epoch)
        batches = at_epoch(one, epoch)
        drawn = SeededBatchSampler(range(700), 700 // len(one), False)
        assert padded(batches, lengths) < 0.35
        assert padded(drawn, lengths) > 0.6
        # And the budget is used.
        filled = [lengths[batch].max() * 2 * len(batch) for batch in batches]
        assert np.mean(filled) > 0.8 * 4_000


def test_the_right_view_is_not_found_by_its_length() -> None:
    def found(batches: Any, lengths: np.ndarray) -> float:
        """How often the view of the most similar length is the right one, in terms of chance."""
        right = chance = 0.0
        noise = np.random.default_rng(0)
        for batch in batches:
            first, second = lengths[batch].T
            distances = abs(first[:, None] - second[None]) + noise.random((len(batch), len(batch))) / 2
            right += (distances.argmin(axis=1) == np.arange(len(batch))).sum()
            chance += 1
        return right / chance

    lengths = lengths_of(0)
    assert found(SeededBatchSampler(range(700), 16, False), lengths) > 1.5
    assert found(at_epoch(sampler(batch_tokens=1_500), 0), lengths) < 1.0


def test_packed_batches_are_all_alike() -> None:
    one = sampler(packed=True)
    lengths = lengths_of(2)
    batches = at_epoch(one, 2)
    assert {len(batch) for batch in batches} <= {700 // len(one), 700 // len(one) + 1}
    tokens = np.array([lengths[batch].sum() for batch in batches])
    assert tokens.max() - tokens.min() < 0.03 * tokens.mean()
    assert tokens.mean() > 0.9 * 4_000
    longest = [lengths[batch].max() / lengths[batch].min() for batch in batches]
    assert min(longest) > 3  # long and short ones in each


@pytest.mark.parametrize("packed", [False, True])
def test_batches_are_others_in_each_epoch(packed: bool) -> None:
    fixed = lengths_of(0)

    def pairs(epoch: int) -> set[tuple[int, int]]:
        batches = at_epoch(sampler(fixed, packed=packed), epoch)
        return {(a, b) for batch in batches for a in batch for b in batch if a < b}

    assert pairs(0) == pairs(0)
    assert len(pairs(0) & pairs(1)) < 0.4 * len(pairs(0))
    # and they come in no order of length
    means = [fixed[batch].mean() for batch in at_epoch(sampler(fixed, packed=packed), 0)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.5


@pytest.mark.parametrize("packed", [False, True])
def test_seed_and_epoch_decide(packed: bool) -> None:
    state = torch.get_rng_state()
    one = sampler(packed=packed)
    orders = [at_epoch(one, epoch) for epoch in range(3)]
    assert at_epoch(sampler(packed=packed), 2) == orders[2]
    assert at_epoch(sampler(packed=packed, seed=2), 2) != orders[2]
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("packed", [False, True])
def test_longer_views_in_a_later_epoch(packed: bool, caplog: pytest.LogCaptureFixture) -> None:
    def lengths(epoch: int) -> np.ndarray:
        return lengths_of(0) * (1 if epoch < 2 else 2)

    one = sampler(lengths, packed=packed)
    with caplog.at_level(logging.WARNING):
        first = at_epoch(one, 1)
    assert caplog.text == ""
    with caplog.at_level(logging.WARNING):
        later = at_epoch(one, 2)
    assert len(later) == len(first) == len(one)
    assert sorted(row for batch in later for row in batch) == list(range(700))
    largest = max(lengths(2)[rows].sum() if packed else lengths(2)[rows].max() * len(rows) * 2 for rows in later)
    assert 4_000 * 1.05 < largest < 4_000 * 2.3
    assert f"{largest} tokens" in caplog.text


@pytest.mark.parametrize("packed", [False, True])
def test_shorter_views_in_a_later_epoch(packed: bool) -> None:
    one = sampler(lambda epoch: lengths_of(0) if epoch == 0 else np.full((700, 2), 3), packed=packed)
    batches = at_epoch(one, 1)
    assert len(batches) == len(one)
    assert min(map(len, batches)) >= 2
    assert sorted(row for batch in batches for row in batch) == list(range(700))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("documents", [2, 3, 5, 9, 40])
def test_few_documents(documents: int, packed: bool) -> None:
    one = sampler(lambda epoch: lengths_of(epoch, documents), 780, documents, packed=packed)
    for epoch in range(20):
        batches = at_epoch(one, epoch)
        assert len(batches) == len(one)
        assert min(map(len, batches)) >= 2
        assert sorted(row for batch in batches for row in batch) == list(range(documents))


def test_documents_of_one_length() -> None:
    one = sampler(np.full((700, 2), 50), 1_000)
    batches = at_epoch(one, 0)
    assert len(one) == 70 + 2
    assert {len(batch) for batch in batches} == {9, 10}


def test_dealing_is_even() -> None:
    tokens = np.random.default_rng(0).integers(1, 1_000, size=103)
    dealt = deal(tokens, 10, np.random.default_rng(1))
    assert sorted(np.concatenate(dealt)) == list(range(103))
    assert sorted(map(len, dealt)) == [10] * 7 + [11] * 3
    sums = [tokens[rows].sum() for rows in dealt]
    assert max(sums) - min(sums) <= 200  # the widest round, of two rounds' documents


@pytest.mark.parametrize("packed", [False, True])
def test_a_resumed_run_sees_the_same_batches(packed: bool, corpus: Dataset, train: Train) -> None:
    def make(model: SentenceTransformer, views: DocSplitTransform) -> tuple[Any, list[TrainerCallback]]:
        lengths = ViewLengths(corpus, views)
        return ConfiguredBatchSampler(TokenBudgetBatchSampler, lengths=lengths, batch_tokens=900, packed=packed), []

    views = DocSplitTransform()
    views.budget = 62  # as of the tiny model
    lengths = ViewLengths(corpus, views)
    number = len(TokenBudgetBatchSampler(corpus, 8, False, lengths=lengths, batch_tokens=900, packed=packed))
    step = number + 2  # in the second epoch
    trainer, batches = train(make, save_steps=step)
    assert len(batches) == 3 * number == trainer.state.global_step
    for epoch in range(3):
        ids = [row for batch in batches[epoch * number : (epoch + 1) * number] for row in batch]
        assert sorted(ids) == sorted(corpus["id"][:])
    assert len({len(batch) for batch in batches}) > 1
    again, rest = train(make, resume=step, save_steps=step)
    assert rest == batches[step:]
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value)


def test_bad_settings() -> None:
    for settings, named in [
        ({"documents": 1}, "1 documents"),
        ({"lengths": lengths_of(0)[:9]}, r"9 rows.*eval_dataset"),
        ({"lengths": lengths_of(0)[:, 0]}, r"lengths of shape \(700,\)"),
        ({"lengths": lengths_of(0) * 0}, "smallest 0"),
        ({"batch_tokens": 779}, "batch_tokens=779.* 780"),
        ({"batch_tokens": 260, "packed": True}, "batch_tokens=260.* 2 documents"),
    ]:
        with pytest.raises(ConfigurationError, match=named):
            sampler(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_take_equal_parts(packed: bool, processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "world", lambda: processes)
    one = sampler(packed=packed, documents=701, lengths=lambda epoch: lengths_of(epoch, documents=701))
    left_out = set()
    for epoch in range(4):
        one.set_epoch(epoch)
        parts = list(one)
        assert len(parts) == len(one)
        batches = [parts[start : start + processes] for start in range(0, len(parts), processes)]
        assert all(len({len(part) for part in batch}) == 1 for batch in batches)
        seen = [row for part in parts for row in part]
        assert len(set(seen)) == len(seen) == 701 - 701 % processes
        left_out |= set(range(701)) - set(seen)
        lengths = lengths_of(epoch, documents=701)
        costs = [lengths[part].sum() if packed else lengths[part].max() * len(part) * 2 for part in parts]
        # Each process has its part of the budget; other epochs than the first may need a little more.
        assert max(costs) <= (1 if epoch == 0 else 1.05) * 4_000 / processes
        assert sum(lengths[seen].sum(axis=1)) > (0.75 if packed else 0.55) * 4_000 * len(parts) / processes
    assert len(left_out) > 701 % processes, "other documents in each epoch"
