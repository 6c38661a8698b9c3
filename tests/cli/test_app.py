"""Commands are composed of the library's functions: options, help, checks and messages come from their signatures."""

from __future__ import annotations

import functools
import logging
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from annotated_types import Interval
from cyclopts import Parameter

import simlte_st
from simlte_st.arguments import Count, check_arguments
from simlte_st.cli import app
from simlte_st.cli.app import Options, Result, build, command, commands
from simlte_st.cli.main import main
from simlte_st.errors import ConfigurationError
from simlte_st.views.views import VIEWS

COMMANDS = commands()


@check_arguments
def bake(
    source: Any,
    *,
    heat: Annotated[float, Interval(gt=0)] | None = None,
    mode: Literal["air", "grill"] = "air",
    length: Count | Literal["base"] | None = None,
    racks: str | Sequence[str] | None = None,
    closed: bool | None = None,
    near: bool = True,
    cook: Any = print,
    overwrite: bool = False,
    progress: bool = True,
) -> dict[str, Any]:
    """Bake.

    Args:
        source: What.
        heat: Degrees; fewer with ``mode="air"`` or ``closed=False``. By default, the recipe's.
        mode: What heats, 50% of the time.
        racks: Racks.
        overwrite: Whether to eat what is there.
    """
    if heat == 13:
        logging.getLogger("simlte_st").warning("Hot (%d): mode=grill is safer, not other=3.", 5)
        raise ConfigurationError("heat=13: with closed=False and near=False, see dish=, progress=False.")
    return dict(locals())


@pytest.fixture
def baked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The arguments that the command ``bake`` passes to the function."""
    calls: list[Any] = []
    monkeypatch.setattr(app, "COMMANDS", ("bake",))

    @command("bake", {"Oven": (bake,)}, reads=True, without=("cook",), names={"near": Parameter(negative="--exact")},
             aliases={"dish": "--plate"})  # fmt: skip
    def run(options: Options, dish: str, /, *source: str, temper: list[str] | None = None) -> Result:
        """Bake a dish.

        Slowly,
        with ``heat=``.

        Args:
            dish: The dish.
            source: {places}.
            temper: Whose.

        Examples:
            simlte bake bread --heat 9
        """
        calls.append((dish, source, temper, bake("x", **options.of(bake))))
        return Result("heat=3 was used.", {"text": "\x1b[2J", "mean": float("nan")}, notes=["mode=air"])

    return calls


def test_options_reach_the_function(baked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    options = "--heat 9.5 --mode grill --length base --racks a,b --no-closed --exact --overwrite --quiet --temper t u"
    assert main(shlex.split(f"bake bread x y {options}")) == 0
    [(dish, source, temper, given)] = baked
    assert (dish, source, temper) == ("bread", ("x", "y"), ["t", "u"])
    expected = {"heat": 9.5, "mode": "grill", "length": "base", "racks": ["a", "b"], "closed": False, "near": False}
    assert expected.items() <= given.items()
    assert (given["overwrite"], given["progress"]) == (True, False)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("--heat 3 was used.\n", "")
    assert main(["bake", "bread", "--racks", "a", "--json", "--length", "3"]) == 0
    given = baked[1][3]
    assert (given["racks"], given["length"], given["heat"], given["progress"]) == ("a", 3, None, True)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ('{\n  "text": "\\u001b[2J",\n  "mean": null\n}\n', "--mode air\n")


def test_help_comes_from_docstrings(baked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bake", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    for words in (
        "Bake a dish. Slowly, with --heat.",
        "Degrees; fewer with --mode air or --no-closed. By default, the recipe's.",
        "What heats, 50% of the time. [choices: air, grill] [default: air]",
        "Examples: simlte bake bread --heat 9",
        "--quiet Show only results, warnings and errors.",
        "A folder with one document per file",
    ):
        assert words in shown, words
    assert not {"--cook", "--label-column", "--metadata", "--progress"} & set(shown.split())
    headings = [shown.index(f"─ {name} ") for name in ("Options", "Oven", "Reading", "Common")]
    assert headings == sorted(headings)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bread --heat nan", "--heat=nan: must be a number, above 0."),
        ("bread --length 0", "--length=0: must be a whole number, at least 1 or 'base'."),
        ("bread --length 1.5", "--length='1.5': must be a whole number"),
        ("bread --mode gril", 'Invalid value "gril" for --mode'),
        ("bread --heat few", 'Invalid value for --heat: unable to convert "few"'),
        ("bread --het 3", "Unknown option: --het. Did you mean --heat?"),
        ("bread --temper", "parameter --temper requires"),
        ("", "parameter DISH requires an argument"),
    ],
)
def test_invalid_arguments_print_a_two_line_error(
    words: str, said: str, baked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bake", *words.split()]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert said in first
    assert first.startswith("simlte bake: error: ")
    assert second == "simlte bake --help lists all arguments, with examples."
    assert not baked


def test_errors_and_log_lines_name_command_options(
    baked: list[Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root, "handlers", [])  # as in a new process
    assert main(["bake", "bread", "--heat", "13"]) == 1
    assert capsys.readouterr().err == (
        "Hot (5): --mode grill is safer, not other=3.\n"
        "simlte: --heat 13: with --no-closed and --exact, see --plate, --quiet.\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_parse(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"`|\b[a-z_]+=", shown.partition("Examples:")[0]), "Python's names"
    examples = [line.strip() for line in shown.partition("Examples:")[2].splitlines() if line.strip()]
    assert any(line.startswith(f"simlte {name}") for line in examples)
    for line in examples:
        words = ["DASH" if word == "-" else word for word in shlex.split(line.partition(" < ")[0])[1:]]  # as main does
        assert callable(build().parse_args(words, exit_on_error=False, print_error=False)[0])


def test_every_option_has_help_text() -> None:
    for name, each in COMMANDS.items():
        for parameter, (_, _, text) in each.parameters.items():
            assert text, (name, parameter)


def test_train_options_reach_the_function(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []

    @functools.wraps(simlte_st.train)
    def told(source: Any, output: Any, **options: Any) -> None:
        calls.append((len(list(source)), str(output), options))
        raise ConfigurationError("static=True or static=False; label_column=")

    monkeypatch.setattr("simlte_st.cli.commands.train", told)
    given = {"batch_size": 8, "learning_rate": 1e-4, "max_length": "base", "mlm_input": "shared", "seed": 3, "lsa": 0}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    assert (
        main(["train", str(folder), "--output", "m", "--encoder", "--limit", "9", "--no-bf16", "--quiet", *words]) == 1
    )
    assert calls.pop() == (9, "m", {**given, "static": False, "bf16": False, "progress": False})
    assert capsys.readouterr().err == "simlte: --static or --encoder; --probe\n"
    views: dict[str, dict[str, Any]] = {
        "docsplit": {"p": 0.4},
        "identity": {"unit": "sentence"},
        "crop": {"least": 0.1, "most": 0.7},
    }
    assert views.keys() == VIEWS.keys()
    train = ["train", str(folder), "--output", "m"]
    for name, chosen in views.items():
        words = [word for field, value in chosen.items() for word in (f"--{field.replace('_', '-')}", str(value))]
        assert main([*train, "--view", name, *words]) == 1
        assert calls.pop()[2]["view"] == VIEWS[name](**chosen)
    assert main([*train, "--p", "0.3"]) == 1
    assert calls.pop()[2]["view"] == VIEWS["docsplit"](p=0.3)
    assert main([*train, "--static", "--encoder"]) == 2
    assert not calls
