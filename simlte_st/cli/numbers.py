"""Numbers as options have them: what is none, or out of its range, is refused while the command line is parsed.

The library checks its own parameters (:mod:`simlte_st.checks`); the functions here read the words.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from simlte_st.checks import LARGEST_COUNT, check_count, check_number, check_seed
from simlte_st.errors import ConfigurationError

T = TypeVar("T", int, float)


def _read(text: str, kind: Callable[[str], T], kinds: str, check: Callable[[T], None]) -> T:
    """Read a number and check it."""
    try:
        value = kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no {kinds}") from error
    try:
        check(value)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error).partition("=")[2].rstrip(".")) from error
    return value


def whole_number(text: str) -> int:
    """Read a whole number, of either sign."""
    return _read(text, int, "whole number", lambda value: check_count("N", value, least=-LARGEST_COUNT))


def count(text: str) -> int:
    """Read how many: a whole number from 1."""
    return _read(text, int, "whole number", lambda value: check_count("N", value))


def count_from_zero(text: str) -> int:
    """Read how many: a whole number from 0."""
    return _read(text, int, "whole number", lambda value: check_count("N", value, least=0))


def devices(text: str) -> str | list[str]:
    """Read the name of a device, or several with commas between them."""
    names = text.split(",")
    return names if len(names) > 1 else text


def seed(text: str) -> int:
    """Read a seed of random numbers."""
    return _read(text, int, "whole number", lambda value: check_seed(value))


def finite_number(text: str) -> float:
    """Read a number; infinity and "not a number" are none here."""
    return _read(text, float, "number", lambda value: check_number("X", value))


def number_or_base(text: str) -> int | Literal["base"]:
    """Read a whole number from 1, or the word "base"."""
    if text == "base":
        return "base"
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, and not the word base") from error


def number_or_range(text: str) -> Any:
    """Read a whole number from 1, or a range such as 2-12: an integer, or a pair of them."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number and no range such as 2-12")
    numbers = tuple(count(number) for number in match.groups() if number is not None)
    return numbers if len(numbers) == 2 else numbers[0]
