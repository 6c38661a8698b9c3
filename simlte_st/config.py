"""Settings, each declared once: a dataclass field with its type, default, help and range.

The check of a value, the option of a command (:mod:`simlte_st.cli.options`), the keyword argument of a function, the
saved settings of a run, the check on resuming it and the reference page all come from that one field.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from simlte_st.errors import ConfigurationError, did_you_mean

C = TypeVar("C", bound="Config")
F = TypeVar("F", bound=Callable[..., Any])

LARGEST_COUNT = 2**31 - 1
"""Upper limit of whole numbers: some libraries have 32 bits for them."""

LARGEST_SEED = 2**32 - 1
"""Upper limit of seeds: numpy takes 32 bits."""


@dataclass(frozen=True)
class Setting:
    """What a field says besides its name, type and default; see :func:`setting`."""

    help: str
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    metavar: str | None = None
    flag: str | None = None
    flag_help: str | None = None
    off: str | None = None
    off_help: str | None = None
    aliases: tuple[str, ...] = ()
    decisive: bool = True
    option: bool = True
    default_help: str | None = None


def setting(default: Any, help: str, **others: Any) -> Any:
    """Declare a field of a :class:`Config`.

    Args:
        default: Its default.
        help: One line for ``--help`` and for the reference, without a full stop; other settings in double backticks.
        **others: Fields of :class:`Setting`. ``least``, ``most``, ``above`` and ``below`` bound numbers (whole numbers
            are at least 1 by default). ``metavar`` and ``flag`` name the option where the field's name and type do
            not; ``flag_help`` explains it where it switches something off. ``off`` is a flag for False beside one for
            True, where None is neither, and ``off_help`` explains it. ``aliases`` has other flags of the option.
            ``decisive=False`` is for what a run may be resumed with another value of, ``option=False`` for what no
            command line has; ``default_help`` explains a default of None.
    """
    metadata = {"setting": Setting(help, **others)}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Base of the settings of one verb. Subclasses are frozen, keyword-only dataclasses, and may have several bases.

    Attributes:
        heading: Heading of the fields that a class declares itself in ``--help``; empty for none.
    """

    heading: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any) -> None:
        """Add the fields to the docstring, from where the reference has them."""
        super().__init_subclass__(**options)
        lines = [f"    {name}: {entry.help}." for name, entry in _declared(cls).items()]
        cls.__doc__ = "\n".join([inspect.cleandoc(cls.__doc__ or ""), "", "Attributes:", *lines])

    def __post_init__(self) -> None:
        hints = types_of(type(self))
        for item in fields(self):
            check_value(item.name, getattr(self, item.name), hints[item.name], setting_of(item))

    @classmethod
    def make(cls: type[C], config: C | None, overrides: Mapping[str, Any]) -> C:
        """Return the settings of a call: those of a config, or the defaults, with some replaced."""
        if config is not None and not isinstance(config, cls):
            raise ConfigurationError(f"config={config!r}: must be a {cls.__name__}.")
        if unknown := [name for name in overrides if name not in cls.__dataclass_fields__]:
            names = list(cls.__dataclass_fields__)
            raise TypeError(f"There is no setting {unknown[0]!r}.{did_you_mean(unknown[0], names)}")
        return cls(**overrides) if config is None else replace(config, **overrides)

    @classmethod
    def accepted(cls) -> list[str]:
        """Return the names that :meth:`make` takes."""
        return [item.name for item in fields(cls)]

    def values(self, *kinds: type[Config]) -> dict[str, Any]:
        """Return the values by name; only those of the fields of ``kinds``, where any are named."""
        names = [item.name for kind in kinds or (type(self),) for item in fields(kind)]
        return {name: getattr(self, name) for name in names}

    def part(self, kind: type[C]) -> C:
        """Return the settings that another config has too, as such a one."""
        return kind(**self.values(kind))

    def decisive(self) -> dict[str, Any]:
        """Return the values that decide the outcome of a run, by name."""
        return {item.name: getattr(self, item.name) for item in fields(self) if setting_of(item).decisive}


def configured(kind: type[Config]) -> Callable[[F], F]:
    """Show the settings of ``kind`` in the signature of a function that takes them as ``**overrides``."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        more = [
            inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default_of(item), annotation=item.type)
            for item in fields(kind)
            if item.name not in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return decorate


def setting_of(item: Field[Any]) -> Setting:
    """Return what a field says of itself."""
    found: Setting = item.metadata["setting"]
    return found


def default_of(item: Field[Any]) -> Any:
    """Return the default of a field."""
    return item.default if item.default_factory is MISSING else item.default_factory()


def types_of(kind: type) -> dict[str, tuple[Any, ...]]:
    """Return the types that a value of each field may have, None included, as alternatives."""
    return _types_of(kind)


@functools.cache
def _types_of(kind: type) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind)
    return {
        item.name: get_args(hints[item.name])
        if get_origin(hints[item.name]) in (Union, types.UnionType)
        else (hints[item.name],)
        for item in fields(kind)
    }


def check_value(name: str, value: Any, kinds: tuple[Any, ...], entry: Setting) -> None:
    """Check a value by the type and range of its field."""
    literal = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if value is None and type(None) in kinds:
        return
    if literal is not None and (isinstance(value, str) or len(kinds) - (type(None) in kinds) == 1):
        check_choice(name, value, get_args(literal))
    elif int in kinds and not isinstance(value, (list, tuple)):
        least = 1 if entry.least is None else int(entry.least)
        check_count(name, value, least=least, most=LARGEST_COUNT if entry.most is None else int(entry.most))
    elif float in kinds:
        check_number(name, value, least=entry.least, most=entry.most, above=entry.above, below=entry.below)
    elif set(kinds) <= {str, type(None)}:
        check_text(name, value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    """Check a finite number by its range."""
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
    """Check a whole number by its range."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        limits = f"at least {least:,}" if whole and value < least else f"from {least:,} to {most:,}"
        raise ConfigurationError(f"{name}={value}: must be a whole number, {limits}.")


def check_seed(seed: Any) -> None:
    """Check a seed."""
    check_count("seed", seed, least=0, most=LARGEST_SEED)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Check one of some words."""
    known = list(choices)
    if value not in known:
        *others, last = map(repr, known)
        raise ConfigurationError(f"{name}={value!r}: use {', '.join(others)} or {last}.")


def check_text(name: str, value: Any) -> None:
    """Check a string."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name}={value!r}: must be one text, not a {type(value).__name__}.")


def _declared(kind: type) -> dict[str, Setting]:
    """Return the settings of a class whose own fields its decorator has not collected yet."""
    found: dict[str, Setting] = {}
    for base in reversed(kind.__mro__):
        items = getattr(base, "__dataclass_fields__", {}) if base is not kind else vars(base)
        found |= {
            name: item.metadata["setting"]
            for name, item in items.items()
            if isinstance(item, Field) and "setting" in item.metadata
        }
    return found


# What many verbs have, each as a base of their configs.


@dataclass(frozen=True, kw_only=True)
class SeedConfig(Config):
    """The seed of a run."""

    seed: int = setting(0, "decides everything that is drawn", least=0, most=LARGEST_SEED)


@dataclass(frozen=True, kw_only=True)
class ProgressConfig(Config):
    """What long work shows."""

    progress: bool = setting(
        True, "show progress bars", flag="--quiet", flag_help="show no progress bars", decisive=False
    )


@dataclass(frozen=True, kw_only=True)
class OverwriteConfig(Config):
    """What becomes of an output that exists."""

    overwrite: bool = setting(False, "replace what is there already", decisive=False)


@dataclass(frozen=True, kw_only=True)
class ResumeConfig(OverwriteConfig):
    """Runs that can be interrupted."""

    resume: bool = setting(False, "continue an interrupted run", decisive=False)


@dataclass(frozen=True, kw_only=True)
class DeviceConfig(Config):
    """Where a model computes."""

    device: str | None = setting(
        None,
        "where the model computes: cpu, cuda, cuda:1 or mps",
        metavar="NAME",
        default_help="a GPU, if there is one",
        decisive=False,
    )
