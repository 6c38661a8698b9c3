"""Check arguments against a function's annotations, which declare each type, choice and range once.

``help()``, editors, the command line (:mod:`simlte_st.cli.app`) and these checks all read the same signature.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from annotated_types import Interval

from simlte_st.errors import ConfigurationError, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")

Count = Annotated[int, Interval(ge=1, le=2**31 - 1)]
"""A whole number of at least 1, limited to 31 bits because some libraries store it as a 32-bit integer."""

Plural = Annotated[int, Interval(ge=2, le=2**31 - 1)]
"""A whole number of at least 2."""

CountOrZero = Annotated[int, Interval(ge=0, le=2**31 - 1)]
"""A whole number of at least 0."""

Seed = Annotated[int, Interval(ge=0, le=2**32 - 1)]
"""A random seed of up to 32 bits, numpy's limit."""

Positive = Annotated[float, Interval(gt=0)]
"""A positive number."""

NotNegative = Annotated[float, Interval(ge=0)]
"""A number of at least 0."""

Share = Annotated[float, Interval(ge=0, le=1)]
"""A fraction or probability from 0 to 1."""

PositiveShare = Annotated[float, Interval(gt=0, le=1)]
"""A fraction or probability above 0 and up to 1."""

_LISTS = (Iterable, Sequence, list)
_NAMES = {str: "a string", bool: "True or False", os.PathLike: "a path", Callable: "a function", Mapping: "a mapping"}
_BOUNDS = {"ge": ("at least", ge), "gt": ("above", gt), "le": ("at most", le), "lt": ("below", lt)}


def check_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call against their annotations before the function runs.

    Supported annotations are ``int``, ``float``, ``str``, ``bool``, ``Literal``, mappings, callables, paths, this
    package's classes, and unions and lists of these; an ``annotated_types.Interval`` in an ``Annotated`` sets the
    range. A list may be any one-dimensional iterable; the elements of an iterator are not checked. Any other annotation
    accepts any third-party object. Names in annotations must be defined in the function's module.

    Raises:
        ConfigurationError: An argument has the wrong type, is not one of the choices or is out of range.
        TypeError: An argument is missing or unknown; for an unknown one, the message suggests the closest name.
    """
    signature = inspect.signature(function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [name for name, parameter in signature.parameters.items() if parameter.kind not in variadic]
    has_keywords = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not has_keywords and (unknown := [name for name in kwargs if name not in names]):
            hint = did_you_mean(unknown[0], names)
            raise TypeError(f"{function.__qualname__}() has no argument {unknown[0]!r}.{hint}")
        annotations = _annotations(function)
        try:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                if name in names and name in annotations:
                    check_value(name, value, annotations[name])
        except TypeError:  # a missing or extra argument; Python's own error names the function
            pass
        return function(*args, **kwargs)

    return call


def check_fields(instance: Any) -> None:
    """Check a dataclass's fields against their annotations; call this in ``__post_init__``.

    Raises:
        ConfigurationError: A field has the wrong type, is not one of the choices or is out of range.
    """
    for name, annotation in _annotations(instance.__class__).items():
        check_value(name, getattr(instance, name), annotation)


def check_value(name: str, value: object, annotation: object) -> None:
    """Check one value against an annotation.

    Raises:
        ConfigurationError: The value has the wrong type, is not one of the choices or is out of range.
    """
    kinds = list(alternatives(annotation))
    if not any(_fits(value, kind, bounds) for kind, bounds in kinds):
        expected = " or ".join(_describe_type(kind, bounds) for kind, bounds in kinds if kind is not type(None))
        raise ConfigurationError(f"{name}={value!r:.200}: must be {expected}.")


def alternatives(annotation: object, bounds: Interval | None = None) -> Iterator[tuple[object, Interval | None]]:
    """Yield each type allowed by an annotation, with its range."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from alternatives(inner, next((entry for entry in metadata if isinstance(entry, Interval)), bounds))
    elif get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from alternatives(member, bounds)
    else:
        yield annotation, bounds


@functools.cache
def _annotations(function: Hashable) -> dict[str, object]:
    """Return the evaluated annotations of a function's arguments or a dataclass's fields."""
    return {name: hint for name, hint in get_type_hints(function, include_extras=True).items() if name != "return"}


def _fits(value: Any, kind: object, bounds: Interval | None) -> bool:
    choices, plain = get_args(kind), get_origin(kind) or kind
    if plain is Literal:
        return isinstance(value, str) and value in choices
    if kind is type(None):
        return value is None
    if kind in (int, float):
        is_number = isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
        limits = ((getattr(bounds, name, None), compare) for name, (_, compare) in _BOUNDS.items())
        is_number = is_number and math.isfinite(value)
        return is_number and all(limit is None or compare(value, limit) for limit, compare in limits)
    if plain in _LISTS and choices:
        is_list = hasattr(value, "__iter__" if plain is Iterable else "__len__")
        is_list = is_list and not isinstance(value, (str, bytes, Mapping)) and getattr(value, "ndim", 1) == 1
        elements = {type(element): element for element in value} if is_list and hasattr(value, "__len__") else {}
        return is_list and all(
            any(_fits(element, *alternative) for alternative in alternatives(*choices)) for element in elements.values()
        )
    is_builtin = isinstance(value, (str, bytes, bool, int, float, list, dict, type(None)))
    is_ours = getattr(plain, "__module__", "").startswith("simlte_st.")
    # Third-party objects are not checked, since they may be wrapped, like a compiled model.
    if kind is Any or not (is_builtin or is_ours or plain in (str, bool, Callable, Mapping, os.PathLike)):
        return True
    return isinstance(plain, type) and isinstance(value, plain)


def _describe_type(kind: object, bounds: Interval | None) -> str:
    choices, plain = get_args(kind), get_origin(kind) or kind
    if plain is Literal:
        return " or ".join(map(repr, choices))
    if plain in _LISTS and choices:
        names = (_describe_type(*alternative).removeprefix("a ") for alternative in alternatives(*choices))
        return f"a list of {' or '.join(f'{name}s' for name in names if name != 'NoneType')}"
    if kind not in (int, float):
        return _NAMES.get(plain) or str(getattr(kind, "__name__", kind))
    noun = "a whole number" if kind is int else "a number"
    limits = ((side, getattr(bounds, name, None)) for name, (side, _) in _BOUNDS.items())
    sides = [f"{side} {limit:,}" for side, limit in limits if limit is not None and limit != 2**31 - 1]
    return f"{noun}, {' and '.join(sides)}" if sides else noun
