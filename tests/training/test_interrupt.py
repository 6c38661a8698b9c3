"""Ctrl-C and SIGTERM."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformerTrainer
from training_support import Calls

from simlte_st.training.callbacks import (
    LOSS_FILE,
    CompleteCallback,
    InterruptCallback,
    LossStateCallback,
    last_complete_checkpoint,
)

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])


def interrupt(number: int, times: int) -> Callable[[int], None]:
    def send(step: int) -> None:
        if step == 1:  # within the second step
            for _ in range(times):
                os.kill(os.getpid(), number)

    return send


@BOTH
def test_an_interrupt_finishes_the_step_and_saves(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path, number: signal.Signals
) -> None:
    handled: list[int] = []
    previous = signal.getsignal(number)
    signal.signal(number, lambda number, frame: handled.append(number))
    ours = signal.getsignal(number)
    try:
        callback = InterruptCallback()
        trainer = make_trainer(
            lambda loss: [
                LossStateCallback(loss),
                CompleteCallback(),
                callback,
                Calls("on_step_begin", interrupt(number, 1)),
            ],
            save_steps=100,
        )
        trainer.train()
        assert callback.interrupted is number
        assert trainer.state.global_step == 2
        assert signal.getsignal(number) is ours
        assert handled == []  # it was not passed on
        checkpoint = last_complete_checkpoint(tmp_path / "run")
        assert checkpoint == tmp_path / "run" / "checkpoint-2"
        assert (checkpoint / LOSS_FILE).exists()

        # Which can be resumed, and ends by itself.
        callback = InterruptCallback()
        resumed = make_trainer(lambda loss: [LossStateCallback(loss), callback])
        resumed.train(resume_from_checkpoint=str(checkpoint))
        assert resumed.state.global_step == 4
        assert callback.interrupted is None
        assert signal.getsignal(number) is ours
    finally:
        signal.signal(number, previous)


@BOTH
def test_a_second_interrupt_stops_at_once(
    make_trainer: Callable[..., SentenceTransformerTrainer], tmp_path: Path, number: signal.Signals
) -> None:
    previous = signal.signal(number, signal.default_int_handler)
    try:
        trainer = make_trainer(lambda loss: [InterruptCallback(), Calls("on_step_begin", interrupt(number, 2))])
        with pytest.raises(KeyboardInterrupt):
            trainer.train()
        assert trainer.state.global_step == 1
        assert not (tmp_path / "run" / "checkpoint-2").exists()
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, previous)


def test_sigterm_ends_a_child_that_has_the_handler_and_ctrl_c_leaves_it_to_us() -> None:
    callback = InterruptCallback()
    callback.on_train_begin(None, None, None)  # type: ignore[arg-type]
    try:
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
        assert callback.interrupted is None
    finally:
        callback.restore()
