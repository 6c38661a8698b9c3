"""Options made from the fields of dataclasses: a new field is an option without a change here."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from simlte_st.cli.numbers import finite_number, number_or_base, number_or_range, whole_number

_NUMBERS: dict[Any, tuple[Any, str]] = {
    int: (whole_number, "N"),
    float: (finite_number, "X"),
    int | list[int]: (whole_number, "N"),
    int | Literal["base"]: (number_or_base, "N|base"),
    int | tuple[int, int]: (number_or_range, "N|N-M"),
}
"""How the text of an option becomes the type of a field, and what the help shows for it."""


def add_dataclass_arguments(group: Any, kind: type, without: Collection[str] = ()) -> None:
    """Add an option for each field of a dataclass; the help is what its docstring says of the field."""
    helps, types = _field_texts(kind), _field_types(kind)
    for field in fields(kind):
        if field.name not in without:
            _add_option(group, field.name, types[field.name], helps[field.name])


def add_alternatives(group: Any, kinds: Mapping[str, type]) -> None:
    """Add an option for each field of dataclasses of which one is chosen by name.

    A field that several have is one option; the help says for each what its docstring says.
    """
    types: dict[str, Any] = {}
    texts: dict[str, dict[str, list[str]]] = {}  # of each field, each text with the names that it stands for
    for name, kind in kinds.items():
        helps = _field_texts(kind)
        for field, hint in _field_types(kind).items():
            types[field] = _either(types.get(field, hint), hint)
            texts.setdefault(field, {}).setdefault(helps[field], []).append(name)
    for field, hint in types.items():
        text = "; ".join(f"{', '.join(names)}: {text}" for text, names in texts[field].items())
        _add_option(group, field, hint, text)


def alternative_fields(kinds: Mapping[str, type]) -> list[str]:
    """Name the fields that :func:`add_alternatives` makes options of."""
    return list(dict.fromkeys(field.name for kind in kinds.values() for field in fields(kind)))


def _either(one: Any, other: Any) -> Any:
    """Return the type that an option of two fields has: the choices of both, or the type that is theirs."""
    if get_origin(one) is Literal and get_origin(other) is Literal:
        return Literal[tuple(dict.fromkeys(get_args(one) + get_args(other)))]
    if one != other:
        raise TypeError(f"One option cannot be both {one} and {other}.")
    return one


def _field_types(kind: type) -> dict[str, Any]:
    """Return the type of each field, without the None of an optional one."""
    types = {}
    hints = get_type_hints(kind)
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) in (UnionType, Union):
            hint = Union[tuple(each for each in get_args(hint) if each is not type(None))]  # noqa: UP007
        types[field.name] = hint
    return types


def _add_option(group: Any, name: str, hint: Any, text: str) -> None:
    options: dict[str, Any] = {"default": None, "help": text}
    if hint is bool:
        options["action"] = argparse.BooleanOptionalAction
    elif get_origin(hint) is Literal:
        options["choices"] = get_args(hint)
    elif hint is not str:
        options["type"], options["metavar"] = _NUMBERS[hint]
    group.add_argument(f"--{name.replace('_', '-')}", **options)


def _field_texts(kind: type) -> dict[str, str]:
    """Read what the docstring of a class says of each field, as one line in the words of the command line.

    Fields become options, and what None means is left out: an option that is not given leaves it to the default.
    """
    section = re.split(r"^(?:Attributes|Args):\n", inspect.getdoc(kind) or "", maxsplit=1, flags=re.MULTILINE)[-1]
    section = section.partition("\n\n")[0]
    texts = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, flags=re.MULTILINE))

    def plain(match: re.Match[str]) -> str:
        name, _, value = match[1].partition("=")
        shown = f"--{name.replace('_', '-')}" if name in texts else name
        return f"{shown} {value}".strip().replace('"', "")

    lines = {}
    for name, text in texts.items():
        line = re.sub(r"``([^`]*)``", plain, " ".join(text.split())).replace("%", "%%")
        line = re.sub(r" None: [^.]*\.", "", line).replace(", or None,", "").rstrip(".")
        lines[name] = line if line[1].isupper() else line[0].lower() + line[1:]
    return lines
