from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from annotated_types import Interval

from simlte_st.arguments import Count, CountOrZero, Positive, Seed, Share, check_arguments, check_fields
from simlte_st.errors import ConfigurationError


@check_arguments
def bake(
    source: Any,
    *,
    minutes: Count = 10,
    pause: CountOrZero = 0,
    heat: Positive | None = None,
    share: Share = 1.0,
    seed: Seed = 0,
    cosine: Annotated[float, Interval(ge=-1, lt=1)] = 0,
    mode: Literal["air", "grill"] = "air",
    length: Count | Literal["base"] | None = None,
    racks: str | Sequence[str] | None = None,
    name: str = "",
    closed: bool | None = None,
) -> dict[str, Any]:
    """Bake."""
    return {name: value for name, value in locals().items() if name != "source"}


def test_valid_values_are_passed_on() -> None:
    given: dict[str, Any] = {
        "minutes": np.int64(3), "pause": 0, "heat": 1, "share": np.float32(0.5), "seed": 2**32 - 1, "cosine": -1,
        "mode": "grill", "length": "base", "racks": ["a"], "name": "x", "closed": False,
    }  # fmt: skip
    assert bake(None, **given) == given
    assert bake("x", length=3, racks="a", heat=None)["length"] == 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"minutes": 0}, "minutes=0: must be a whole number, at least 1."),
        ({"minutes": True}, "minutes=True: must be a whole number, at least 1."),
        ({"minutes": 2.0}, "minutes=2.0: must be a whole number, at least 1."),
        ({"minutes": 2**31}, "minutes=2147483648: must be a whole number, at least 1."),
        ({"pause": -1}, "pause=-1: must be a whole number, at least 0."),
        ({"heat": 0}, "heat=0: must be a number, above 0."),
        ({"heat": float("nan")}, "heat=nan: must be a number, above 0."),
        ({"share": 1.5}, "share=1.5: must be a number, at least 0 and at most 1."),
        ({"share": None}, "share=None: must be a number, at least 0 and at most 1."),
        ({"seed": 2**32}, "seed=4294967296: must be a whole number, at least 0 and at most 4,294,967,295."),
        ({"cosine": 1}, "cosine=1: must be a number, at least -1 and below 1."),
        ({"mode": "gril"}, "mode='gril': must be 'air' or 'grill'."),
        ({"length": "bas"}, "length='bas': must be a whole number, at least 1 or 'base'."),
        *(({"racks": value}, "racks=") for value in (3, ["a", None], {"a": 1}, b"a", iter("a"), np.array([["a"]]))),
        ({"racks": [1]}, "racks=[1]: must be a string or a list of strings."),
        ({"name": None}, "name=None: must be a string."),
        ({"closed": 1}, "closed=1: must be True or False."),
    ],
)
def test_invalid_values_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        bake("x", **values)
    assert str(raised.value).startswith(message)


def test_unknown_arguments_suggest_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"bake\(\) has no argument 'minute'\. Did you mean 'minutes'\?"):
        bake("x", minute=3)
    with pytest.raises(TypeError, match="source"):
        bake()


def test_methods_and_extra_keywords_are_checked() -> None:
    class Oven:
        @check_arguments
        def __init__(self, heat: Positive, **others: Any) -> None:
            self.heat, self.others = heat, others

    assert Oven(3, door=0).others == {"door": 0}
    with pytest.raises(ConfigurationError, match="heat=-3"):
        Oven(-3)


@dataclass(frozen=True)
class Dish:
    """A dish."""

    weight: Positive
    kind: Literal["soup", "cake"] = "soup"

    def __post_init__(self) -> None:
        check_fields(self)


def test_dataclass_fields_are_checked() -> None:
    assert Dish(2).kind == "soup"
    for values in ({"weight": 0}, {"weight": 1, "kind": "pie"}):
        with pytest.raises(ConfigurationError, match=r"weight=0|kind='pie'"):
            Dish(**values)
