"""Third stage of a run: its batches, the stock Trainer with its callbacks, and the training."""

from __future__ import annotations

import logging
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from transformers import PrinterCallback, TrainerCallback, TrainerState, set_seed
from transformers.trainer import TRAINER_STATE_NAME

from simlte_st.compat import eager_attention, encoder_of, is_fused, load_stock, use_one_gpu
from simlte_st.distributed import rank, world
from simlte_st.errors import ConfigurationError, DataError, ModelError, TrainingInterrupted
from simlte_st.files import raise_if_full
from simlte_st.modules import OWN_MODULES
from simlte_st.progress import logs_above_bars
from simlte_st.prompts import document_prompt
from simlte_st.training.batching import OrderedBatchSampler, SeededBatchSampler
from simlte_st.training.callbacks import (
    CompleteCallback,
    DivergenceCallback,
    InterruptCallback,
    ProgressBarCallback,
    trainer_callbacks,
)
from simlte_st.training.load_model import warn_of_pooling
from simlte_st.training.run import TrainingRun
from simlte_st.training.token_views import reader_of

logger = logging.getLogger(__name__)


MOST_TOKENS = 96
"""Tokens of a view up to which attention weights are kept for the backward pass: they grow with their square."""


@dataclass(frozen=True)
class Batches:
    """How the rows of a data set come to batches.

    Attributes:
        sampler: For ``batch_sampler=`` of the training arguments.
        rows: The batches of an epoch, those of all processes in turn.
        size: Documents in a batch, those of all processes together.
    """

    sampler: type[SeededBatchSampler]
    rows: SeededBatchSampler
    size: int

    @property
    def steps(self) -> int:
        """Number of batches of an epoch."""
        return len(self.rows) // world()


def fit(run: TrainingRun) -> TrainingRun:
    """Train with the stock Trainer, from the beginning or from the newest complete checkpoint of the run."""
    model, folder = run.model, run.folder
    batches, interrupt, trainer = set_up(run)
    folder.begun = True
    checkpoint = folder.checkpoint if folder.resume else None
    if folder.resume:
        logger.info("Resuming from %s.", checkpoint or "the beginning: no checkpoint was complete")
    began = time.perf_counter()
    state = restore_finished(model, checkpoint)
    if state is None:
        dtype = torch.bfloat16 if trainer.args.bf16 else torch.float32
        try:
            with logs_above_bars(), faster_attention(model, dtype):
                trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except DataError as error:  # to that of a worker the loader adds its traceback
            raise type(error)(str(error).rpartition(f"{type(error).__name__}: ")[2].strip()) from error
        except Exception as error:
            raise_if_full(error, folder.checkpoints, "Make room, and continue with the same settings and resume=True.")
            raise
        finally:
            interrupt.restore()
        state = trainer.state
    run.seconds = time.perf_counter() - began
    run.steps, run.log = state.global_step, state.log_history
    if interrupt.interrupted and run.steps < state.max_steps:
        raise TrainingInterrupted(
            f"Stopped at step {run.steps} of {state.max_steps}; a checkpoint is written to {folder.path}. "
            "Continue with the same settings and resume=True.",
            interrupt.interrupted,
        )
    model.eval()
    # After a run in bfloat16 the model would still compute in it, unlike the base that it is compared with.
    trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    vars(model).pop("forward", None)  # bound to this object; copies would share it
    first_step = int(checkpoint.name.rsplit("-", 1)[1]) if checkpoint else 0
    run.documents_per_second = (run.steps - first_step) * batches.size / run.seconds
    return run


def set_up(run: TrainingRun) -> tuple[Batches, InterruptCallback, SentenceTransformerTrainer]:
    """Return the Trainer of a run, with its batches and what stops it."""
    model, preset, config, stream = run.model, run.preset, run.config, run.stream
    steps = config.steps_of(preset)
    dataset = run.dataset if stream is None else stream.rows((steps or 0) * preset.batch_size)
    if run.token_views is not None:
        dataset = run.token_views.rows()
    batches = make_batches(run, dataset)
    steps = config.steps_of(preset, None if stream else batches.steps) or math.ceil(batches.steps * preset.epochs)
    _log_plan(run, batches, steps, len(dataset))

    interrupt = InterruptCallback()
    callbacks: list[TrainerCallback] = [
        *trainer_callbacks(run.views, run.loss),
        # After those whose numbers it shows.
        *([ProgressBarCallback(batches.size)] if config.progress else []),
        DivergenceCallback(model, run.loss),
        CompleteCallback(),
        interrupt,
    ]
    arguments = training_arguments(
        run.folder.checkpoints,
        batch_size=max(1, batches.size // world()),
        epochs=preset.epochs,
        steps=steps,
        max_steps=steps,  # the number that the log and warnings name, and not what the Trainer makes of the epochs
        learning_rate=preset.learning_rate,
        warmup=preset.warmup,
        bf16=run.dtype == "bfloat16",
        device=config.device,
        seed=config.seed,
        batch_sampler=batches.sampler,
        dataloader_num_workers=config.workers,
        # Several processes: else a warning sets it, and our samplers leave nothing to drop. Static models: a step on a
        # few documents would change them as much as one on all.
        dataloader_drop_last=world() > 1 or run.static,
        save_strategy="steps",
        # A checkpoint of a static model takes as long as ten steps.
        save_steps=config.save_steps or min(500, max(10, steps // (4 if run.static else 10))),
        save_total_limit=2,
        prompts=document_prompt(model) or None,  # which encode and index put before each document
    )
    trainer = make_trainer(model, arguments, dataset, run.loss, callbacks)
    if run.static:
        trainer.data_collator.preprocess_fn = reader_of(model)
    if world() > 1:
        set_seed(config.seed + rank())  # the processes drop other weights; each keeps its state in the checkpoints
    return batches, interrupt, trainer


def make_batches(run: TrainingRun, dataset: Dataset) -> Batches:
    """Return the batches of a run; those of a stream are its documents in their order."""
    preset, seed = run.preset, run.config.seed
    used = len(dataset) - len(dataset) % world()
    if used == 0:
        raise ConfigurationError(f"{len(dataset)} documents for {world()} processes: start fewer.")
    size = min(preset.batch_size, used)
    sampler = SeededBatchSampler if run.stream is None else OrderedBatchSampler
    return Batches(sampler, sampler(dataset, batch_size=size // world(), drop_last=run.static, seed=seed), size)


def _log_plan(run: TrainingRun, batches: Batches, steps: int, documents: int) -> None:
    if run.stream is None:
        passes = round(steps / batches.steps, 1)
        shares = f"{passes:g} pass{'' if passes == 1 else 'es'} over the {documents:,} documents"
    else:
        shares = f"{documents:,} documents of the stream"
    logger.info("%d step%s planned, %s.", steps, "" if steps == 1 else "s", shares)
    if world() > 1:
        logger.info("%d processes share each batch, on %s.", world(), (run.config.device or "").split(":")[0].upper())
    if left := documents % world():
        logger.info(
            "%d document%s skipped in each pass, different ones each time: %d processes take equal parts.",
            left,
            " is" if left == 1 else "s are",
            world(),
        )
    warn_of_pooling(run.base, run.preset, steps)


def training_arguments(
    output_dir: Path,
    *,
    batch_size: int,
    epochs: float,
    steps: int,
    learning_rate: float,
    warmup: float = 0.0,
    max_steps: int | None = None,
    bf16: bool = False,
    device: str | None = None,
    seed: int = 0,
    **others: Any,
) -> SentenceTransformerTrainingArguments:
    """Return the arguments of the stock Trainer: AdamW without weight decay, a linear schedule."""
    accelerator = device != "cpu" and (torch.cuda.is_available() or torch.backends.mps.is_available())
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output_dir),
        per_device_train_batch_size=batch_size,
        num_train_epochs=epochs,
        max_steps=max_steps or -1,
        learning_rate=learning_rate,
        warmup_steps=math.ceil(steps * warmup),
        weight_decay=0.0,
        seed=seed,
        bf16=bf16,
        use_cpu=not accelerator,
        dataloader_pin_memory=accelerator,
        logging_steps=max(1, min(50, steps // 20)),
        report_to="none",
        disable_tqdm=True,  # our own bar counts documents
        **others,
    )
    if world() == 1 and (arguments.n_gpu > 1 or (device or "").startswith("cuda")):
        use_one_gpu(arguments, device or "cuda")  # else batches would be as many times as large, and fewer
    return arguments


def make_trainer(
    model: SentenceTransformer,
    arguments: SentenceTransformerTrainingArguments,
    dataset: Dataset,
    loss: torch.nn.Module,
    callbacks: list[TrainerCallback],
) -> SentenceTransformerTrainer:
    """Return the stock Trainer, quiet and without the user's documents in its model card."""
    card = model.model_card_data
    example: dict[str, Any] = {"source_sentence": "A long document ...", "sentences": ["Another ...", "A third ..."]}
    card.widget = [example]
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=callbacks
    )
    card.train_datasets = []  # it has drawn samples for its card, which goes into every checkpoint
    trainer.remove_callback(PrinterCallback)  # prints each log line when tqdm is off
    return trainer


def restore_finished(model: SentenceTransformer, checkpoint: Path | None) -> TrainerState | None:
    """Load the weights of a checkpoint of the last step, which the Trainer would train for one step more."""
    if checkpoint is None:
        return None
    state: TrainerState = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if state.global_step < state.max_steps:
        return None
    finished = load_stock(str(checkpoint), OWN_MODULES, device=str(model.device))
    model.load_state_dict(finished.state_dict())
    return state


def faster_attention(model: SentenceTransformer, dtype: torch.dtype) -> AbstractContextManager[None]:
    """Return a context manager that switches attention over short views, in bfloat16 on a CPU, to eager attention.

    PyTorch's fused attention is faster everywhere else. There its backward pass takes as long for 64 tokens as for 512:
    with four small operations in its place a layer's attention is 4.8 times as fast at 64 tokens, and 4.1 at 112
    (forward and backward, 4,096 tokens, one thread, torch 2.13). At 256 it is slower.
    """
    length = model.max_seq_length
    if model.device.type != "cpu" or dtype is not torch.bfloat16 or length is None or length > MOST_TOKENS:
        return nullcontext()
    try:
        encoder = encoder_of(model)
    except ModelError:  # another kind of model, without attention
        return nullcontext()
    slow = is_fused(encoder) and encoder.config.model_type != "simlte_longformer"
    return eager_attention(encoder) if slow else nullcontext()
