"""The epoch, told by the Trainer to whatever draws views, in this process and in its data loading workers."""

from __future__ import annotations

from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments


class EpochClock(TrainerCallback):
    """A callback that knows the current epoch.

    The number lies in shared memory: workers that were started before the epoch began see it too.
    """

    def __init__(self, epoch: int = 0) -> None:
        self._epoch = torch.tensor(epoch, dtype=torch.int64).share_memory_()
        self._connected = torch.tensor(False).share_memory_()

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return int(self._epoch)

    @epoch.setter
    def epoch(self, value: int) -> None:
        self._epoch.fill_(value)

    @property
    def connected(self) -> bool:
        """Whether a Trainer has this callback."""
        return bool(self._connected)

    def connect(self) -> None:
        """Note that somebody tells the epoch."""
        self._connected.fill_(True)

    def on_init_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Note that a Trainer keeps this clock: it draws views for its model card before training begins."""
        self.connect()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Note the same where the clock was given to the Trainer later, by ``add_callback``."""
        self.connect()

    def on_epoch_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Take over the epoch. A resumed run begins in the middle of one: ``state.epoch`` 2.4 is epoch 2."""
        self.epoch = int((state.epoch or 0.0) + 1e-6)
