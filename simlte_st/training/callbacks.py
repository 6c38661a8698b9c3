"""Callbacks for the stock Trainer: loss state, metrics, progress, interrupts and divergence."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import ProgressCallback, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from simlte_st.arguments import check_arguments
from simlte_st.compat import FirstCallbacks, resumed_checkpoint
from simlte_st.distributed import is_main, max_over_processes, world
from simlte_st.errors import ResumeError, TrainingDiverged
from simlte_st.files import atomic_path
from simlte_st.losses.base import LossStateMixin
from simlte_st.losses.multiple_negatives_ranking_mlm import MLMLossMixin
from simlte_st.models.samples import find_overflow
from simlte_st.progress import progress_bar, write_line
from simlte_st.views.transform import DocSplitTransform

Logs = dict[str, float] | None

LOSS_FILE = "loss.safetensors"
COMPLETE_FILE = "complete"


def checkpoint_directory(args: TrainingArguments, state: TrainerState) -> Path:
    """Return the folder of the current step's checkpoint."""
    return Path(str(args.output_dir)) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"


class LossStateCallback(TrainerCallback):
    """Save the loss's state, such as an MLM head, with each checkpoint, and restore it when a run resumes.

    The Trainer optimises these parameters but saves only the model's, so a resumed run would start with a different
    head. The callback also runs the head in bfloat16 if the Trainer uses bfloat16.

    Args:
        loss: The Trainer's loss.
    """

    @check_arguments
    def __init__(self, loss: LossStateMixin) -> None:
        self.loss = loss

    def on_save(self, args: TrainingArguments, state: TrainerState, control: object, **kwargs: object) -> None:
        """Write the loss's parameters to the new checkpoint."""
        tensors = {name: tensor.cpu().contiguous() for name, tensor in self.loss.extra_state().items()}
        if state.is_world_process_zero and tensors:
            with atomic_path(checkpoint_directory(args, state) / LOSS_FILE) as path:
                save_file(tensors, path)

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: object, **kwargs: object) -> None:
        """Restore the loss's parameters if the run resumes, and set the precision of the head.

        The Trainer's autocast covers only the model. With float16, which needs gradient scaling, the head stays in
        float32.
        """
        self.loss.set_head_precision(bool(args.bf16))
        if state.global_step == 0 or not self.loss.extra_state():
            return
        path = Path(resumed_checkpoint() or "", LOSS_FILE)
        if not path.exists():
            raise ResumeError(f"{path} is missing: resume from a checkpoint saved with LossStateCallback.")
        self.loss.load_extra_state(load_file(path))


class CompleteCallback(TrainerCallback):
    """Mark a checkpoint as complete once all other callbacks have written to it; add this callback last.

    A process killed while writing leaves an incomplete checkpoint without this marker file.
    """

    def on_save(self, args: TrainingArguments, state: TrainerState, control: object, **kwargs: object) -> None:
        """Write the marker file after all processes have written their part."""
        max_over_processes(0)  # waits for them
        if state.is_world_process_zero:
            (checkpoint_directory(args, state) / COMPLETE_FILE).touch()


def last_complete_checkpoint(directory: Path) -> Path | None:
    """Return the newest complete checkpoint in a folder, or None."""
    complete = [path.parent for path in directory.glob(f"{PREFIX_CHECKPOINT_DIR}-*/{COMPLETE_FILE}")]
    return max(complete, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


class SamplerEpochCallback(TrainerCallback):
    """Set the batch sampler's epoch when a run with several processes resumes.

    In such a run, two samplers wrap the batch sampler (``SkipBatchSampler`` and ``BatchSamplerShard``), so neither
    accelerate nor the Trainer sets its epoch, and training would continue with the batches of the first epoch.
    """

    def on_train_begin(self, args: object, state: TrainerState, control: object, **kwargs: Any) -> None:
        """Set the epoch, unless the data is a stream, which has no batch sampler."""
        sampler: Any = getattr(kwargs["train_dataloader"].batch_sampler, "batch_sampler", None)
        if world() > 1 and hasattr(sampler, "set_epoch"):
            sampler.set_epoch(int((state.epoch or 0.0) + 1e-6))


class LossMetricsCallback(TrainerCallback):
    """Add the mean in-batch cosine, alignment and uniformity to each training log.

    Args:
        loss: The Trainer's loss, which collects these metrics.
    """

    def __init__(self, loss: MLMLossMixin) -> None:
        self.loss = loss

    def on_log(self, args: object, state: TrainerState, control: object, logs: Logs = None, **kwargs: object) -> None:
        """Add the metrics to the log that later callbacks receive and to ``state.log_history``."""
        if logs is not None and "loss" in logs:
            metrics = self.loss.metrics.take()
            logs.update(metrics)
            if state.log_history:
                state.log_history[-1].update(metrics)


@check_arguments
def trainer_callbacks(views: DocSplitTransform, loss: nn.Module) -> list[TrainerCallback]:
    """Return the callbacks that DocSplit needs in the stock Trainer.

    The Trainer runs them before its reporters (``report_to="tensorboard"``, ``"wandb"``, ...), which therefore receive
    all metrics. Add your own callbacks with ``trainer.add_callback``: if you put these callbacks into a new list, they
    would run after the reporters.

    Args:
        views: The transform, whose callback sets the epoch so that each epoch draws new views.
        loss: The loss. Checkpoints include the parameters of this package's losses, including wrapped ones, and logs
            include the metrics of MLM losses. If you do not use a transform, use :class:`LossStateCallback` and
            :class:`LossMetricsCallback` directly.

    Returns:
        A list for the ``callbacks`` argument of ``SentenceTransformerTrainer``.

    Example:
        ::

            views, loss = DocSplitTransform(model=model), MultipleNegativesRankingMLMLoss(model)
            callbacks = trainer_callbacks(views, loss)
            SentenceTransformerTrainer(model, train_dataset=views.attach(texts), loss=loss, callbacks=callbacks)
    """
    losses = list(loss.modules())  # outermost first
    metrics = [LossMetricsCallback(module) for module in losses if isinstance(module, MLMLossMixin)]
    states = [LossStateCallback(module) for module in losses if isinstance(module, LossStateMixin)]
    # The outermost loss's state includes that of the losses it wraps.
    return FirstCallbacks([views.callback, SamplerEpochCallback(), *metrics[:1], *states[:1]])


class ProgressBarCallback(ProgressCallback):
    """Show the terms of the loss in the Trainer's progress bar instead of printing log lines above it."""

    def on_train_begin(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Open the progress bar, whose position is set at the end of the first step."""
        if state.is_world_process_zero:
            self.training_bar = progress_bar("Training", state.max_steps, unit="step")
        self.current_step = 0

    def on_log(self, args: object, state: object, control: object, logs: Logs = None, **kwargs: object) -> None:
        """Show the terms of the loss beside the progress bar."""
        if self.training_bar is not None and logs:
            names = ("loss", "contrastive", "mlm", "mean_cosine")
            terms = {name: f"{float(logs[name]):.3f}" for name in names if name in logs}
            self.training_bar.set_postfix(terms, refresh=False)  # a refresh would print a line if there is no terminal


class DivergenceCallback(TrainerCallback):
    """Stop training if a checkpoint's weights or embeddings are not finite.

    The Trainer itself would save such a model. Add this callback before :class:`CompleteCallback`, so that the newest
    complete checkpoint is the last good one.
    """

    def __init__(self, model: SentenceTransformer, texts: Sequence[str] = ()) -> None:
        self.model, self.texts = model, texts

    def on_save(self, args: object, state: TrainerState, control: object, **kwargs: object) -> None:
        """Check the new checkpoint."""
        check_converged(self.model, self.texts, f"after step {state.global_step}")


def check_converged(model: SentenceTransformer, texts: Sequence[str], when: str) -> None:
    """Raise ``TrainingDiverged`` if a model's weights, or its embeddings of these and other texts, are not finite."""
    if problem := find_overflow(model, texts):
        advice = "Use a lower learning rate, a longer warmup (warmup=) or float32 (bf16=False)."
        raise TrainingDiverged(f"Training diverged: {when}, {problem}. No model was saved. {advice}")


class InterruptCallback(TrainerCallback):
    """On Ctrl-C or SIGTERM, finish the step, write a checkpoint and stop. A second signal stops immediately.

    ``kill`` and job schedulers send SIGTERM. If one of several processes receives a signal, all of them stop after the
    same step.

    Attributes:
        interrupted: The signal that stopped the run, or None.
    """

    def __init__(self) -> None:
        self.interrupted: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def on_train_begin(self, args: object, state: object, control: object, **kwargs: object) -> None:
        """Install the signal handlers, which Python allows only in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._handlers[number] = signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.interrupted = signal.Signals(number)
        self.restore()  # so that a second signal stops immediately
        if is_main():
            write_line("Stopping after this step and saving a checkpoint. Another signal stops immediately.")

    def on_step_end(self, args: object, state: object, control: TrainerControl, **kwargs: object) -> None:
        """Request a checkpoint and stop training if any process was interrupted."""
        number = max_over_processes(self.interrupted or 0)
        if number:
            self.interrupted = signal.Signals(number)
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
        """Restore the previous signal handlers."""
        self.restore()

    def restore(self) -> None:
        """Restore the previous signal handlers."""
        while self._handlers:
            signal.signal(*self._handlers.popitem())
