"""Numbers as options have them: what is none is refused while the command line is parsed."""

from __future__ import annotations

import argparse
import math
import re


def whole_number(text: str) -> int:
    """Read a whole number.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        return int(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from error


def count(text: str) -> int:
    """Read how many: a whole number from 1.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    value = whole_number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def count_from_zero(text: str) -> int:
    """Read how many: a whole number from 0.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    value = whole_number(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def seed(text: str) -> int:
    """Read a seed of random numbers, which has 32 bits in some of the libraries.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    value = whole_number(text)
    if not 0 <= value < 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to {2**32 - 1:,}")
    return value


def finite_number(text: str) -> float:
    """Read a number; infinity and "not a number" are none here.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number")
    return value


def number_or_range(text: str) -> int | tuple[int, int]:
    """Read a whole number, or a range such as 2-12.

    Raises:
        argparse.ArgumentTypeError: It is neither.
    """
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number and no range such as 2-12")
    return int(match[1]) if match[2] is None else (int(match[1]), int(match[2]))
