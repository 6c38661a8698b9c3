"""Settings that are declared once: checks, signatures, former names, and the stub for type checkers."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from write_overrides import TARGET, configs, stub

from simlte_st.config import ResumeConfig, SeedConfig, configured, setting
from simlte_st.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Oven(ResumeConfig, SeedConfig):
    """How to bake."""

    heat: float | None = setting(None, "degrees", above=0, most=300)
    mode: Literal["air", "grill"] = setting("air", "what heats")
    minutes: int = setting(10, "time", formerly=("duration",))
    racks: int = setting(0, "racks", least=0, most=4, decisive=False)
    length: int | Literal["base"] | None = setting(None, "length")
    name: str = setting("ours", "whose it is")


@configured(Oven, food="dish")
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


@pytest.mark.parametrize(
    ("name", "value"), [("heat", None), ("heat", 300), ("racks", 0), ("length", "base"), ("length", 7)]
)
def test_values_in_range_are_taken(name: str, value: Any) -> None:
    assert getattr(bake("bread", **{name: value}), name) == value


def test_overrides_replace_the_values_of_a_config() -> None:
    assert bake("bread", Oven(heat=200, minutes=5), minutes=7) == Oven(heat=200, minutes=7)
    assert bake("bread") == Oven()
    with pytest.raises(ConfigurationError, match="Oven"):
        bake("bread", SeedConfig())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="'minutes'"):
        bake("bread", minute=1)


def test_a_former_name_warns_and_works() -> None:
    with pytest.warns(FutureWarning, match="minutes=") as told:
        assert bake("bread", duration=3).minutes == 3
    with pytest.warns(FutureWarning, match="dish=") as told_of_parameter:
        assert bake(food="bread", minutes=3).minutes == 3  # type: ignore[call-arg]
    assert {each.filename for each in (*told, *told_of_parameter)} == {__file__}, "whose call is to be changed"


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
