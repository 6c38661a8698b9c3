"""The Trainer's callbacks: loss state, complete checkpoints, logs, interrupts, and divergence."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from torch import Tensor, nn
from training_support import OPTIONS, Calls, stock_trainer
from transformers import TrainerCallback, TrainerControl, TrainerState

from simlte_st import train
from simlte_st.errors import ConfigurationError, ResumeError, TrainingDiverged
from simlte_st.losses import MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.training import callbacks as run_callbacks
from simlte_st.training.batches import SeededBatchSampler
from simlte_st.training.callbacks import COMPLETE_FILE, LOSS_FILE, CompleteCallback, InterruptCallback
from simlte_st.training.callbacks import LossMetricsCallback as LossMetrics
from simlte_st.training.callbacks import LossStateCallback as LossState
from simlte_st.training.callbacks import last_complete_checkpoint as last_complete
from simlte_st.views.transform import DocSplitTransform

Make = Callable[..., SentenceTransformerTrainer]


@pytest.fixture
def make_trainer(encoder_path: Path, documents: list[str], tmp_path: Path) -> Make:
    def make(callbacks: Callable[[Any], list[TrainerCallback]], **settings: Any) -> Any:
        torch.manual_seed(0)
        model = SentenceTransformer(str(encoder_path), device="cpu")
        loss = MultipleNegativesRankingMLMLoss(model, mlm_weight=1.0, seed=settings.pop("head_seed", 0))
        assert loss.masker is not None
        loss.masker.seed = 0  # independent of the head's seed
        sentences = [document.split(". ") for document in documents[:24]]
        options = {"max_steps": 4, "per_device_train_batch_size": 6, "learning_rate": 1e-3, "save_steps": 2}
        options |= {"logging_steps": 1, "batch_sampler": SeededBatchSampler, **settings}
        columns = {"anchor": [row[0] for row in sentences], "positive": [row[5] for row in sentences]}
        dataset = Dataset.from_dict(columns)
        return stock_trainer(model, loss, dataset, tmp_path / "run", callbacks(loss), **options)

    return make


def head_of(trainer: SentenceTransformerTrainer) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in trainer.loss.extra_state().items()}


def same(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    assert first
    assert first.keys() == second.keys()
    return all(torch.equal(value, second[name]) for name, value in first.items())


# The state of the loss.


def test_resumed_run_restores_its_head(make_trainer: Make, tmp_path: Path) -> None:
    seen: dict[int, dict[str, Tensor]] = {}
    whole = make_trainer(
        lambda loss: [LossState(loss), Calls("on_step_end", lambda step: seen.update({step: head_of(whole)}))]
    )
    start = head_of(whole)
    whole.train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    saved = load_file(checkpoint / LOSS_FILE)
    assert same(saved, seen[2])
    assert not same(saved, start)
    assert not same(saved, seen[4])
    assert same(load_file(tmp_path / "run" / "checkpoint-4" / LOSS_FILE), seen[4])
    assert not list(checkpoint.glob(".*"))  # no leftovers of the atomic write

    restored: list[dict[str, Tensor]] = []
    resumed = make_trainer(
        lambda loss: [LossState(loss), Calls("on_step_begin", lambda step: restored.append(head_of(resumed)))],
        head_seed=1,
    )
    assert not same(head_of(resumed), start)
    # The output folder holds another run's checkpoint of that step.
    checkpoint = checkpoint.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "run" / "checkpoint-4", tmp_path / "run" / "checkpoint-2")
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert len(restored) == 2
    assert same(restored[0], saved)
    # With optimizer, data and random numbers restored, it ends like the uninterrupted run.
    assert same(head_of(resumed), seen[4])
    assert same(dict(resumed.model.state_dict()), dict(whole.model.state_dict()))
    (checkpoint / LOSS_FILE).unlink()
    with pytest.raises(ResumeError, match="is missing"):
        resumed.train(resume_from_checkpoint=str(checkpoint))


def test_trainer_callbacks_follow_the_loss(model: SentenceTransformer) -> None:
    views = DocSplitTransform(model=model)
    stock, own = MultipleNegativesRankingLoss(model), MultipleNegativesRankingMLMLoss(model)
    around, around_own = ReconstructionLoss(stock), ReconstructionLoss(own)
    expected: list[tuple[nn.Module, list[tuple[type, nn.Module]]]] = [
        (stock, []),
        (own, [(LossMetrics, own), (LossState, own)]),
        (around, [(LossState, around)]),
        (around_own, [(LossMetrics, own), (LossState, around_own)]),
        (MatryoshkaLoss(model, own, [32, 8]), [(LossMetrics, own), (LossState, own)]),
    ]
    for loss, wanted in expected:
        first, second, *others = run_callbacks.trainer_callbacks(views, loss)
        assert first is views.callback
        assert type(second) is run_callbacks.SamplerEpochCallback
        assert [(type(callback), callback.loss) for callback in others] == wanted  # type: ignore[attr-defined]
    with pytest.raises(ConfigurationError, match=r"(?s)views=.*: must be DocSplitTransform\.$"):
        run_callbacks.trainer_callbacks(stock, views)  # type: ignore[arg-type]


def state_at(step: int, **more: Any) -> TrainerState:
    return TrainerState(global_step=step, is_world_process_zero=True, **more)


def arguments(folder: Path) -> SentenceTransformerTrainingArguments:
    return SentenceTransformerTrainingArguments(output_dir=str(folder), report_to="none", use_cpu=True)


def test_only_the_first_process_writes(model: SentenceTransformer, tmp_path: Path) -> None:
    args = arguments(tmp_path)
    (tmp_path / "checkpoint-3").mkdir()
    callbacks = [LossState(MultipleNegativesRankingMLMLoss(model)), CompleteCallback()]
    for callback in callbacks:
        callback.on_save(args, TrainerState(global_step=3, is_world_process_zero=False), TrainerControl())
    assert list((tmp_path / "checkpoint-3").iterdir()) == []
    for callback in callbacks:
        callback.on_save(args, state_at(3), TrainerControl())
    assert {path.name for path in (tmp_path / "checkpoint-3").iterdir()} == {LOSS_FILE, COMPLETE_FILE}


# Complete checkpoints.


def test_incomplete_checkpoints_are_skipped(tmp_path: Path) -> None:
    assert last_complete(tmp_path / "none") is None
    assert last_complete(tmp_path) is None
    for step in (9, 10, 100, 20):
        (tmp_path / f"checkpoint-{step}").mkdir()
    assert last_complete(tmp_path) is None
    args = arguments(tmp_path)
    for step in (9, 10, 20):
        CompleteCallback().on_save(args, state_at(step), TrainerControl())
    assert last_complete(tmp_path) == tmp_path / "checkpoint-20"  # 100 is newer, 9 is first by name
    CompleteCallback().on_save(args, state_at(100), TrainerControl())
    assert last_complete(tmp_path) == tmp_path / "checkpoint-100"
    assert run_callbacks.checkpoint_directory(args, state_at(100)) == tmp_path / "checkpoint-100"


# Logs and the bar.


def test_progress_bar_is_full_after_training(make_trainer: Make, capsys: pytest.CaptureFixture[str]) -> None:
    make_trainer(lambda loss: [LossMetrics(loss), run_callbacks.ProgressBarCallback()], save_strategy="no").train()
    shown = capsys.readouterr().err
    assert "Training: 100%" in shown
    assert "4/4" in shown


# Ctrl-C and SIGTERM.


def interrupt(number: int, times: int) -> Callable[[int], None]:
    def send(step: int) -> None:
        if step == 1:  # within the second step
            for _ in range(times):
                os.kill(os.getpid(), number)

    return send


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal whose handler is restored afterwards."""
    previous = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    assert signal.getsignal(request.param) is signal.default_int_handler
    signal.signal(request.param, previous)


def test_interrupt_finishes_the_step_and_saves(make_trainer: Make, tmp_path: Path, number: signal.Signals) -> None:
    callback, sends = InterruptCallback(), Calls("on_step_begin", interrupt(number, 1))
    trainer = make_trainer(lambda loss: [LossState(loss), CompleteCallback(), callback, sends], save_steps=100)
    trainer.train()
    assert callback.interrupted is number
    assert trainer.state.global_step == 2
    checkpoint = last_complete(tmp_path / "run")
    assert checkpoint == tmp_path / "run" / "checkpoint-2"
    assert (checkpoint / LOSS_FILE).exists()
    # It can be resumed, and ends on its own.
    callback = InterruptCallback()
    resumed = make_trainer(lambda loss: [LossState(loss), callback])
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == 4
    assert callback.interrupted is None


def test_second_interrupt_stops_immediately(make_trainer: Make, tmp_path: Path, number: signal.Signals) -> None:
    trainer = make_trainer(lambda loss: [InterruptCallback(), Calls("on_step_begin", interrupt(number, 2))])
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert trainer.state.global_step == 1
    assert not (tmp_path / "run" / "checkpoint-2").exists()


# Losses and weights that are not finite.


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bf16": True, "max_steps": 2}, "tensors are not finite or overflow"),  # finite weights of 1e30
        ({"bf16": False, "max_steps": 2, "learning_rate": 1e16}, "embeddings are not finite"),
        ({"static": True, "max_steps": 2, "preset": "docsplit-static", "lsa": 0}, "tensors are not finite or overflow"),
    ],
)
def test_diverged_run_saves_no_model(
    changes: dict[str, Any], message: str, encoder_path: Path, documents: list[str], tmp_path: Path
) -> None:
    options = {**OPTIONS, "held_out": 0.0, "learning_rate": 1e30, **changes}
    with pytest.raises(TrainingDiverged, match=f"{message}.*lower learning rate"):
        train(documents, tmp_path / "m", base=encoder_path, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["m.run"]
    assert last_complete(tmp_path / "m.run" / "checkpoints") is None


def test_divergence_keeps_the_last_good_checkpoint(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaks(run_callbacks.DivergenceCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step == 4:
                with torch.no_grad():
                    next(self.model.parameters())[0, 0] = float("nan")

    monkeypatch.setattr(run_callbacks, "DivergenceCallback", Breaks)
    with pytest.raises(TrainingDiverged, match="after step 4, 1 of"):
        train(documents, tmp_path / "m", base=encoder_path, epochs=3, save_steps=1, **OPTIONS)
    checkpoint = last_complete(tmp_path / "m.run" / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.name == "checkpoint-3"
    run_callbacks.check_converged(SentenceTransformer(str(checkpoint), device="cpu"), documents[:2], "there")
    assert not (tmp_path / "m").exists()
