"""The clock: what the Trainer tells it, and that workers that run already see it."""

from __future__ import annotations

import pytest
from torch.utils.data import DataLoader, Dataset
from transformers import TrainerControl, TrainerState, TrainingArguments

from simlte_st.data.epochs import EpochClock


class Watch(Dataset[tuple[int, bool]]):
    """Tells what the clock shows where the data set is read."""

    def __init__(self, clock: EpochClock) -> None:
        self.clock = clock

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[int, bool]:
        return self.clock.epoch, self.clock.connected


def begin_epoch(clock: EpochClock, epoch: float | None) -> int:
    state = TrainerState()
    state.epoch = epoch
    clock.on_epoch_begin(TrainingArguments(), state, TrainerControl())
    return clock.epoch


@pytest.mark.parametrize(
    ("told", "epoch"),
    [(None, 0), (0, 0), (0.0, 0), (1.0, 1), (2.4, 2), (2.9999, 2), (2.9999999999, 3), (3.0000001, 3), (17.5, 17)],
)
def test_the_epoch_is_the_whole_part_of_the_trainers(told: float | None, epoch: int) -> None:
    assert begin_epoch(EpochClock(), told) == epoch


@pytest.mark.parametrize("steps", [3, 7, 49, 1000])
def test_epochs_that_the_trainer_summed_up_are_not_missed(steps: int) -> None:
    clock = EpochClock()
    for epoch in range(1, 12):
        assert begin_epoch(clock, (epoch - 1) + steps / steps) == epoch
        assert begin_epoch(clock, sum([1 / steps] * (epoch * steps))) == epoch


def test_the_clock_begins_where_it_is_told_and_can_be_set() -> None:
    assert EpochClock().epoch == 0
    clock = EpochClock(5)
    assert clock.epoch == 5
    clock.epoch = 2
    assert clock.epoch == 2
    assert EpochClock().epoch == 0  # clocks do not share


@pytest.mark.parametrize("event", ["on_init_end", "on_train_begin"])
def test_it_knows_whether_a_trainer_has_it(event: str) -> None:
    clock = EpochClock()
    assert not clock.connected
    getattr(clock, event)(TrainingArguments(), TrainerState(), TrainerControl())
    assert clock.connected
    assert not EpochClock().connected


def test_a_worker_that_was_started_before_sees_the_epoch() -> None:
    clock = EpochClock()
    loader = DataLoader(Watch(clock), batch_size=None, num_workers=1, persistent_workers=True)
    assert {tuple(item) for item in loader} == {(0, False)}
    begin_epoch(clock, 3.0)
    clock.on_train_begin(TrainingArguments(), TrainerState(), TrainerControl())
    assert {tuple(item) for item in loader} == {(3, True)}
    clock.epoch = 1
    assert {tuple(item) for item in loader} == {(1, True)}
