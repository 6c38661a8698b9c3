"""Options made from settings."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest
from cli_support import parsers

from simlte_st.cli.main import build_parser
from simlte_st.cli.options import add_alternatives, add_options, alternative_fields, config_from
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
    minutes: int = setting(10, "time")
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
    assert "--minutes N time (default: 10)" in text
    assert "door: --closed" in text
    assert "secret" not in text


def test_a_command_line_becomes_settings() -> None:
    words = shlex.split("--heat 9.5 --mode grill --minutes 2 --no-closed --length base --racks a,b --quiet")
    racks = ["a", "b"]
    expected = Oven(heat=9.5, mode="grill", minutes=2, closed=False, length="base", racks=racks, progress=False)
    assert config_from(parser().parse_args(words), Oven) == expected
    assert config_from(parser().parse_args([]), Oven) == Oven()
    assert config_from(parser().parse_args(["--shelves", "a"]), Oven, secret="y") == Oven(racks="a", secret="y")


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
    assert vars(made.parse_args(["--lid", "--heat", "3"])) == {"heat": 3.0, "mode": None, "lid": True}


def test_every_number_of_every_command_is_checked(capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"N": ("1.5", "nan", "99999999999999999999"), "X": ("x", "nan", "inf")}
    tried = 0
    for each in parsers(build_parser()):
        for action in each._actions:
            if not isinstance(action.metavar, str) or not re.match(r"[NX]\b", action.metavar):
                assert action.type not in (int, float), action
                continue
            for value in bad[action.metavar[0]]:
                with pytest.raises(SystemExit, match="2"):
                    each.parse_args([f"{action.option_strings[0]}={value}"])
                assert f"argument {'/'.join(action.option_strings)}: " in " ".join(capsys.readouterr().err.split())
                tried += 1
    assert tried > 100
