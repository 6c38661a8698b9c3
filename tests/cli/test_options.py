"""Options made from settings."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from simlte_st.cli.main import build_parser, main
from simlte_st.cli.options import add_alternatives, add_options, alternative_fields, config_from
from simlte_st.cli.parser import CommandParser
from simlte_st.config import Config, ProgressConfig, setting


@dataclass(frozen=True, kw_only=True)
class Door(Config):
    """The door."""

    heading: ClassVar[str] = "door"
    closed: bool | None = setting(None, "keep it closed")


@dataclass(frozen=True, kw_only=True)
class Oven(Door, ProgressConfig):
    """How to bake."""

    heat: float | None = setting(None, 'degrees, less with ``mode="air"``', above=0, default_help="by the recipe")
    mode: Literal["air", "grill"] = setting("air", "what heats, 50% of the time")
    minutes: int | tuple[int, int] = setting(10, "time, or a range")
    length: int | Literal["base"] | None = setting(None, "length")
    racks: str | Sequence[str] | None = setting(None, "racks", aliases=("--shelves",))
    secret: str = setting("x", "in Python only", option=False)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(exit_on_error=False)
    add_options(made, Oven)
    return made


def test_help_has_ranges_of_settings_as_options() -> None:
    text = " ".join(parser().format_help().split())
    assert "--heat X degrees, less with --mode air (default: by the recipe)" in text
    assert "--mode {air,grill} what heats, 50% of the time (default: air)" in text
    assert "--minutes N|N-M time, or a range (default: 10)" in text
    assert "--quiet show no progress bars" in text
    assert "door: --closed" in text
    assert "secret" not in text


def test_a_command_line_becomes_settings() -> None:
    words = [
        "--heat",
        "9.5",
        "--mode",
        "grill",
        "--minutes",
        "2-3",
        "--no-closed",
        "--length",
        "base",
        "--racks",
        "a,b",
        "--quiet",
    ]
    expected = Oven(
        heat=9.5, mode="grill", minutes=(2, 3), closed=False, length="base", racks=["a", "b"], progress=False
    )
    assert config_from(parser().parse_args(words), Oven) == expected
    assert config_from(parser().parse_args([]), Oven) == Oven()
    for flag in ("--racks", "--shelves"):
        assert config_from(parser().parse_args([flag, "a"]), Oven, secret="y") == Oven(racks="a", secret="y")


@pytest.mark.parametrize(
    "words", ["--minutes 2-x", "--minutes 0", "--heat inf", "--heat nan", "--heat -1", "--mode oil", "--length short"]
)
def test_values_that_do_not_fit_are_refused(words: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=words.split()[1]):
        parser().parse_args(words.split())


@dataclass
class Pan:
    """How to fry."""

    heat: float = setting(180.0, "degrees of the oil")
    mode: Literal["oil", "air"] = setting("oil", "what heats")


@dataclass
class Pot:
    """How to boil."""

    heat: float = setting(100.0, "degrees of the water")
    mode: Literal["water"] = setting("water", "what heats")
    lid: bool = setting(False, "with its lid")


def test_alternatives_share_options() -> None:
    made = argparse.ArgumentParser()
    add_alternatives(made, {"pan": Pan, "pot": Pot})
    text = " ".join(made.format_help().split())
    assert "--heat X pan: degrees of the oil; pot: degrees of the water" in text
    assert "--mode {oil,air,water} pan, pot: what heats" in text
    assert alternative_fields({"pan": Pan, "pot": Pot}) == ["heat", "mode", "lid"]
    assert vars(made.parse_args([])) == {"heat": None, "mode": None, "lid": None}
    assert vars(made.parse_args(["--lid", "--heat", "3"])) == {"heat": 3.0, "mode": None, "lid": True}


def test_alternatives_of_different_types_are_a_fault() -> None:
    @dataclass
    class Grill:
        heat: int = setting(3, "level")

    with pytest.raises(TypeError, match="float"):
        add_alternatives(argparse.ArgumentParser(), {"pan": Pan, "grill": Grill})


BAD_NUMBERS = {
    "N": ("1.5", "x", "nan", "inf", "1e9", "99999999999999999999", "-99999999999999999999"),
    "X": ("x", "nan", "inf", "-inf", "1e999", ""),
}


def leaves(parser: CommandParser) -> Iterator[CommandParser]:
    children = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not children:
        yield parser
    for action in children:
        for child in action.choices.values():
            yield from leaves(child)


NUMBERS = [
    (parser, action)
    for parser in leaves(build_parser())
    for action in parser._actions
    if isinstance(action.metavar, str) and re.match(r"[NX]\b", action.metavar)
]


def test_all_numbers_say_so() -> None:
    for parser in leaves(build_parser()):
        for action in parser._actions:
            assert action.type not in (int, float), f"{parser.prog} {action.option_strings}"
            if isinstance(action.default, (int, float)) and not isinstance(action.default, bool):
                assert action.metavar is not None, f"{parser.prog} {action.option_strings}"
    assert len(NUMBERS) > 60


@pytest.mark.parametrize(
    ("parser", "action"), NUMBERS, ids=lambda each: getattr(each, "prog", None) or each.option_strings[0]
)
def test_the_parser_refuses_what_is_not_a_number_or_out_of_range(
    parser: CommandParser, action: argparse.Action, capsys: pytest.CaptureFixture[str]
) -> None:
    option = action.option_strings[0]
    for bad in BAD_NUMBERS[str(action.metavar)[0]]:
        with pytest.raises(SystemExit) as end:
            parser.parse_args([f"{option}={bad}"])
        assert end.value.code == 2
        assert f"error: argument {'/'.join(action.option_strings)}: " in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "options",
    [
        "--epochs 0", "--epochs -1", "--epochs 1e300", "--learning-rate 0", "--learning-rate -0.1", "--warmup 1",
        "--warmup -0.1", "--scale 0", "--mlm-weight -1", "--mlm-probability 0",
        "--mlm-probability 2", "--dropout 1", "--attention-dropout -1", "--batch-size 1", "--held-out 0.6",
        "--held-out -1", "--p 0", "--p 1", "--least 2 --view crop", "--keep-sentence 2 --view inverse-cloze",
        "--block 5-2 --unit block",
    ],
)  # fmt: skip
def test_a_setting_out_of_range_is_named(options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status: object
    try:
        status = main(shlex.split(f"train nowhere --base b --output {tmp_path / 'm'} {options}"))
    except SystemExit as end:  # the parser knows the range of one setting
        status = end.code
    assert status in (1, 2)
    said = capsys.readouterr().err
    assert re.match(rf"simlte( train)?: (error: argument )?{options.split()[0]}", said), said
    assert "should not happen" not in said
    assert not list(tmp_path.iterdir())
