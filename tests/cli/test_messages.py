"""Messages in the words of the command line."""

from __future__ import annotations

import ast
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import simlte_st
import simlte_st.training.train as training
from simlte_st.cli.main import build_parser, main
from simlte_st.cli.messages import OptionFormatter, in_options, note
from simlte_st.errors import ConfigurationError

FLAGS = {
    "held_out": "--held-out", "pooling": "--pooling", "max_view_length": "--max-view-length",
    "bf16": "--bf16", "overwrite": "--overwrite", "block": "--block", "label_column": "--probe", "source": "SOURCE",
    "mode": "--mode",
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("held_out=0.7: a share.", "--held-out 0.7: a share."),
        ("held_out=-1e-05, or more", "--held-out -1e-05, or more"),
        ("pooling='keep' is safer.", "--pooling keep is safer."),
        ("backbone='longformer' needs max_view_length=, the", "backbone='longformer' needs --max-view-length, the"),
        ("held_out= must not be 0.", "--held-out must not be 0."),
        ("shorter views (max_view_length=).", "shorter views (--max-view-length)."),
        ("replace it with overwrite=True.", "replace it with --overwrite."),
        ("bf16=False, bf16=True", "--no-bf16, --bf16"),
        ("block=(2, 12) is a range", "--block 2-12 is a range"),
        ("Name it with label_column='my topic'.", "Name it with --probe 'my topic'."),
        ("Name it with source=", "Name it with SOURCE"),
        ("The pooling of the base stays, with other=3.", "The pooling of the base stays, with other=3."),
        ("/data/held_out=1/x.txt and held_out.json", "/data/held_out=1/x.txt and held_out.json"),
        ("held_out==0 and pooling=f(x) are code", "held_out==0 and pooling=f(x) are code"),
        ("simlte train SOURCE --held-out 0.1", "simlte train SOURCE --held-out 0.1"),
    ],
)
def test_parameters_become_options_and_nothing_else_does(message: str, shown: str) -> None:
    assert in_options(message, FLAGS) == shown


@pytest.mark.parametrize(
    ("command", "message", "shown"),
    [
        ("evaluate model --data x", "name it with label_column=", "name it with --label"),
        ("train x --output y", "name it with label_column=", "name it with --probe"),
        ("train x --output y", "bf16=False", "--no-bf16"),
        ("search ix text", "name it with model=", "name it with --model"),
        ("index m x --output ix", "name it with model=", "name it with MODEL"),
        ("models list", "name it with model=", "name it with model="),
        ("evaluate model --data x", "segmenter='punkt'", "--segmenter punkt"),
    ],
)
def test_each_command_has_its_own_words(
    command: str, message: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    note(message, build_parser().parse_args(command.split()))
    assert capsys.readouterr().err == f"{shown}\n"


def test_errors_log_lines_and_results_are_in_the_words_of_the_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", "texts", "--output", "model", "--backbone", "chunk-mean"]) == 1
    assert capsys.readouterr().err.startswith("simlte: --backbone chunk-mean needs --max-length")
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a process of its own

    def train(*given: Any) -> None:
        logging.getLogger("simlte_st").warning("Few steps (%d): pooling='keep' is safer.", 5)
        raise ConfigurationError("max_steps=0: too few.")

    monkeypatch.setattr(training, "train", train)
    assert main(["train", "texts", "--output", "model"]) == 1
    assert capsys.readouterr().err == "Few steps (5): --pooling keep is safer.\nsimlte: --max-steps 0: too few.\n"


def test_log_lines_are_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    record = logging.LogRecord("simlte_st", logging.INFO, "", 0, "%s", ("word " * 30,), None)
    assert max(map(len, OptionFormatter({}).format(record).split("\n"))) <= 50


def texts_of(tree: ast.Module) -> Iterator[str]:
    """Return the texts in a module that are no docstrings; what is set into one is shown as {}."""
    quiet = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            quiet |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            yield node.value


COMMAND = re.compile(r"(\n    |(simlte|pip|hf) )[a-z{].*", re.DOTALL)
"""A whole command, which may be advised to anybody; indented lines are such."""


def test_the_library_names_parameters_as_python_does() -> None:
    package = Path(simlte_st.__file__).parent
    files = [
        path
        for path in package.rglob("*.py")
        if "cli" not in path.relative_to(package).parts
        and path.name not in ("build.py", "config.py")  # those name flags
    ]
    assert len(files) > 100
    wrong = [
        f"{path.relative_to(package)}: {text}"
        for path in files
        for text in texts_of(ast.parse(path.read_text(encoding="utf-8")))
        if re.search(r"(?<![\w(\"-])--[a-z]{2}|on the command line", COMMAND.sub("", text))
    ]
    assert not wrong, "\n".join(wrong)
