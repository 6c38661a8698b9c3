"""How long a run will take, logged where its steps are long: until the first ends, a progress bar shows nothing."""

from __future__ import annotations

import logging
import time
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

logger = logging.getLogger(__name__)

MANY_TOKENS = 10_000
"""Tokens of a batch from which on its size is logged: a small encoder takes seconds for so many on one CPU core."""

LONG_STEP = 20.0
"""Seconds of a step from which on the time of the run is estimated in words."""

LONG_RUN = 60.0
"""Seconds that have to be left for that."""


class StepTimeCallback(TrainerCallback):
    """Logs how large the first batch is, if it is large, and from how long its step took, how long the run takes."""

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss
        self._hook: RemovableHandle | None = None
        self._began: float | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Wait for the first batch."""
        self._hook = self.loss.register_forward_pre_hook(self._log_size)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Note when the first step begins."""
        if self._hook is not None:
            self._began = time.perf_counter()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """After the first step, estimate how long the others take."""
        if self._hook is None or self._began is None:
            return
        self.release()
        took, left = time.perf_counter() - self._began, state.max_steps - state.global_step
        if took > LONG_STEP and took * left > LONG_RUN:
            logger.info(
                "The first step took %s: about %s for the %s left.",
                spell_seconds(took), spell_seconds(took * left), f"{left:,}",
            )  # fmt: skip

    def release(self) -> None:
        """Stop waiting for the first batch."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _log_size(self, loss: nn.Module, inputs: tuple[Any, ...]) -> None:
        columns = list(inputs[0])
        tokens = sum(count_tokens(features) for features in columns)
        if tokens >= MANY_TOKENS:
            logger.info(
                "The first step reads %s tokens, %d views of each document; from its time follows that of the run.",
                f"{tokens:,}", len(columns),
            )  # fmt: skip


def count_tokens(features: dict[str, Any]) -> int:
    """Count the tokens of a batch, padding left out."""
    mask = features.get("attention_mask")
    return int(mask.sum()) if isinstance(mask, Tensor) else int(features["input_ids"].numel())


def spell_seconds(seconds: float) -> str:
    """Spell a time in the unit that suits it."""
    if seconds < 200:
        return f"{seconds:.0f} s"
    if seconds < 200 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
