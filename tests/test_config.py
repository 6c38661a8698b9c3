"""Settings that are declared once: checks, signatures, and the stub for type checkers."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest
from write_overrides import TARGET, configs, stub

from simlte_st.config import (
    ResumeConfig,
    SeedConfig,
    check_choice,
    check_count,
    check_number,
    configured,
    setting,
)
from simlte_st.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Oven(ResumeConfig, SeedConfig):
    """How to bake."""

    heat: float | None = setting(None, "degrees", above=0, most=300)
    mode: Literal["air", "grill"] = setting("air", "what heats")
    minutes: int = setting(10, "time")
    racks: int = setting(0, "racks", least=0, most=4, decisive=False)
    length: int | Literal["base"] | None = setting(None, "length")
    name: str = setting("ours", "whose it is")


@configured(Oven)
def bake(dish: str, config: Oven | None = None, **overrides: Any) -> Oven:
    return Oven.make(config, overrides)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("heat", 0), ("heat", 301), ("heat", float("nan")), ("heat", "hot"), ("mode", "oil"), ("mode", None),
        ("minutes", 0), ("minutes", 1.5), ("minutes", True), ("minutes", None), ("racks", 5), ("length", "all"),
        ("name", 3), ("seed", -1), ("seed", 2**32),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name}="):
        Oven(**{name: value})


def test_overrides_replace_the_values_of_a_config() -> None:
    assert bake("bread", Oven(heat=200, minutes=5), minutes=7) == Oven(heat=200, minutes=7)
    assert bake("bread") == Oven()
    assert bake("bread", heat=None, length="base", racks=0) == Oven(length="base")
    with pytest.raises(ConfigurationError, match="Oven"):
        bake("bread", SeedConfig())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'minutes'"):
        bake("bread", minute=1)


def test_the_signature_has_the_settings_with_their_defaults() -> None:
    parameters = inspect.signature(bake).parameters
    assert list(parameters)[:2] == ["dish", "config"]
    assert set(parameters) == {"dish", "config", *Oven.accepted()}
    assert parameters["minutes"].default == 10
    assert "minutes: time." in (Oven.__doc__ or "")
    assert "seed:" in (Oven.__doc__ or "")


def test_what_may_change_on_resuming_is_not_decisive() -> None:
    assert set(Oven().decisive()) == {"seed", "heat", "mode", "minutes", "length", "name"}
    assert Oven(seed=3).part(SeedConfig) == SeedConfig(seed=3)
    assert Oven(seed=3).values(SeedConfig) == {"seed": 3}


def test_every_setting_of_the_package_has_a_default_in_its_range_and_a_help() -> None:
    for kind in configs():
        kind()
        assert all(len(line) > 10 for line in (kind.__doc__ or "").partition("Attributes:")[2].split(".\n"))


def test_the_stub_for_type_checkers_is_current() -> None:
    written = "".join(TARGET.read_text(encoding="utf-8").split()).replace('"', "'").replace(",", "")
    assert written == "".join(stub().split()).replace('"', "'").replace(",", ""), "run: make overrides"


# Checks of numbers and words.


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True, [1.0]])
def test_what_is_no_finite_number_is_in_no_range(value: Any) -> None:
    for limits in ({}, {"least": 0}, {"most": 9}, {"above": -9, "below": 9}):
        with pytest.raises(ConfigurationError, match=r"^x=.*: must be a number"):
            check_number("x", value, **limits)


def test_the_range_is_said() -> None:
    with pytest.raises(ConfigurationError, match=r"^rate=0: .*above 0 .*most 1,000\.$"):
        check_number("rate", 0, above=0, most=1000)
    with pytest.raises(ConfigurationError, match=r"^n=0: .*whole number.* 1\.$"):
        check_count("n", 0)
    with pytest.raises(ConfigurationError, match=r"use 'a' or 'b'\.$"):
        check_choice("x", "c", {"a": 1, "b": 2})
    check_number("x", np.float32(0.25), above=-1, below=2)
    check_count("n", np.int32(1))
