"""An estimate of the time of a run with long steps: until the first one ends, the progress bar shows nothing."""

from __future__ import annotations

import logging
import time
from typing import Any

from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState

logger = logging.getLogger(__name__)

MANY_TOKENS = 10_000
"""Tokens of a batch above which its size is logged: a small encoder takes seconds for them on one CPU core."""

LONG_STEP = 20.0
"""Seconds of a step above which the time of the run is estimated ..."""

LONG_RUN = 60.0
"""... if more than this number of seconds are left."""


class StepTimeCallback(TrainerCallback):
    """Logs the size of a large first batch and, from the time of a long first step, how long the run takes."""

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss
        self._hook: Any = None  # until the first step ends
        self._began = 0.0

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Wait for the first batch."""
        self._hook = self.loss.register_forward_pre_hook(_log_size)

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Note when the first step begins."""
        if self._hook is not None:
            self._began = time.perf_counter()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Estimate the time of the other steps after the first."""
        if self._hook is None:
            return
        self._hook.remove()
        self._hook = None
        took, left = time.perf_counter() - self._began, state.max_steps - state.global_step
        if took > LONG_STEP and took * left > LONG_RUN:
            logger.info(
                "The first step took %s: about %s for the %s left.",
                spell_seconds(took), spell_seconds(took * left), f"{left:,}",
            )  # fmt: skip


def _log_size(loss: nn.Module, inputs: tuple[Any, ...]) -> None:
    columns = list(inputs[0])
    tokens = sum(count_tokens(features) for features in columns)
    if tokens >= MANY_TOKENS:
        logger.info("The first step reads %s tokens, %d views of each document.", f"{tokens:,}", len(columns))


def count_tokens(features: dict[str, Any]) -> int:
    """Return the number of tokens of a batch without padding."""
    mask = features.get("attention_mask")
    return int(mask.sum()) if isinstance(mask, Tensor) else int(features["input_ids"].numel())


def spell_seconds(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 200:
        return f"{seconds:.0f} s"
    if seconds < 200 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"
