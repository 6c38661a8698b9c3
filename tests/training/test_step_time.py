from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from simlte_st.training import step_time
from simlte_st.training.step_time import StepTimeCallback, count_tokens, spell_seconds


class Loss(nn.Module):
    def forward(self, features: Any, labels: Any = None) -> None:
        pass


def run(loss: Loss, seconds: float, steps: int, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what the Trainer does, where each step takes some seconds."""
    clock = iter(range(0, 10**6, int(seconds)))
    monkeypatch.setattr(step_time.time, "perf_counter", lambda: float(next(clock)))
    callback, state = StepTimeCallback(loss), SimpleNamespace(global_step=0, max_steps=steps)
    callback.on_train_begin(None, state, None)  # type: ignore[arg-type]
    for _ in range(steps):
        callback.on_step_begin(None, state, None)  # type: ignore[arg-type]
        loss([{"attention_mask": torch.ones(2, tokens // 4)}] * 2)
        state.global_step += 1
        callback.on_step_end(None, state, None)  # type: ignore[arg-type]


def test_long_steps_are_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "simlte_st"):
        run(Loss(), 118, 30, 48_000, monkeypatch)
    assert caplog.messages == [
        "The first step reads 48,000 tokens, 2 views of each document.",
        "The first step took 118 s: about 57 minutes for the 29 left.",
    ]


def test_short_ones_are_not(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    loss = Loss()
    with caplog.at_level("INFO", "simlte_st"):
        run(loss, 2, 30, 4_000, monkeypatch)
        run(Loss(), 118, 1, 4_000, monkeypatch)
    assert caplog.messages == [], "nor is anything left after the only step"
    assert not loss._forward_pre_hooks


def test_padding_is_no_token() -> None:
    assert count_tokens({"input_ids": torch.ones(2, 3), "attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0]])}) == 4
    assert count_tokens({"input_ids": torch.ones(7), "cu_seq_lens_q": torch.tensor([0, 3, 7])}) == 7


def test_times_are_spelled_in_the_unit_that_suits_them() -> None:
    assert [spell_seconds(one) for one in (29.4, 240, 3422, 86_000)] == [
        "29 s",
        "4 minutes",
        "57 minutes",
        "23.9 hours",
    ]
