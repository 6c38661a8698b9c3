"""Callbacks that add to the stock Trainer what it lacks."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from tqdm.auto import tqdm
from transformers import ProgressCallback, TrainerCallback, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from simlte_st.compat import FirstCallbacks
from simlte_st.data.transform import DocSplitTransform
from simlte_st.distributed import barrier, is_main, largest, world
from simlte_st.errors import TrainingDiverged
from simlte_st.files import atomic_path
from simlte_st.losses.loss_state import LossStateMixin
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin
from simlte_st.progress import progress_bar

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
        """
        self.loss.set_head_precision(bool(args.bf16))
        if state.global_step == 0 or not self.loss.extra_state():
            return
        self.loss.load_extra_state(load_file(checkpoint_directory(args, state) / LOSS_FILE))


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
    """Adds mean in-batch cosine, alignment and uniformity to each log line of training.

    Args:
        loss: The loss that the Trainer uses, which collects the numbers.
    """

    def __init__(self, loss: MLMLossMixin) -> None:
        self.loss = loss

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Extend the line, for the callbacks after this one and for ``state.log_history``."""
        if logs is not None and "loss" in logs:
            metrics = self.loss.metrics.take()
            logs.update(metrics)
            if state.log_history:
                state.log_history[-1].update(metrics)


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
    return FirstCallbacks([views.callback, SamplerEpochCallback(), *metrics[:1], *states[:1]])


class ProgressBarCallback(ProgressCallback):
    """The Trainer's progress bar, with the terms of the loss in it instead of log lines above it."""

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Open the bar; it begins at the current step once the first one is done."""
        if state.is_world_process_zero:
            self.training_bar = progress_bar("Training", state.max_steps, unit="step")
        self.current_step = 0

    def on_log(self, args: Any, state: TrainerState, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Show the terms of the loss."""
        if self.training_bar is not None and logs:
            shown = ("loss", "contrastive", "mlm", "mean_cosine")
            values = {name: f"{float(logs[name]):.3f}" for name in shown if name in logs}
            self.training_bar.set_postfix(values, refresh=False)  # which without a terminal would be a line each time


class DivergenceCallback(TrainerCallback):
    """Stops the Trainer when a weight at a checkpoint is not finite.

    The Trainer by itself saves such weights. Add it before :class:`CompleteCallback`: then the newest complete
    checkpoint is the last good one.
    """

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def on_save(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Check the weights of the checkpoint that has just been written."""
        check_weights(self.model, f"after step {state.global_step}")


def check_weights(model: nn.Module, when: str) -> None:
    """Check that all weights of a model are finite."""
    bad = [name for name, weight in model.state_dict().items() if not torch.isfinite(weight).all()]
    if bad:
        raise TrainingDiverged(
            f"Training diverged: {when}, {len(bad)} of the model's tensors are not finite ({bad[0]}, ...). No model "
            "was saved. Use a lower learning rate, a longer warm-up (warmup=), or float32 (bf16=False)."
        )


class InterruptCallback(TrainerCallback):
    """On Ctrl-C or SIGTERM, finishes the step, writes a checkpoint and stops. A second signal stops at once.

    SIGTERM comes from ``kill`` and from schedulers. Of several processes all stop after the same step, whichever of
    them got the signal.

    Attributes:
        interrupted: The signal that stopped the run, or None.
    """

    def __init__(self) -> None:
        self.interrupted: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Handle the signals, if this is the main thread, where Python allows it."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._previous[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = signal.Signals(number)
        self.restore()  # the next one is not ours
        if is_main():
            text = "Stopping after this step, with a checkpoint. Another signal stops at once."
            tqdm.write(text, file=sys.stderr)

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> Any:
        """Request a checkpoint and the end."""
        number = largest(self.interrupted or 0)
        if number:
            self.interrupted = signal.Signals(number)
            control.should_save = True
            control.should_training_stop = True
        return control

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Restore the handlers."""
        self.restore()

    def restore(self) -> None:
        """Restore the handlers of before."""
        while self._previous:
            signal.signal(*self._previous.popitem())
