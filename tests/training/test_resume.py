"""Runs that were stopped or killed give the same bytes when resumed."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from training_support import LONG, OPTIONS, assert_same_bytes, forked, interrupt_at_step

from simlte_st import train
from simlte_st.data import DocSplitTransform
from simlte_st.errors import ConfigurationError, ResumeError
from simlte_st.training import TrainingResult, callbacks

# Dropout, an MLM head and several epochs: everything that could differ.
KILLED: dict[str, Any] = {"preset": "docsplit-bert", "epochs": 8, "batch_size": 8, "save_steps": 4, "seed": 5}


@pytest.fixture(scope="module")
def uninterrupted(bert_path: Path, documents: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("uninterrupted") / "whole"
    train(documents, output, base=bert_path, progress=False, **KILLED)
    return output


@pytest.mark.skipif(sys.platform != "linux", reason="a forked process need not import everything again")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_run_resumes_to_the_same_bytes(
    number: signal.Signals, uninterrupted: Path, bert_path: Path, documents: list[str], tmp_path: Path
) -> None:
    arguments = {"base": bert_path, **KILLED}
    told = tmp_path / "told.txt"
    process = forked(lambda: train(documents, tmp_path / "killed", progress=False, **arguments), told)
    checkpoints = tmp_path / "killed.run" / "checkpoints"
    deadline = time.monotonic() + 120
    while len(list(checkpoints.glob("checkpoint-*/complete"))) < 2:  # into the second epoch or later
        assert process.is_alive(), told.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(60)
    assert ("the checkpoint is in" in told.read_text()) == (number == signal.SIGTERM)
    assert not (tmp_path / "killed").exists(), "the run ended before it could be killed: use more epochs"
    with pytest.raises(ConfigurationError, match="resume=True"):
        train(documents, tmp_path / "killed", progress=False, **arguments)
    with pytest.raises(ResumeError, match=r"seed: was 5, is 6"):
        train(documents, tmp_path / "killed", progress=False, resume=True, **{**arguments, "seed": 6})
    # This is a different process from the killed one.
    result = train(documents, tmp_path / "killed", progress=False, resume=True, **arguments)
    assert result.preset.mlm_weight == 0.1
    first, second = (folder / "model.safetensors" for folder in (tmp_path / "killed", uninterrupted))
    assert first.read_bytes() == second.read_bytes()


def losses(result: TrainingResult) -> list[float]:
    return [line["loss"] for line in result.log if "loss" in line]


def test_resuming_with_other_threads_or_workers_keeps_views(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[dict[str, list[str]]] = []
    draw = DocSplitTransform.__call__
    monkeypatch.setattr(DocSplitTransform, "__call__", lambda *args: drawn.append(draw(*args)) or drawn[-1])
    options: dict[str, Any] = {"base": encoder_path, "epochs": 2, "save_steps": 4, **OPTIONS}
    whole = train(documents, tmp_path / "whole", **options)
    views, threads = drawn[-3:], torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 1)
        with interrupt_at_step(whole.steps - 2):
            train(documents, tmp_path / "m", **options)
        torch.set_num_threads(threads)
        resumed = train(documents, tmp_path / "m", resume=True, **options)
    finally:
        torch.set_num_threads(threads)
    assert drawn[-3:] == views
    assert losses(resumed) == pytest.approx(losses(whole), rel=1e-3)
    with interrupt_at_step(whole.steps - 2):
        train(documents, tmp_path / "n", **options)
    train(documents, tmp_path / "n", resume=True, workers=1, **options)
    assert_same_bytes(tmp_path / "whole", tmp_path / "n")


def test_converted_base_resumes_to_the_same_bytes(bert_path: Path, documents: list[str], tmp_path: Path) -> None:
    options: dict[str, Any] = {"base": bert_path, "preset": "docsplit-longformer", "max_length": 200, **LONG}
    options["attention_dropout"] = 0.1
    train(documents, tmp_path / "a", **options)
    with interrupt_at_step(3):
        train(documents, tmp_path / "b", **options)
    assert (tmp_path / "b.run" / "base" / "modules.json").exists()
    train(documents, tmp_path / "b", resume=True, **options)
    assert_same_bytes(tmp_path / "a", tmp_path / "b")


def test_run_killed_after_its_last_step_only_finishes(
    encoder_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"base": encoder_path, "max_steps": 4, "save_steps": 2, "mlm_weight": 0.0, **OPTIONS}
    monkeypatch.setattr(callbacks.CompleteCallback, "on_train_end", lambda *args, **kwargs: 1 / 0, raising=False)
    with pytest.raises(ZeroDivisionError):
        train(documents, tmp_path / "m", **options)
    monkeypatch.undo()
    result = train(documents, tmp_path / "m", resume=True, **options)
    assert result.steps == 4
    assert result.gain is not None
    assert [line["step"] for line in result.log if "loss" in line] == [1, 2, 3, 4]
    train(documents, tmp_path / "n", **options)
    assert_same_bytes(tmp_path / "m", tmp_path / "n")


def test_run_on_a_full_disk_resumes_to_the_same_bytes(
    uninterrupted: Path, bert_path: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, saved = torch.save, []

    def full(value: Any, path: Any, *others: Any, **options: Any) -> None:
        saved.append(path)
        if len(saved) > 4:  # optimizer, scheduler, ... of the second checkpoint
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        save(value, path, *others, **options)

    arguments: dict[str, Any] = {"base": bert_path, "progress": False, **KILLED}
    with monkeypatch.context() as patched:
        patched.setattr(torch, "save", full)
        with pytest.raises(OSError, match="No space left"):
            train(documents, tmp_path / "m", **arguments)
    assert not (tmp_path / "m").exists()
    result = train(documents, tmp_path / "m", resume=True, **arguments)
    assert result.steps > 0
    assert_same_bytes(uninterrupted, tmp_path / "m")
