"""Third stage of a run: train with the stock Trainer."""

from __future__ import annotations

import logging
import math
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from transformers import PrinterCallback, TrainerCallback, TrainerState, set_seed
from transformers.trainer import TRAINER_STATE_NAME

from simlte_st.compat import eager_attention, get_encoder, is_fused, use_one_gpu
from simlte_st.distributed import rank, world
from simlte_st.errors import ModelError, TrainingInterrupted, format_count
from simlte_st.models.loading import load_model
from simlte_st.progress import logs_above_bars
from simlte_st.prompts import document_prompt
from simlte_st.training import callbacks
from simlte_st.training.batches import OrderedBatchSampler, SeededBatchSampler, preprocess_views
from simlte_st.training.load_corpus import TrainingCorpus
from simlte_st.training.prepare_model import TrainingSetup
from simlte_st.training.run import Run

logger = logging.getLogger(__name__)


MAX_EAGER_TOKENS = 96
"""Maximum view length in tokens for eager attention, whose memory grows quadratically with length."""


@dataclass(frozen=True)
class TrainingStats:
    """Number of steps, time and log of a training.

    Attributes:
        steps: Number of optimizer steps, including those before the run was resumed.
        seconds: Training time of this process, in seconds.
        dtype: Training dtype, ``"float32"`` or ``"bfloat16"``.
        log: The Trainer's log history.
    """

    steps: int
    seconds: float
    dtype: str
    log: list[dict[str, Any]]


def fit(
    run: Run, setup: TrainingSetup, corpus: TrainingCorpus, *, workers: int = 0, save_steps: int | None = None
) -> TrainingStats:
    """Train the model in place with the stock Trainer, from the start or the newest complete checkpoint.

    Args:
        run: The run.
        setup: The model, its loss and its views.
        corpus: The documents.
        workers: Number of processes that prepare batches.
        save_steps: Steps between checkpoints (default: about ten checkpoints per run, four for a static model).
    """
    model, preset, folder = setup.model, setup.preset, run.folder
    if corpus.stream is not None:
        dataset = corpus.stream.rows((preset.steps or 0) * preset.batch_size)
    else:
        dataset = corpus.dataset if corpus.token_views is None else corpus.token_views.rows()
    size = min(preset.batch_size, len(dataset) - len(dataset) % world())
    # A smaller last batch would make processes wait for each other, and would weigh too much in a static model.
    drop_last = world() > 1 or setup.static
    sampler = SeededBatchSampler if corpus.stream is None else OrderedBatchSampler
    batches = len(sampler(dataset, batch_size=size // world(), drop_last=drop_last, seed=run.seed)) // world()
    steps = preset.planned_steps(batches) if corpus.stream is None else (preset.steps or 0)
    held_out = f" ({len(corpus.held_out):,} held out)" if corpus.held_out else ""
    plan = f"{format_count(steps, 'step')} of {size:,}"
    logger.info("Training on %s%s: %s.", format_count(len(dataset), "document"), held_out, plan)

    interrupt = callbacks.InterruptCallback()
    run_callbacks: list[TrainerCallback] = [
        *callbacks.trainer_callbacks(setup.views, setup.loss),
        # After the callbacks that compute the metrics it shows.
        *([callbacks.ProgressBarCallback()] if run.progress else []),
        callbacks.DivergenceCallback(model, corpus.examples),
        callbacks.CompleteCallback(),
        interrupt,
    ]
    bf16 = run.bf16 and not setup.static
    arguments = training_arguments(
        folder.checkpoints, batch_size=size // world(), epochs=preset.epochs, steps=steps, warmup=preset.warmup,
        max_steps=steps,  # otherwise logs and warnings show a number derived from the epochs
        learning_rate=preset.learning_rate, bf16=bf16, device=run.device, seed=run.seed, batch_sampler=sampler,
        dataloader_num_workers=workers, dataloader_drop_last=drop_last, save_strategy="steps", save_total_limit=2,
        # Saving a static model takes as long as ten training steps.
        save_steps=save_steps or min(500, max(10, steps // (4 if setup.static else 10))),
        prompts=document_prompt(model) or None,  # as in encoding and indexing
    )  # fmt: skip
    trainer = make_trainer(model, arguments, dataset, setup.loss, run_callbacks)
    if setup.static:
        trainer.data_collator.preprocess_fn = partial(preprocess_views, model.tokenizer)  # new processes can get it
    if world() > 1:
        set_seed(run.seed + rank())  # so that each process has different dropout

    checkpoint = callbacks.last_complete_checkpoint(folder.checkpoints) if folder.resume else None
    if folder.resume:
        logger.info("Resuming from %s.", checkpoint or "the start, because there is no complete checkpoint")
    start = time.perf_counter()
    state = _load_last_step(model, checkpoint)
    if state is None:
        try:
            with logs_above_bars(), faster_attention(model, bf16=bf16):
                trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            interrupt.restore()
        state = trainer.state
    seconds = time.perf_counter() - start
    if interrupt.interrupted and state.global_step < state.max_steps:
        raise TrainingInterrupted(
            f"Stopped at step {state.global_step} of {state.max_steps}; the checkpoint is in {folder.path}. "
            "To continue, use the same settings with resume=True.",
            interrupt.interrupted,
        )
    model.eval()
    # Otherwise the model would still compute in bfloat16, unlike the base that it is compared with.
    trainer.accelerator.unwrap_model(model, keep_fp32_wrapper=False)
    vars(model).pop("forward", None)  # otherwise copies of the model would share it
    return TrainingStats(state.global_step, seconds, "bfloat16" if bf16 else "float32", state.log_history)


def training_arguments(
    output_dir: Path, *, batch_size: int, epochs: float, steps: int, warmup: float = 0.0, device: str | None = None,
    **options: Any,
) -> SentenceTransformerTrainingArguments:  # fmt: skip
    """Return arguments for the stock Trainer: AdamW without weight decay, with a linear schedule.

    Args:
        output_dir: Folder for checkpoints.
        batch_size: Batch size per process, in documents.
        epochs: Number of passes over the documents; overridden by ``max_steps``.
        steps: Number of optimizer steps.
        warmup: Fraction of the steps used for learning-rate warmup.
        device: Torch device (default: a GPU if available, otherwise the CPU).
        **options: Other ``SentenceTransformerTrainingArguments``.
    """
    accelerator = device != "cpu" and (torch.cuda.is_available() or torch.backends.mps.is_available())
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(output_dir.absolute()),  # so that transformers does not expand a leading ~
        per_device_train_batch_size=batch_size, num_train_epochs=epochs, warmup_steps=math.ceil(steps * warmup),
        weight_decay=0.0, use_cpu=not accelerator, dataloader_pin_memory=accelerator,
        logging_steps=max(1, min(50, steps // 20)), report_to="none",
        disable_tqdm=True,  # ProgressBarCallback replaces tqdm, to show the terms of the loss
        **options,
    )  # fmt: skip
    if world() == 1 and (arguments.n_gpu > 1 or (device or "").startswith("cuda")):
        use_one_gpu(arguments, device or "cuda")  # otherwise the batch size would grow with the number of GPUs
    return arguments


def make_trainer(
    model: SentenceTransformer, arguments: SentenceTransformerTrainingArguments, dataset: Dataset,
    loss: torch.nn.Module, callbacks: list[TrainerCallback],
) -> SentenceTransformerTrainer:  # fmt: skip
    """Return a stock Trainer that prints no log lines and puts no documents into its model card."""
    card = model.model_card_data
    example: dict[str, Any] = {"source_sentence": "A long document ...", "sentences": ["Another ...", "A third ..."]}
    card.widget = [example]
    trainer = SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=callbacks
    )
    card.train_datasets = []  # contains sample documents, which every checkpoint's model card would show
    trainer.remove_callback(PrinterCallback)  # would print log lines, because tqdm is disabled
    return trainer


def _load_last_step(model: SentenceTransformer, checkpoint: Path | None) -> TrainerState | None:
    """Load a checkpoint of the last step, which the Trainer would train for another step; otherwise return None."""
    if checkpoint is None:
        return None
    state: TrainerState = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if state.global_step < state.max_steps:
        return None
    model.load_state_dict(load_model(checkpoint, device=str(model.device)).model.state_dict())
    return state


def faster_attention(model: SentenceTransformer, *, bf16: bool) -> AbstractContextManager[None]:
    """Return a context manager that uses eager attention for short views in bfloat16 on a CPU.

    In this case, the backward pass of PyTorch's fused attention takes as long for 64 tokens as for 512. Eager attention
    is 4.8 times as fast at 64 tokens and 4.1 times as fast at 112 (forward and backward, 4,096 tokens, one thread,
    torch 2.13), but slower at 256. In all other cases, fused attention is faster.
    """
    length = model.max_seq_length
    if model.device.type != "cpu" or not bf16 or length is None or length > MAX_EAGER_TOKENS:
        return nullcontext()
    try:
        encoder = get_encoder(model)
    except ModelError:  # a model without attention
        return nullcontext()
    is_stock = type(encoder).__module__.startswith("transformers.")
    return eager_attention(encoder) if is_stock and is_fused(encoder) else nullcontext()
