"""Messages in the words of the command line."""

from __future__ import annotations

import logging
from typing import Any

import pytest

import simlte_st.training.train as training
from simlte_st.cli.main import build_parser, main
from simlte_st.cli.messages import in_options, note
from simlte_st.errors import ConfigurationError

FLAGS = {"held_out": "--held-out", "pooling": "--pooling", "bf16": "--bf16", "label_column": "--probe"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("held_out=-1e-05, or more", "--held-out -1e-05, or more"),
        ("shorter views (held_out=).", "shorter views (--held-out)."),
        ("bf16=False, bf16=True", "--no-bf16, --bf16"),
        ("Name it with label_column='my topic'.", "Name it with --probe 'my topic'."),
        ("The pooling of the base stays, with other=3.", "The pooling of the base stays, with other=3."),
        ("/data/held_out=1/x.txt and held_out.json", "/data/held_out=1/x.txt and held_out.json"),
        ("held_out==0 and pooling=f(x) are code", "held_out==0 and pooling=f(x) are code"),
    ],
)
def test_parameters_become_options_and_nothing_else_does(message: str, shown: str) -> None:
    assert in_options(message, FLAGS) == shown


def test_each_command_has_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    for command, shown in (
        ("evaluate model --data x", "--label, model="),
        ("train x --output y", "--probe, model="),
        ("index m x --output ix", "label_column=, MODEL"),
        ("search ix text", "label_column=, --model"),
    ):
        note("label_column=, model=", build_parser().parse_args(command.split()))
        assert capsys.readouterr().err == f"{shown}\n"


def test_errors_and_log_lines_are_in_the_words_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own

    def train(*given: Any) -> None:
        logging.getLogger("simlte_st").warning("Few steps (%d): pooling=keep is safer.", 5)
        raise ConfigurationError("max_steps=0: too few.")

    monkeypatch.setattr(training, "train", train)
    assert main(["train", "texts", "--output", "model"]) == 1
    assert capsys.readouterr().err == "Few steps (5): --pooling keep is safer.\nsimlte: --max-steps 0: too few.\n"
