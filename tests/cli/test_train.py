from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import simlte_st.training.train as training
from simlte_st.cli import train as command
from simlte_st.cli.main import build_parser, main
from simlte_st.cli.messages import in_options
from simlte_st.data.views import VIEWS
from simlte_st.training.presets import Preset, TrainConfig


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the command calls :func:`train` with, which does nothing."""
    calls: list[Any] = []
    monkeypatch.setattr(training, "train", lambda *given: calls.append(given))
    monkeypatch.setattr(command, "report", lambda result, arguments: 0)
    return calls


def test_every_setting_of_a_preset_is_an_option_and_reaches_train(told: list[Any]) -> None:
    given: dict[str, Any] = {
        "batch_size": 8, "learning_rate": 1e-4, "warmup": 0.2, "epochs": 1.5, "scale": 10.0,
        "mlm_weight": 0.3, "mlm_probability": 0.2,
        "mlm_input": "shared", "mini_batch_num_tokens": 512, "pooling": "mean",
        "dropout": 0.05, "attention_dropout": 0.0, "max_view_length": 64,
        "max_length": 1024, "backbone": "chunk-mean",
    }  # fmt: skip
    others = {"view", "steps", "most_passes", "symmetric", "batch_tokens", "mlm_share"}
    assert set(given) == {item.name for item in fields(Preset)} - others
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    shared = shlex.split("--output model --bf16 --workers 2 --seed 3 --limit 9 --lsa 7 --quiet --report")
    assert main(["train", "texts", *shared, *options]) == 0
    [(source, output, config)] = told
    assert (source, output) == ("texts", Path("model"))
    common = {"bf16": True, "workers": 2, "seed": 3, "limit": 9, "lsa": 7, "progress": False, "report": True}
    assert config == TrainConfig.make(None, {**dict.fromkeys(config.settings), **common, **given})
    told.clear()
    assert main(["train", "texts", "--output", "model", "--no-bf16"]) == 0
    [(*_, config)] = told
    assert not any(value is not None for value in config.settings.values()), "what is not given is the preset's"
    assert (config.bf16, config.max_steps, config.progress) == (False, None, True)


def test_the_kind_of_model_has_an_option_for_each(told: list[Any]) -> None:
    for options, static in ((["--static"], True), (["--encoder"], False), ([], None)):
        assert main(["train", "texts", "--output", "model", *options]) == 0
        assert told.pop()[2].static is static
    with pytest.raises(SystemExit):
        build_parser().parse_args(["train", "texts", "--static", "--encoder"])
    flags = build_parser().parse_args(["train", "texts"]).flags
    said = in_options("static=True or static=False, progress=False", flags)
    assert said == "--static or --encoder, --quiet"


def test_every_setting_of_a_view_is_an_option_and_reaches_it(told: list[Any]) -> None:
    settings: dict[str, dict[str, Any]] = {
        "docsplit": {"p": 0.4},
        "identity": {"unit": "sentence"},
        "crop": {"least": 0.1, "most": 0.7},
        "inverse-cloze": {"keep_sentence": 0.3},
    }
    assert settings.keys() == VIEWS.keys()
    for name, chosen in settings.items():
        assert chosen.keys() == {field.name for field in fields(VIEWS[name])}
        words = ["--view", name]
        for setting, value in chosen.items():
            text = "-".join(map(str, value)) if isinstance(value, tuple) else str(value)
            words += [f"--{setting.replace('_', '-')}", text]
        assert main(["train", "texts", "--output", "model", *words]) == 0
        assert told.pop()[2].settings["view"] == VIEWS[name](**chosen)
    assert main(["train", "texts", "--output", "model", "--p", "0.3"]) == 0
    assert told.pop()[2].settings["view"] == VIEWS["docsplit"](p=0.3)
