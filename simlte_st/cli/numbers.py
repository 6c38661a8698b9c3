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
