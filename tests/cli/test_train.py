from __future__ import annotations

import functools
import shlex
import signal
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import simlte_st.training.train as training
from simlte_st.cli import train as command
from simlte_st.cli.main import build_parser, main
from simlte_st.data.views import VIEWS
from simlte_st.errors import TrainingInterrupted
from simlte_st.training.presets import Preset


def test_every_setting_of_a_preset_is_an_option_and_reaches_train(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {
        "batch_size": 8, "batch_tokens": 900,
        "learning_rate": 1e-4, "warmup": 0.2, "epochs": 1.5, "scale": 10.0,
        "mlm_weight": 0.3, "mlm_probability": 0.2,
        "mlm_input": "shared", "mlm_share": 0.5, "mini_batch_num_tokens": 512, "pooling": "mean",
        "dropout": 0.05, "attention_dropout": 0.0, "max_view_length": 64,
        "max_length": 1024, "backbone": "chunk-mean",
    }  # fmt: skip
    assert set(given) == {item.name for item in fields(Preset)} - {"view", "steps"}
    options = []
    for name, value in given.items():
        options += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    told: dict[str, Any] = {}
    monkeypatch.setattr(training, "train", functools.wraps(training.train)(lambda **options: told.update(options)))
    monkeypatch.setattr(command, "report", lambda result, arguments: 0)
    others = ["--output", "model", "--bf16", "--workers", "2", "--seed", "3", "--limit", "9"]
    others += ["--lsa", "7", "--quiet", "--report"]
    assert main(["train", "texts", *others, *options]) == 0
    assert {name: told[name] for name in given} == given
    assert (told["source"], told["output"], told["seed"], told["limit"], told["lsa"]) == (
        "texts", Path("model"), 3, 9, 7,
    )  # fmt: skip
    assert (told["bf16"], told["workers"], told["progress"], told["view"], told["report"]) == (
        True,
        2,
        False,
        None,
        True,
    )
    told.clear()
    assert main(["train", "texts", "--output", "model", "--no-bf16"]) == 0
    assert not any(told[name] is not None for name in given), "what is not given is the preset's"
    assert (told["bf16"], told["max_steps"], told["progress"]) == (False, None, True)


def test_every_setting_of_a_view_is_an_option_and_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    received: dict[str, Any] = {}
    monkeypatch.setattr(training, "train", functools.wraps(training.train)(lambda **options: received.update(options)))
    monkeypatch.setattr(command, "report", lambda result, arguments: 0)
    settings: dict[str, dict[str, Any]] = {
        "docsplit": {"p": 0.4, "unit": "block", "block": (2, 5), "window": "head", "single": "skip"},
        "identity": {"window": "spread", "unit": "sentence"},
        "crop": {"least": 0.1, "most": 0.7},
        "inverse-cloze": {"keep_sentence": 0.3, "window": "head"},
    }
    assert settings.keys() == VIEWS.keys()
    for name, chosen in settings.items():
        assert chosen.keys() == {field.name for field in fields(VIEWS[name])}
        words = ["--view", name]
        for setting, value in chosen.items():
            text = "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{setting.replace('_', '-')}", text]
        assert main(["train", "texts", "--output", "model", *words]) == 0
        assert received["view"] == VIEWS[name](**chosen)
    assert main(["train", "texts", "--output", "model", "--p", "0.3"]) == 0
    assert received["view"] == VIEWS["docsplit"](p=0.3)


def test_the_help_is_what_the_preset_says_in_plain_words(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "--batch-size N documents in a batch, which several processes share" in text
    assert "--pooling {cls,mean,keep} pooling of the model: cls, mean, or keep the base's" in text
    assert "``" not in text
    assert ":func:" not in text
    assert "--steps" not in text, "--max-steps is the one that overrides the preset"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_told_in_a_line(
    number: signal.Signals, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @functools.wraps(training.train)
    def stop(**options: Any) -> None:
        raise TrainingInterrupted("Stopped at step 3 of 9; a checkpoint is written.", number)

    monkeypatch.setattr(training, "train", stop)
    assert main(shlex.split("train texts --output model")) == status
    assert capsys.readouterr().err == "Stopped at step 3 of 9; a checkpoint is written.\n"


def test_somewhere_to_go_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split("train texts")) == 1
    assert "--output DIR or --name NAME" in capsys.readouterr().err
