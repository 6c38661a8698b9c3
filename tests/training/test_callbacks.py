from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn
from training_support import Calls
from transformers import TrainerControl, TrainerState

from simlte_st.data.transform import DocSplitTransform
from simlte_st.losses import MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.training.callbacks import (
    COMPLETE_FILE,
    LOSS_FILE,
    CompleteCallback,
    LossMetricsCallback,
    LossStateCallback,
    ProgressBarCallback,
    SamplerEpochCallback,
    checkpoint_directory,
    last_complete_checkpoint,
    trainer_callbacks,
)


def head_of(trainer: SentenceTransformerTrainer) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in trainer.loss.extra_state().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first
    assert first.keys() == second.keys()
    return all(torch.equal(value, second[name]) for name, value in first.items())


# The state of the loss.


def test_a_resumed_run_goes_on_with_its_head(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    whole = make_trainer(
        lambda loss: [LossStateCallback(loss), Calls("on_step_end", lambda step: seen.update({step: head_of(whole)}))]
    )
    start = head_of(whole)
    whole.train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    saved = load_file(checkpoint / LOSS_FILE)
    assert same(saved, seen[2])
    assert not same(saved, start)
    assert not same(saved, seen[4])
    assert same(load_file(tmp_path / "run" / "checkpoint-4" / LOSS_FILE), seen[4])
    assert not list(checkpoint.glob(".*"))  # no rest of the atomic write

    restored: list[dict[str, Tensor]] = []
    resumed = make_trainer(
        lambda loss: [LossStateCallback(loss), Calls("on_step_begin", lambda step: restored.append(head_of(resumed)))],
        head_seed=1,
    )
    assert not same(head_of(resumed), start)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert len(restored) == 2
    assert same(restored[0], saved)
    # With the optimizer, the data and the random numbers in their place too, it ends where the whole run ends.
    assert same(head_of(resumed), seen[4])
    assert same(dict(resumed.model.state_dict()), dict(whole.model.state_dict()))


def test_the_callbacks_are_those_that_a_loss_needs(model: SentenceTransformer) -> None:
    views = DocSplitTransform(model=model)
    stock, own = MultipleNegativesRankingLoss(model), MultipleNegativesRankingMLMLoss(model)
    around, around_own = ReconstructionLoss(stock), ReconstructionLoss(own)
    expected: list[tuple[nn.Module, list[tuple[type, nn.Module]]]] = [
        (stock, []),
        (own, [(LossMetricsCallback, own), (LossStateCallback, own)]),
        (around, [(LossStateCallback, around)]),
        (around_own, [(LossMetricsCallback, own), (LossStateCallback, around_own)]),
        (MatryoshkaLoss(model, own, [32, 8]), [(LossMetricsCallback, own), (LossStateCallback, own)]),
    ]
    for loss, wanted in expected:
        first, second, *others = trainer_callbacks(views, loss)
        assert first is views.callback
        assert type(second) is SamplerEpochCallback
        assert [(type(callback), callback.loss) for callback in others] == wanted  # type: ignore[attr-defined]


@pytest.mark.parametrize("bf16", [True, False])
def test_the_head_computes_as_the_model_does(
    make_trainer: Callable[..., SentenceTransformerTrainer], bf16: bool
) -> None:
    trainer = make_trainer(lambda loss: [LossStateCallback(loss)], bf16=bf16, max_steps=1)
    trainer.train()
    assert trainer.loss.mlm_head.bf16 is bf16
    assert all(value.dtype == torch.float32 for value in trainer.loss.parameters())


def state_at(step: int, **more: Any) -> TrainerState:
    return TrainerState(global_step=step, is_world_process_zero=True, **more)


def arguments(folder: Path) -> SentenceTransformerTrainingArguments:
    return SentenceTransformerTrainingArguments(output_dir=str(folder), report_to="none", use_cpu=True)


def test_only_the_first_process_writes(model: SentenceTransformer, tmp_path: Path) -> None:
    args = arguments(tmp_path)
    (tmp_path / "checkpoint-3").mkdir()
    callbacks = [LossStateCallback(MultipleNegativesRankingMLMLoss(model)), CompleteCallback()]
    for callback in callbacks:
        callback.on_save(args, TrainerState(global_step=3, is_world_process_zero=False), TrainerControl())
    assert list((tmp_path / "checkpoint-3").iterdir()) == []
    for callback in callbacks:
        callback.on_save(args, state_at(3), TrainerControl())
    assert {path.name for path in (tmp_path / "checkpoint-3").iterdir()} == {LOSS_FILE, COMPLETE_FILE}


# Complete checkpoints.


def test_an_incomplete_checkpoint_is_skipped(tmp_path: Path) -> None:
    assert last_complete_checkpoint(tmp_path / "none") is None
    assert last_complete_checkpoint(tmp_path) is None
    for step in (9, 10, 100, 20):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert last_complete_checkpoint(tmp_path) is None
    args = arguments(tmp_path)
    for step in (9, 10, 20):
        CompleteCallback().on_save(args, state_at(step), TrainerControl())
    assert last_complete_checkpoint(tmp_path) == tmp_path / "checkpoint-20"  # 100 is newer, 9 is first by name
    CompleteCallback().on_save(args, state_at(100), TrainerControl())
    assert last_complete_checkpoint(tmp_path) == tmp_path / "checkpoint-100"
    assert checkpoint_directory(args, state_at(100)) == tmp_path / "checkpoint-100"


# Logs and the bar.


def test_a_collapse_is_told_once(model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    loss = MultipleNegativesRankingMLMLoss(model)
    callback = LossMetricsCallback(loss)
    for step, spread in enumerate([1.0, 0.01, 0.01]):
        vectors = 1 + spread * torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(step))
        loss.metrics.update(list(vectors))
        callback.on_log(arguments(tmp_path), state_at(step), TrainerControl(), logs={"loss": 1.0})
    [record] = [record for record in caplog.records if "nearly the same" in record.getMessage()]
    assert "(mean cosine 1.000)" in record.getMessage()


def test_the_bar_of_a_real_run_is_full_at_its_end(make_trainer: Callable[..., SentenceTransformerTrainer]) -> None:
    bars: list[Any] = []
    callback = ProgressBarCallback(documents_per_step=6)
    make_trainer(
        lambda loss: [callback, Calls("on_step_end", lambda step: bars.append((callback._bar.n, callback._bar.total)))],
        save_strategy="no",
    ).train()
    assert bars == [(6, 24), (12, 24), (18, 24), (24, 24)]
    assert callback._bar is None
