"""Callbacks that add to the stock Trainer what it lacks."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from simlte_st.data.transform import DocSplitTransform
from simlte_st.distributed import barrier, world
from simlte_st.errors import ResumeError
from simlte_st.files import atomic_path
from simlte_st.losses.loss_state import LossStateMixin
from simlte_st.losses.mlm_mixin import MLMLossMixin
from simlte_st.progress import progress_bar, spell_seconds

logger = logging.getLogger(__name__)

COLLAPSED = 0.99
"""Mean cosine between different documents above which a warning is logged; that of language models is below .95."""

MANY_TOKENS = 10_000
"""Tokens of a batch above which its size is logged: a small encoder takes seconds for them on one CPU core."""

LONG_STEP = 20.0
"""Seconds of a step above which the time of the run is estimated ..."""

LONG_RUN = 60.0
"""... if more than this number of seconds are left."""

LOSS_FILE = "loss.safetensors"
COMPLETE_FILE = "complete"


def checkpoint_directory(args: TrainingArguments, state: TrainerState) -> Path:
    """Return the folder of the checkpoint of the current step."""
    return Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


class LossStateCallback(TrainerCallback):
    """Saves the state of the loss (an MLM head, ...) with each checkpoint, and restores it when a run resumes.

    The Trainer optimises these parameters but saves only the model's, so a resumed run would start with another head.
    The callback also has the loss compute its head in bfloat16 if the Trainer computes the model in it.

    Args:
        loss: The loss that the Trainer uses.
    """

    def __init__(self, loss: LossStateMixin) -> None:
        self.loss = loss

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Write the parameters into the checkpoint that has just been written."""
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.loss.extra_state().items()}
        if state.is_world_process_zero and tensors:
            with atomic_path(checkpoint_directory(args, state) / LOSS_FILE) as path:
                save_file(tensors, path)

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Restore the parameters if the run begins at a checkpoint, and set the precision of the head.

        The Trainer's autocast covers the model only. With float16, which needs scaled gradients, the head stays in
        float32.

        Raises:
            ResumeError: The checkpoint has no parameters of the loss.
        """
        self.loss.set_head_precision(bool(args.bf16))
        if state.global_step == 0 or not self.loss.extra_state():
            return
        path = checkpoint_directory(args, state) / LOSS_FILE
        if not path.exists():
            raise ResumeError(
                f"{path} is missing: the run would continue with new parameters of the loss. "
                "Resume from a checkpoint in the Trainer's output_dir that was written with LossStateCallback."
            )
        self.loss.load_extra_state(load_file(path))


class CompleteCallback(TrainerCallback):
    """Marks a checkpoint complete after all other callbacks have written to it: add it last.

    A process killed while writing leaves a checkpoint that looks complete and is not.
    """

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Write the mark once all processes have written their part."""
        barrier()
        if state.is_world_process_zero:
            (checkpoint_directory(args, state) / COMPLETE_FILE).touch()


def last_complete_checkpoint(directory: Path) -> Path | None:
    """Return the newest complete checkpoint in a folder."""
    complete = [path.parent for path in directory.glob(f"{PREFIX_CHECKPOINT_DIR}-*/{COMPLETE_FILE}")]
    return max(complete, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


class SamplerEpochCallback(TrainerCallback):
    """Sets the epoch of the batch sampler when a run of several processes resumes.

    Neither accelerate nor the Trainer reaches it through the two samplers around it then (``SkipBatchSampler``,
    ``BatchSamplerShard``): the rest of the epoch would be that of the first one.
    """

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Set it."""
        # A stream has none.
        sampler: Any = getattr(kwargs["train_dataloader"].batch_sampler, "batch_sampler", None)
        if world() > 1 and hasattr(sampler, "set_epoch"):
            sampler.set_epoch(int((state.epoch or 0.0) + 1e-6))


class LossMetricsCallback(TrainerCallback):
    """Adds mean in-batch cosine, alignment and uniformity to each log line of training, and warns of a collapse.

    Args:
        loss: The loss that the Trainer uses, which collects the numbers.
    """

    def __init__(self, loss: MLMLossMixin) -> None:
        self.loss = loss
        self._warned = False

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Extend the line, for the callbacks after this one and for ``state.log_history``."""
        if logs is not None and "loss" in logs:
            metrics = self.loss.metrics.take()
            logs.update(metrics)
            if state.log_history:
                state.log_history[-1].update(metrics)
            if metrics.get("mean_cosine", 0.0) > COLLAPSED and not self._warned:
                self._warned = True
                logger.warning(
                    "Step %d: the embeddings of different documents are nearly the same (mean cosine %.3f). If that "
                    "lasts, nothing is learnt: use a lower learning rate, or another seed.",
                    state.global_step,
                    metrics["mean_cosine"],
                )


def trainer_callbacks(views: DocSplitTransform, loss: nn.Module) -> list[TrainerCallback]:
    """Return the callbacks that DocSplit needs in the stock Trainer, in their order.

    Args:
        views: The transform, which learns the epoch from its callback, so that each epoch draws new views.
        loss: The loss. What this package's losses learn beside the model, those inside a wrapping loss included, is
            saved with checkpoints, and the metrics of MLM losses are logged. Without a transform use
            :class:`LossStateCallback` and :class:`LossMetricsCallback` themselves.
    """
    parts = list(loss.modules())  # outer ones first
    metrics = [LossMetricsCallback(part) for part in parts if isinstance(part, MLMLossMixin)]
    states = [LossStateCallback(part) for part in parts if isinstance(part, LossStateMixin)]
    # The state of the outer one includes those of the inner ones.
    return [views.callback, SamplerEpochCallback(), *metrics[:1], *states[:1]]


class ProgressBarCallback(TrainerCallback):
    """A progress bar in documents: rate, time left, and the terms of the loss."""

    def __init__(self, documents_per_step: int) -> None:
        self.documents_per_step = documents_per_step
        self._bar: Any = None

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Open the bar, at the current step if the run resumes."""
        if state.is_world_process_zero:
            self._bar = progress_bar(
                "Training",
                state.max_steps * self.documents_per_step,
                initial=state.global_step * self.documents_per_step,
            )

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Advance the bar."""
        if self._bar is not None:
            self._bar.update(self.documents_per_step)

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Show the terms of the loss."""
        if self._bar is not None and logs:
            shown = ("loss", "contrastive", "mlm", "mean_cosine", "distance", "relation")
            values = {name: f"{float(logs[name]):.3f}" for name in shown if name in logs}
            self._bar.set_postfix(values, refresh=False)  # which without a terminal would be a line each time

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


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
                spell_seconds(took),
                spell_seconds(took * left),
                f"{left:,}",
            )


def _log_size(loss: nn.Module, inputs: tuple[Any, ...]) -> None:
    columns = list(inputs[0])
    tokens = sum(count_tokens(features) for features in columns)
    if tokens >= MANY_TOKENS:
        logger.info("The first step reads %s tokens, %d views of each document.", f"{tokens:,}", len(columns))


def count_tokens(features: dict[str, Any]) -> int:
    """Return the number of tokens of a batch without padding."""
    mask = features.get("attention_mask")
    return int(mask.sum()) if isinstance(mask, Tensor) else int(features["input_ids"].numel())
