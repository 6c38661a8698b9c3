from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
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
from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.losses import MultipleNegativesRankingMLMLoss, ReconstructionLoss
from simlte_st.training import callbacks
from simlte_st.training.callbacks import (
    COMPLETE_FILE,
    LOSS_FILE,
    CompleteCallback,
    LossMetricsCallback,
    LossStateCallback,
    ProgressBarCallback,
    SamplerEpochCallback,
    StepTimeCallback,
    checkpoint_directory,
    count_tokens,
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


@pytest.mark.parametrize("docsplit", [True, False])
def test_a_loss_around_another_resumes_to_the_same_bytes(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path, docsplit: bool
) -> None:
    def trainer(seed: int) -> SentenceTransformerTrainer:
        return make_trainer(
            lambda loss: (
                trainer_callbacks(DocSplitTransform(model=loss.model), loss) if docsplit else [LossStateCallback(loss)]
            ),
            lambda loss: ReconstructionLoss(
                loss if docsplit else MultipleNegativesRankingLoss(loss.model), weight=1.0, seed=seed
            ),
            head_seed=seed,
        )

    def written() -> dict[str, bytes]:
        return {
            name: (tmp_path / "run" / "checkpoint-4" / name).read_bytes() for name in ("model.safetensors", LOSS_FILE)
        }

    trainer(0).train()
    expected = written()
    shutil.rmtree(tmp_path / "run" / "checkpoint-4")
    resumed = trainer(1)
    resumed.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))
    assert written() == expected
    terms = {"contrastive", "mlm", "mean_cosine"} if docsplit else {"sentence"}
    lines = [line for line in resumed.state.log_history if "loss" in line]
    assert len(lines) == 4
    assert all({"reconstruction", *terms} <= line.keys() for line in lines)
    (tmp_path / "run" / "checkpoint-2" / LOSS_FILE).unlink()
    with pytest.raises(ResumeError, match=LOSS_FILE):
        trainer(0).train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))


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


def test_a_checkpoint_without_the_file_is_not_resumed(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    make_trainer(lambda loss: [], max_steps=2).train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    assert not (checkpoint / LOSS_FILE).exists()
    resumed = make_trainer(lambda loss: [LossStateCallback(loss)])
    with pytest.raises(ResumeError, match=LOSS_FILE):
        resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == 2  # not a step was made


@pytest.mark.parametrize("bf16", [True, False])
def test_the_head_computes_as_the_model_does(
    make_trainer: Callable[..., SentenceTransformerTrainer], bf16: bool
) -> None:
    trainer = make_trainer(lambda loss: [LossStateCallback(loss)], bf16=bf16, max_steps=1)
    trainer.train()
    assert trainer.loss.mlm_head.bf16 is bf16
    assert all(value.dtype == torch.float32 for value in trainer.loss.parameters())


def test_without_mlm_there_is_nothing_to_save(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    make_trainer(lambda loss: [LossStateCallback(loss)], mlm_weight=0, max_steps=2).train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    assert checkpoint.is_dir()
    assert not (checkpoint / LOSS_FILE).exists()
    resumed = make_trainer(lambda loss: [LossStateCallback(loss)], mlm_weight=0, max_steps=3)
    resumed.train(resume_from_checkpoint=str(checkpoint))
    assert resumed.state.global_step == 3


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


def test_a_state_of_other_settings(model: SentenceTransformer, tmp_path: Path) -> None:
    args = arguments(tmp_path)
    loss = MultipleNegativesRankingMLMLoss(model)
    (tmp_path / "checkpoint-3").mkdir()
    LossStateCallback(loss).on_save(args, state_at(3), TrainerControl())
    loss.mlm_head.bias = None  # type: ignore[union-attr]
    with pytest.raises(ConfigurationError, match="resume with the loss"):
        LossStateCallback(loss).on_train_begin(args, state_at(3), TrainerControl())


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


def test_a_checkpoint_is_complete_after_the_others_wrote_to_it(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path
) -> None:
    def fail(step: int) -> None:
        if step == 2:
            raise RuntimeError("the disk is full")

    trainer = make_trainer(
        lambda loss: [LossStateCallback(loss), Calls("on_save", fail), CompleteCallback()], save_steps=1
    )
    with pytest.raises(RuntimeError, match="disk is full"):
        trainer.train()
    assert (tmp_path / "run" / "checkpoint-2" / "model.safetensors").exists()
    assert last_complete_checkpoint(tmp_path / "run") == tmp_path / "run" / "checkpoint-1"


# Logs and the bar.


def test_metrics_are_added_to_the_training_lines_only(model: SentenceTransformer, tmp_path: Path) -> None:
    loss = MultipleNegativesRankingMLMLoss(model)
    callback = LossMetricsCallback(loss)
    args = arguments(tmp_path)
    generator = torch.Generator().manual_seed(0)
    loss.metrics.update([torch.randn(4, 3, generator=generator) for _ in range(2)])
    names = {"mean_cosine", "alignment", "uniformity"}
    evaluation = {"eval_loss": 1.0}
    state = state_at(5, log_history=[{"eval_loss": 1.0}])
    callback.on_log(args, state, TrainerControl(), logs=evaluation)
    assert evaluation == state.log_history[0] == {"eval_loss": 1.0}
    line = {"loss": 1.0}
    state = state_at(5, log_history=[{"loss": 0.5}, {"loss": 1.0, "step": 5}])
    callback.on_log(args, state, TrainerControl(), logs=line)
    assert line.keys() == {"loss", *names}
    assert state.log_history == [{"loss": 0.5}, {**line, "step": 5}]
    second = {"loss": 1.0}
    callback.on_log(args, state, TrainerControl(), logs=second)  # there was no batch since
    assert second == {"loss": 1.0}


def test_a_collapse_is_told_once(model: SentenceTransformer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    loss = MultipleNegativesRankingMLMLoss(model)
    callback = LossMetricsCallback(loss)
    for step, spread in enumerate([1.0, 0.01, 0.01]):
        vectors = 1 + spread * torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(step))
        loss.metrics.update(list(vectors))
        callback.on_log(arguments(tmp_path), state_at(step), TrainerControl(), logs={"loss": 1.0})
    [record] = [record for record in caplog.records if "nearly the same" in record.getMessage()]
    assert "(mean cosine 1.000)" in record.getMessage()


def test_the_bar_counts_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    callback = ProgressBarCallback(documents_per_step=16)
    args, control = arguments(tmp_path), TrainerControl()
    state = state_at(3, max_steps=10)
    callback.on_train_begin(args, state, control)
    bar = callback._bar
    assert (bar.total, bar.initial, bar.n, bar.unit) == (160, 48, 48, "doc")
    callback.on_step_end(args, state, control)
    callback.on_step_end(args, state, control)
    assert bar.n == 80
    for _ in range(3):
        callback.on_log(args, state, control, logs={"loss": 1.23456, "mlm": 0.5, "learning_rate": 1e-5})
    assert capsys.readouterr().err.count("Training") <= 1, "without a terminal, a log is no line"
    assert bar.postfix == "loss=1.235, mlm=0.500"
    callback.on_log(args, state, control, logs=None)
    callback.on_train_end(args, state, control)
    assert bar.disable  # closed
    callback.on_train_end(args, state, control)


def test_only_the_first_process_shows_a_bar(tmp_path: Path) -> None:
    callback = ProgressBarCallback(documents_per_step=16)
    args, control = arguments(tmp_path), TrainerControl()
    state = TrainerState(max_steps=10, is_world_process_zero=False)
    callback.on_train_begin(args, state, control)
    callback.on_step_end(args, state, control)
    callback.on_log(args, state, control, logs={"loss": 1.0})
    callback.on_train_end(args, state, control)
    assert callback._bar is None


def test_the_bar_of_a_real_run_is_full_at_its_end(make_trainer: Callable[..., SentenceTransformerTrainer]) -> None:
    bars: list[Any] = []
    callback = ProgressBarCallback(documents_per_step=6)
    make_trainer(
        lambda loss: [callback, Calls("on_step_end", lambda step: bars.append((callback._bar.n, callback._bar.total)))],
        save_strategy="no",
    ).train()
    assert bars == [(6, 24), (12, 24), (18, 24), (24, 24)]
    assert callback._bar is None


class NoLoss(nn.Module):
    def forward(self, features: Any, labels: Any = None) -> None:
        pass


def run_steps(loss: NoLoss, seconds: float, steps: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the Trainer does, where each step takes some seconds."""
    clock = iter(range(0, 10**6, int(seconds)))
    monkeypatch.setattr(callbacks.time, "perf_counter", lambda: float(next(clock)))
    callback, state = StepTimeCallback(loss), SimpleNamespace(global_step=0, max_steps=steps)
    callback.on_train_begin(None, state, None)  # type: ignore[arg-type]
    for _ in range(steps):
        callback.on_step_begin(None, state, None)  # type: ignore[arg-type]
        loss([{"attention_mask": torch.ones(2, tokens // 4)}] * 2)
        state.global_step += 1
        callback.on_step_end(None, state, None)  # type: ignore[arg-type]


def test_long_steps_are_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "simlte_st"):
        run_steps(NoLoss(), 118, 30, 48_000, monkeypatch)
    reads, took = caplog.messages
    assert "48,000 tokens, 2 views" in reads
    assert re.search("118 s.*57 minutes.*29 left", took)


def test_short_ones_are_not(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    loss = NoLoss()
    with caplog.at_level("INFO", "simlte_st"):
        run_steps(loss, 2, 30, 4_000, monkeypatch)
        run_steps(NoLoss(), 118, 1, 4_000, monkeypatch)
    assert caplog.messages == [], "nor is anything left after the only step"
    assert not loss._forward_pre_hooks


def test_padding_is_no_token() -> None:
    assert count_tokens({"input_ids": torch.ones(2, 3), "attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0]])}) == 4
    assert count_tokens({"input_ids": torch.ones(7), "cu_seq_lens_q": torch.tensor([0, 3, 7])}) == 7
