"""The stock Trainer, set up for a run."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from transformers import PrinterCallback, TrainerCallback, TrainerState
from transformers.trainer import TRAINER_STATE_NAME

from simlte_st.data.pairs import PairDrawer
from simlte_st.data.token_collator import TokenCollator
from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.losses.mlm_mixin import MLMLossMixin
from simlte_st.training.batches import make_batches
from simlte_st.training.batching.token_rows import TokenRows
from simlte_st.training.callbacks import (
    CompleteCallback,
    InterruptCallback,
    LossMetricsCallback,
    LossStateCallback,
    ProgressBarCallback,
)
from simlte_st.training.hardware import bf16_available, has_accelerator
from simlte_st.training.lora import LoraStateCallback
from simlte_st.training.presets import Preset
from simlte_st.training.run_folder import RunFolder


@dataclass(frozen=True)
class RunOptions:
    """What a run is told beside its preset.

    Attributes:
        seed: Decides everything that is drawn.
        bf16: Compute in bfloat16; None where the hardware has it.
        workers: Processes that make batches; 0 makes them in the training process.
        save_steps: Steps between checkpoints; None for about ten a run.
        max_steps: Stop after so many steps, instead of after the preset's epochs.
        progress: Show a progress bar.
    """

    seed: int = 0
    bf16: bool | None = None
    workers: int = 0
    save_steps: int | None = None
    max_steps: int | None = None
    progress: bool = True


def make_trainer(
    model: SentenceTransformer,
    loss: MLMLossMixin,
    rows: TokenRows,
    drawer: PairDrawer,
    preset: Preset,
    folder: RunFolder,
    options: RunOptions,
    adapters: LoraStateCallback | None = None,
) -> tuple[SentenceTransformerTrainer, InterruptCallback]:
    """Make the stock Trainer with our collator, batches and callbacks, and the callback that stops it on Ctrl-C."""
    batches = make_batches(rows, model, drawer, preset, options.seed, options.progress)
    steps = options.max_steps or math.ceil(batches.steps * preset.epochs)
    arguments = SentenceTransformerTrainingArguments(
        output_dir=str(folder.checkpoints),
        per_device_train_batch_size=batches.size,
        num_train_epochs=preset.epochs,
        max_steps=options.max_steps or -1,
        learning_rate=preset.learning_rate,
        warmup_steps=math.ceil(steps * preset.warmup),
        weight_decay=0.0,
        seed=options.seed,
        bf16=bf16_available() if options.bf16 is None else options.bf16,
        use_cpu=not has_accelerator(),
        batch_sampler=batches.sampler,
        dataloader_num_workers=options.workers,
        dataloader_pin_memory=has_accelerator(),
        save_strategy="steps",
        save_steps=options.save_steps or min(500, max(10, steps // 10)),
        save_total_limit=2,
        logging_steps=max(1, min(50, steps // 20)),
        report_to="none",
        disable_tqdm=True,  # our own bar counts documents
    )
    interrupt = InterruptCallback()
    bar = [ProgressBarCallback(batches.size * arguments.world_size)] if options.progress else []
    callbacks: list[TrainerCallback] = [
        drawer.clock,
        *batches.callbacks,
        LossMetricsCallback(loss),
        *bar,  # shows what the metrics have added to the log
        LossStateCallback(loss),
        *([] if adapters is None else [adapters]),
        CompleteCallback(),
        interrupt,
    ]
    # Without these the card would show the user's own documents, and their names.
    example: dict[str, Any] = {"source_sentence": "A long document ...", "sentences": ["Another ...", "A third ..."]}
    model.model_card_data.widget = [example]
    trainer = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=rows.corpus.dataset(rows.rows),
        loss=loss,
        data_collator=TokenCollator(preprocess_fn=TokenPreprocessor(model), corpus=rows.corpus, drawer=drawer),
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)  # prints each log line when tqdm is off
    return trainer, interrupt


def restore_finished(
    model: SentenceTransformer, checkpoint: Path | None, adapters: LoraStateCallback | None = None
) -> TrainerState | None:
    """Take over the weights of a checkpoint of the last step, which the Trainer would train for one step more.

    Args:
        model: Gets the weights, if there are such.
        checkpoint: The newest complete checkpoint.
        adapters: What saved the weights of a model with adapters.

    Returns:
        The Trainer's state there; None where steps are left to do.
    """
    if checkpoint is None:
        return None
    state: TrainerState = TrainerState.load_from_json(str(checkpoint / TRAINER_STATE_NAME))
    if state.global_step < state.max_steps:
        return None
    if adapters is not None:
        adapters.restore(checkpoint)
    else:
        finished = SentenceTransformer(str(checkpoint), device=str(model.device))
        model.load_state_dict(finished.state_dict())
    return state
