"""Checks of settings: one sentence for a number that is out of its range, one for a word that is none of some."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from simlte_st.errors import ConfigurationError

LARGEST_COUNT = 2**31 - 1
"""No setting counts more; libraries below us have 32 bits for some of them."""

LARGEST_SEED = 2**32 - 1
"""Seeds have 32 bits: numpy takes no larger ones."""


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Check a finite number."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    fits = (
        math.isfinite(number)
        and (least is None or number >= least)
        and (most is None or number <= most)
        and (above is None or number > above)
        and (below is None or number < below)
    )
    if not fits:
        bounds = (("at least", least), ("above", above), ("at most", most), ("below", below))
        limits = " and ".join(f"{words} {bound:,}" for words, bound in bounds if bound is not None)
        raise ConfigurationError(f"{name}={value}: must be a number{', ' * bool(limits)}{limits}.")


def check_count(name: str, value: Any, *, least: int = 1, most: int = LARGEST_COUNT) -> None:
    """Check a whole number."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        limits = f"at least {least:,}" if whole and value < least else f"from {least:,} to {most:,}"
        raise ConfigurationError(f"{name}={value}: must be a whole number, {limits}.")


def check_seed(seed: Any) -> None:
    """Check a seed."""
    check_count("seed", seed, least=0, most=LARGEST_SEED)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Check a word."""
    known = list(choices)
    if value not in known:
        *others, last = map(repr, known)
        raise ConfigurationError(f"{name}={value!r}: use {', '.join(others)} or {last}.")


def check_text(name: str, value: Any) -> None:
    """Check a text."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name}={value!r}: must be one text, not a {type(value).__name__}.")
