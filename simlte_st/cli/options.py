"""Options of commands made from settings (:mod:`simlte_st.config`): a new field is an option without a change here."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Literal, TypeVar, get_args, get_origin

from simlte_st.config import Config, Setting, check_value, default_of, setting_of, types_of
from simlte_st.errors import ConfigurationError
from simlte_st.files import valid_unicode

C = TypeVar("C", bound=Config)


def add_options(parser: argparse._ActionsContainer, kind: type[Config], without: Collection[str] = ()) -> None:
    """Add an option for each setting; those of a class that has a heading are a group of the help."""
    groups = {group.title: group for group in parser._action_groups}
    owners = {name: owner for owner in kind.__mro__ for name in vars(owner).get("__annotations__", {})}
    for item in sorted(fields(kind), key=lambda each: kind.__mro__.index(owners[each.name])):  # its own settings first
        if setting_of(item).option and item.name not in without:
            heading = vars(owners[item.name]).get("heading", "")
            if heading and heading not in groups:
                groups[heading] = parser.add_argument_group(heading)
            _add_option(groups[heading] if heading else parser, item, types_of(kind)[item.name])


def config_from(arguments: argparse.Namespace, kind: type[C], **others: Any) -> C:
    """Return the settings that a command line has; ``others`` are those that are no options."""
    given = {item.name: getattr(arguments, item.name) for item in fields(kind) if hasattr(arguments, item.name)}
    return kind(**{**given, **others})


def add_alternatives(group: Any, kinds: Mapping[str, type]) -> None:
    """Add an option for each field of dataclasses of which one is chosen by name; None is an option not given.

    A field that several have is one option; the help says for each what its own field says.
    """
    items: dict[str, Field[Any]] = {}
    types: dict[str, tuple[Any, ...]] = {}
    texts: dict[str, dict[str, list[str]]] = {}  # of each field, each text with the names that it stands for
    for name, kind in kinds.items():
        for item in _optional(kind):
            hints = types_of(kind)[item.name]
            types[item.name] = _either(types.get(item.name, hints), hints)
            items.setdefault(item.name, item)
            texts.setdefault(item.name, {}).setdefault(setting_of(item).help, []).append(name)
    for name, item in items.items():
        text = "; ".join(f"{', '.join(names)}: {text}" for text, names in texts[name].items())
        _add_option(group, item, types[name], text if len(kinds) > 1 else None, optional=True)


def alternative_fields(kinds: Mapping[str, type]) -> list[str]:
    """Return the names of the fields that :func:`add_alternatives` makes options of."""
    return list(dict.fromkeys(item.name for kind in kinds.values() for item in _optional(kind)))


def _optional(kind: type) -> list[Field[Any]]:
    return [item for item in fields(kind) if "setting" not in item.metadata or setting_of(item).option]


def _either(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    if one == other:
        return one
    if len(one) == len(other) == 1 and get_origin(one[0]) is Literal and get_origin(other[0]) is Literal:
        return (Literal[tuple(dict.fromkeys(get_args(one[0]) + get_args(other[0])))],)
    raise TypeError(f"One option cannot be both {one} and {other}.")


def _add_option(
    group: Any, item: Field[Any], kinds: tuple[Any, ...], text: str | None = None, *, optional: bool = False
) -> None:
    """Add an option; an ``optional`` one is None where it is not given, whatever its field's default is."""
    entry, default = setting_of(item), None if optional else default_of(item)
    options: dict[str, Any] = {"dest": item.name, "default": default}
    if entry.off is not None:
        group = group.add_mutually_exclusive_group()
        group.add_argument(entry.off, help=entry.off_help, **options, action="store_false")
        options["action"] = "store_true"
    elif bool in kinds:
        on = argparse.BooleanOptionalAction if default is None else "store_true"
        options["action"] = "store_false" if default is True else on
    elif len(literal := [kind for kind in kinds if kind is not type(None)]) == 1 and get_origin(literal[0]) is Literal:
        options["choices"] = get_args(literal[0])
    else:
        options["metavar"] = entry.metavar or _metavar(kinds)
        options["type"] = lambda words: read_value(words, item.name, kinds, entry)
    text = in_flags(text or entry.flag_help or entry.help)
    if entry.default_help or not (default is None or isinstance(default, bool)):
        text += f" (default: {in_flags(entry.default_help) if entry.default_help else '%(default)s'})"
    flags = [entry.flag or f"--{item.name.replace('_', '-')}", *entry.aliases]
    group.add_argument(*flags, help=text, **options)


def in_flags(text: str) -> str:
    """Return a help text with settings in double backticks (``name=value``) as options, for argparse."""

    def option(match: re.Match[str]) -> str:
        name, _, value = match[1].partition("=")
        shown = f"--{name.replace('_', '-')}" if re.fullmatch(r"[a-z_]+", name) and "=" in match[1] else name
        return f"{shown} {value}".strip().replace('"', "")

    return re.sub(r"``([^`]*)``", option, text).replace("%", "%%")


def _metavar(kinds: tuple[Any, ...]) -> str | None:
    number = "N" if int in kinds else "X" if float in kinds else None
    if number is None:
        return None
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    return "|".join([number, *words])


def number(kind: type[int] | type[float], **bounds: Any) -> Callable[[str], Any]:
    """Return what reads a number within bounds, for an option that is not a setting."""
    return lambda text: read_value(text, kind.__name__, (kind,), Setting("", **bounds))


def read_value(text: str, name: str, kinds: tuple[Any, ...], entry: Setting) -> Any:
    """Return the value that a word of the command line is for a setting."""
    try:
        value = _typed(text, kinds)
        check_value(name, value, kinds, entry)
    except ConfigurationError as error:
        raise argparse.ArgumentTypeError(str(error).partition("=")[2].rstrip(".")) from error
    return value


def _typed(text: str, kinds: tuple[Any, ...]) -> Any:
    words = [word for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    if text in words:
        return text
    if Sequence[str] in kinds:
        names = text.split(",")
        return names if len(names) > 1 or str not in kinds else text
    for kind, called in ((int, "a whole number"), (float, "a number")):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError as error:
                others = "".join(f" or {word!r}" for word in words)
                raise argparse.ArgumentTypeError(f"{text!r} is not {called}{others}") from error
    return valid_unicode(text)
