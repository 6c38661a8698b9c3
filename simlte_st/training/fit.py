"""The training itself: which batches a run has, the stock Trainer with the callbacks of a run, and what came of it."""

from __future__ import annotations

import itertools
import logging
import math
import time
from collections.abc import Callable
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

from simlte_st.backbones.registry import backbone_of
from simlte_st.compat import default_prompt, encoder_of, load_stock, taken_tokens, use_one_gpu
from simlte_st.errors import ConfigurationError, DataError, TrainingInterrupted
from simlte_st.files import raise_if_full
from simlte_st.modules import OWN_MODULES
from simlte_st.processes import let_main_tell, rank, world
from simlte_st.progress import logs_above_bars
from simlte_st.training.batching import (
    ConfiguredBatchSampler,
    OrderedBatchSampler,
    SeededBatchSampler,
    TokenBudgetBatchSampler,
    ViewLengths,
)
from simlte_st.training.callbacks import (
    CompleteCallback,
    ProgressBarCallback,
    trainer_callbacks,
)
from simlte_st.training.divergence import DivergenceCallback
from simlte_st.training.interrupt import InterruptCallback
from simlte_st.training.model import Trainee, warn_of_pooling
from simlte_st.training.prepare import Prepared, stream_steps
from simlte_st.training.run import RunFolder, RunOptions
from simlte_st.training.short_views import faster_attention
from simlte_st.training.step_time import StepTimeCallback

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batches:
    """How documents come to batches.

    Attributes:
        sampler: For ``batch_sampler=`` of the training arguments.
        size: Documents in a batch, those of all processes together; for batches of tokens, on average.
        steps: Batches of an epoch.
    """

    sampler: Callable[..., Any]
    size: int
    steps: int


@dataclass(frozen=True)
class Fitting:
    """A Trainer that is ready.

    Attributes:
        trainer: The stock Trainer.
        batches: Its batches.
        interrupt: Stops it on Ctrl-C or SIGTERM.
        divergence: Stops it where the loss is no number.
    """

    trainer: SentenceTransformerTrainer
    batches: Batches
    interrupt: InterruptCallback
    divergence: DivergenceCallback


@dataclass(frozen=True)
class Fitted:
    """What the Trainer did.

    Attributes:
        steps: Optimizer steps done, those before a resumption included.
        seconds: Seconds of training, in this process.
        documents_per_second: Rate over them.
        log: The Trainer's log lines.
    """

    steps: int
    seconds: float
    documents_per_second: float
    log: list[dict[str, Any]]


def set_up(trainee: Trainee, prepared: Prepared, folder: RunFolder, options: RunOptions) -> Fitting:
    """Make the Trainer of a run."""
    model, preset, stream = trainee.model, trainee.preset, prepared.stream
    if stream is None:
        dataset = prepared.dataset
        batches = make_batches(trainee, dataset, options)
        steps = options.named_steps(preset) or math.ceil(batches.steps * preset.epochs)
        passes = round(steps / batches.steps, 1)
        shares = f"{passes:g} pass{'' if passes == 1 else 'es'} over the {len(dataset):,} documents"
    else:
        steps = stream_steps(trainee, options)
        dataset = stream.rows(steps * preset.batch_size)
        batches = Batches(OrderedBatchSampler, preset.batch_size, steps)
        shares = f"{len(dataset):,} documents of the stream"
    logger.info("%d step%s planned, %s.", steps, "" if steps == 1 else "s", shares)
    if world() > 1:
        logger.info("%d processes share each batch, on %s.", world(), (options.device or "").split(":")[0].upper())
    if left := len(dataset) % world():
        logger.info(
            "%d of the documents %s left out of each pass, other ones each time: %d processes take equal parts.",
            left, "is" if left == 1 else "are", world(),
        )  # fmt: skip
    warn_of_pooling(trainee.base, preset, steps)
    arguments = training_arguments(
        folder.checkpoints,
        batch_size=max(1, batches.size // world()),
        epochs=preset.epochs,
        steps=steps,
        max_steps=steps,  # the number that the log and warnings name, and not what the Trainer makes of the epochs
        learning_rate=preset.learning_rate,
        warmup=preset.warmup,
        bf16=options.dtype == "bfloat16",
        device=options.device,
        seed=options.seed,
        batch_sampler=batches.sampler,
        dataloader_num_workers=options.workers,
        dataloader_drop_last=world() > 1,  # else a warning sets it; our samplers deal all
        save_strategy="steps",
        save_steps=options.save_steps or min(500, max(10, steps // 10)),
        save_total_limit=2,
        prompts=default_prompt(model) or None,  # as encode puts before each text
    )
    interrupt = InterruptCallback()

    def ids(rows: list[int]) -> list[str]:
        return [str(name) for name in dataset.with_format(None)[rows]["id"]] if stream is None else stream.ids(rows)

    divergence = DivergenceCallback(
        model, trainee.loss, lambda step: ids(rows_of_step(arguments, batches, dataset, step))
    )
    callbacks: list[TrainerCallback] = [
        *trainer_callbacks(trainee.views, trainee.loss),
        # After those whose numbers it shows.
        *([ProgressBarCallback(batches.size)] if options.progress else []),
        divergence,
        StepTimeCallback(trainee.loss),
        CompleteCallback(),
        interrupt,
    ]
    trainer = make_trainer(model, arguments, dataset, trainee.loss, callbacks)
    if world() > 1:
        set_seed(options.seed + rank())  # the processes drop other weights; each keeps its state in the checkpoints
    return Fitting(trainer, batches, interrupt, divergence)


def fit(fitting: Fitting, folder: RunFolder) -> Fitted:
    """Train, from the beginning or from the newest complete checkpoint of the run."""
    trainer, interrupt = fitting.trainer, fitting.interrupt
    model: SentenceTransformer = trainer.model
    checkpoint = folder.checkpoint if folder.resume else None
    if folder.resume:
        logger.info("Resuming from %s.", checkpoint or "the beginning: no checkpoint was complete")
    began = time.perf_counter()
    state = restore_finished(model, checkpoint)
    if state is None:
        try:
            dtype = torch.bfloat16 if trainer.args.bf16 else torch.float32
            with logs_above_bars(), faster_attention(model, dtype):
                trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        except DataError as error:  # into that of a worker the loader has put its traceback
            raise type(error)(str(error).rpartition(f"{type(error).__name__}: ")[2].strip()) from error
        except Exception as error:
            raise_if_full(error, folder.checkpoints, "Make room, and go on with the same settings and resume=True.")
            raise
        finally:
            interrupt.restore()
            fitting.divergence.release()
        state = trainer.state
    seconds = time.perf_counter() - began
    if interrupt.interrupted and state.global_step < state.max_steps:
        let_main_tell()
        raise TrainingInterrupted(
            f"Stopped at step {state.global_step} of {state.max_steps}; a checkpoint is written to {folder.path}. "
            "Go on with the same settings and resume=True.",
            interrupt.interrupted,
        )
    model.eval()
    # After a run in bfloat16 it would go on computing in it, where the base that it is compared with does not.
    trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    vars(model).pop("forward", None)  # bound to this object, which would be a copy's too
    first_step = int(checkpoint.name.rsplit("-", 1)[1]) if checkpoint else 0
    rate = (state.global_step - first_step) * fitting.batches.size / seconds
    return Fitted(state.global_step, seconds, rate, state.log_history)


def rows_of_step(
    arguments: SentenceTransformerTrainingArguments, batches: Batches, dataset: Dataset, step: int
) -> list[int]:
    """Tell the rows in the batch of a step, counted from 0, those of all processes."""
    size = arguments.per_device_train_batch_size
    sampler = batches.sampler(dataset, batch_size=size, drop_last=False, seed=arguments.seed)
    sampler.set_epoch(step // batches.steps)
    first = step % batches.steps * world()
    return list(itertools.chain.from_iterable(itertools.islice(sampler, first, first + world())))


def make_batches(trainee: Trainee, dataset: Dataset, options: RunOptions) -> Batches:
    """Choose the documents of batches as the preset says."""
    model, preset = trainee.model, trainee.preset
    used = len(dataset) - len(dataset) % world()
    if used == 0:
        raise ConfigurationError(f"{len(dataset)} documents for {world()} processes: start fewer.")
    size = min(preset.batch_size, used)
    sampler: Callable[..., Any] = SeededBatchSampler
    if preset.batch_tokens is not None:
        special = taken_tokens(model, default_prompt(model))
        sampler = ConfiguredBatchSampler(
            TokenBudgetBatchSampler,
            lengths=ViewLengths(dataset, trainee.views, special),
            batch_tokens=preset.batch_tokens,
            packed=backbone_of(encoder_of(model)).packed,
        )
    made = sampler(dataset, batch_size=size // world(), drop_last=False, seed=options.seed)
    steps = len(made) // world()
    return Batches(sampler, size if preset.batch_tokens is None else max(1, round(used / steps)), steps)


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
    """Make the stock Trainer's arguments as all trainings here have them: AdamW, no decay, a linear schedule."""
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
    """Make the stock Trainer with its own collator, quiet, and with no documents of the user's in its model card."""
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
    """Take over the weights of a checkpoint of the last step, which the Trainer would train for one step more."""
    if checkpoint is None:
        return None
    state: TrainerState = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if state.global_step < state.max_steps:
        return None
    finished = load_stock(str(checkpoint), OWN_MODULES, device=str(model.device))
    model.load_state_dict(finished.state_dict())
    return state
