"""Check arguments against the annotations of a signature, which declare type, choices and range once.

``help()``, editors, the command line (:mod:`simlte_st.cli.app`) and these checks all read the same signature.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Interval

from simlte_st.errors import ConfigurationError, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

Count = Annotated[int, Interval(ge=1, le=2**31 - 1)]
"""A whole number of at least 1; some libraries store it in 32 bits."""

CountOrZero = Annotated[int, Interval(ge=0, le=2**31 - 1)]
"""A whole number of at least 0."""

Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]
"""A random seed; numpy takes 32 bits."""

Positive = Annotated[float, Interval(gt=0)]
"""A number above 0."""

Share = Annotated[float, Interval(ge=0, le=1)]
"""A share or probability, from 0 to 1."""


_LISTS = (Iterable, Sequence, list)
_NAMES = {str: "a string", bool: "True or False", os.PathLike: "a path", Callable: "a function", Mapping: "a mapping"}


def check_arguments(function: F) -> F:
    """Check the arguments of each call against their annotations before the function runs.

    ``int``, ``float``, ``str``, ``bool``, ``Literal``, mappings, callables, paths, this package's classes, and unions
    and lists of them are checked, with the ``annotated_types.Interval`` of an ``Annotated``. A list is any iterable of
    one dimension; the elements of an iterator are not checked. Other types accept any object of a library. The
    annotations must be names in the function's module.

    Raises:
        ConfigurationError: An argument has the wrong type, is not one of the choices or is out of range.
        TypeError: There is no such argument, and the message suggests the closest name; or one is missing.
    """
    signature = inspect.signature(function)
    names = [
        name for name, each in signature.parameters.items() if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
    ]
    takes_all = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        if not takes_all and (unknown := [name for name in options if name not in names]):
            meant = did_you_mean(unknown[0], names)
            raise TypeError(f"{function.__qualname__}() has no argument {unknown[0]!r}.{meant}")
        hints = _hints(function)
        try:
            for name, value in signature.bind(*arguments, **options).arguments.items():
                if name in names and name in hints:
                    check_value(name, value, hints[name])
        except TypeError:  # an argument is missing or surplus; Python's own error names the function
            pass
        return function(*arguments, **options)

    return call  # type: ignore[return-value]


def check_fields(instance: Any) -> None:
    """Check the fields of a dataclass against their annotations, in its ``__post_init__``.

    Raises:
        ConfigurationError: A field has the wrong type, is not one of the choices or is out of range.
    """
    kind: Any = type(instance)
    for name, annotation in _hints(kind).items():
        check_value(name, getattr(instance, name), annotation)


def check_value(name: str, value: Any, annotation: Any) -> None:
    """Check one value against an annotation.

    Raises:
        ConfigurationError: The value does not fit.
    """
    kinds = list(alternatives(annotation))
    if not any(_fits(value, kind, bounds) for kind, bounds in kinds):
        wanted = " or ".join(_describe_type(kind, bounds) for kind, bounds in kinds if kind is not type(None))
        raise ConfigurationError(f"{name}={value!r:.200}: must be {wanted}.")


def alternatives(annotation: Any, bounds: Interval | None = None) -> Iterator[tuple[Any, Interval | None]]:
    """Yield each type that an annotation allows, with its range."""
    if get_origin(annotation) is Annotated:
        inner, *others = get_args(annotation)
        yield from alternatives(inner, next((each for each in others if isinstance(each, Interval)), bounds))
    elif get_origin(annotation) in (Union, types.UnionType):
        for each in get_args(annotation):
            yield from alternatives(each, bounds)
    else:
        yield annotation, bounds


@functools.cache
def _hints(of: Any) -> dict[str, Any]:
    hints = get_type_hints(of, include_extras=True)
    hints.pop("return", None)
    return hints


def _fits(value: Any, kind: Any, bounds: Interval | None) -> bool:
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is type(None):
        return value is None
    if kind in (str, bool):
        return isinstance(value, kind)
    if kind in (int, float):
        number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        return number and math.isfinite(value) and _within(value, bounds)
    plain = get_origin(kind) or kind
    if plain in _LISTS and get_args(kind):
        listed = hasattr(value, "__iter__" if plain is Iterable else "__len__")
        listed = listed and not isinstance(value, (str, bytes, Mapping)) and getattr(value, "ndim", 1) == 1
        kinds = {type(each): each for each in value} if listed and hasattr(value, "__len__") else {}
        return listed and all(
            any(_fits(each, *own) for own in alternatives(*get_args(kind))) for each in kinds.values()
        )
    # Objects of other libraries may be wrapped, such as a compiled model.
    if plain in (Callable, Mapping, os.PathLike) or getattr(plain, "__module__", "").startswith("simlte_st."):
        return isinstance(value, plain)
    builtin = isinstance(value, (str, bytes, bool, int, float, list, dict, type(None)))
    return kind is Any or not builtin or (isinstance(plain, type) and isinstance(value, plain))


def _within(value: Any, bounds: Interval | None) -> bool:
    if bounds is None:
        return True
    # For mypy, the bounds are any comparable type.
    above: Any = (bounds.gt is None or value > bounds.gt) and (bounds.ge is None or value >= bounds.ge)
    return bool(above and (bounds.lt is None or value < bounds.lt) and (bounds.le is None or value <= bounds.le))


def _describe_type(kind: Any, bounds: Interval | None) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(repr, get_args(kind)))
    if (plain := get_origin(kind) or kind) in _LISTS and get_args(kind):
        described = (_describe_type(*own).removeprefix("a ") for own in alternatives(*get_args(kind)))
        return f"a list of {' or '.join(f'{each}s' for each in described if each != 'NoneType')}"
    if kind not in (int, float):
        return _NAMES.get(plain) or str(getattr(kind, "__name__", kind))
    words = "a whole number" if kind is int else "a number"
    if bounds is None:
        return words
    sides = (("at least", bounds.ge), ("above", bounds.gt), ("at most", bounds.le), ("below", bounds.lt))
    shown = [f"{side} {bound:,}" for side, bound in sides if bound is not None and bound != 2**31 - 1]
    return f"{words}, {' and '.join(shown)}"
