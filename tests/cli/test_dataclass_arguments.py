"""Options made from dataclasses."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal

import pytest

from simlte_st.cli.dataclass_arguments import add_alternatives, add_dataclass_arguments, alternative_fields


@dataclass
class Oven:
    """How to bake.

    Attributes:
        heat: Degrees, for ``mode="air"`` less. None: what the recipe says.
        mode: ``"air"`` or ``"grill"``
            of the oven.
        minutes: Time, 50% of which is waiting; or a range.
        closed: The door stays closed.
        name: Whose it is.
    """

    heat: float | None = None
    mode: Literal["air", "grill"] = "air"
    minutes: int | tuple[int, int] = 10
    closed: bool = True
    name: str = "ours"


@dataclass
class Pan:
    """How to fry.

    Args:
        heat: Degrees, for ``mode="air"`` less.
        mode: What goes in: ``"oil"``.
        lid_on: With a lid.

    Raises:
        ValueError: No fat.
    """

    heat: float = 180.0
    mode: Literal["oil", "air"] = "oil"
    lid_on: bool = False


def test_fields_are_options_with_the_docstring_as_their_help() -> None:
    parser = argparse.ArgumentParser()
    add_dataclass_arguments(parser, Oven, without=("name",))
    text = " ".join(parser.format_help().split())
    assert "--heat X degrees, for --mode air less" in text
    assert "recipe" not in text
    assert "--mode {air,grill} air or grill of the oven" in text
    assert "--minutes N|N-M time, 50% of which is waiting; or a range" in text
    assert "--name" not in text
    assert vars(parser.parse_args([])) == {"heat": None, "mode": None, "minutes": None, "closed": None}
    words = ["--heat", "9.5", "--mode", "grill", "--minutes", "2-3", "--no-closed"]
    assert vars(parser.parse_args(words)) == {"heat": 9.5, "mode": "grill", "minutes": (2, 3), "closed": False}
    assert parser.parse_args(["--minutes", "7"]).minutes == 7


@pytest.mark.parametrize("words", ["--minutes 2-x", "--minutes -1", "--heat inf", "--heat nan", "--mode oil"])
def test_values_of_another_type_are_refused(words: str) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_dataclass_arguments(parser, Oven)
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parser.parse_args(words.split())


def test_alternatives_share_the_options_that_they_have_in_common() -> None:
    parser = argparse.ArgumentParser()
    add_alternatives(parser, {"oven": Oven, "pan": Pan})
    text = " ".join(parser.format_help().split())
    assert "--heat X oven, pan: degrees, for --mode air less" in text
    assert "--mode {air,grill,oil} oven: air or grill of the oven; pan: what goes in: oil" in text
    assert "pan: with a lid" in text
    assert alternative_fields({"oven": Oven, "pan": Pan}) == ["heat", "mode", "minutes", "closed", "name", "lid_on"]
    assert parser.parse_args(["--lid-on", "--mode", "oil"]).mode == "oil"


def test_one_option_has_one_type() -> None:
    @dataclass
    class Pot:
        """How to cook.

        Args:
            heat: Low or high.
        """

        heat: Literal["low", "high"] = "low"

    with pytest.raises(TypeError, match="cannot be both"):
        add_alternatives(argparse.ArgumentParser(), {"oven": Oven, "pot": Pot})
