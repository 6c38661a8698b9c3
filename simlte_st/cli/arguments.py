"""Arguments that several commands share, and what they do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simlte_st.cli.messages import in_options
from simlte_st.cli.numbers import count, devices, seed
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import UNPRINTABLE, wrapped

ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"metavar": "MODEL", "help": "folder or name of a model"},
    "index": {"metavar": "INDEX", "help": "folder of the index"},
    "source": {"metavar": "SOURCE", "nargs": "+", "action": Sources, "help": SOURCE_HELP},
    "--model": {"metavar": "MODEL", "help": "the model of the index, if it has been moved"},
    "--resume": {"action": "store_true", "help": "go on with an interrupted run"},
    "--overwrite": {"action": "store_true", "help": "replace what is there already"},
    "--batch-size": {
        "type": count, "default": 32, "metavar": "N", "help": "texts that are encoded together (default: %(default)s)"
    },
    "--segmenter": {"default": "punkt", "help": "punkt or nupunkt (default: %(default)s)"},
    "--device": {
        "metavar": "NAME",
        "help": "where the model computes: cpu, cuda, cuda:1 or mps (default: a GPU, if any)",
    },
    "--engine": {
        "choices": ("local", "ray"),
        "default": "local",
        "help": "what computes: this process, or actors of Ray on one machine or many (default: %(default)s)",
    },
    "--actors": {"type": count, "metavar": "N", "help": "number of actors of Ray (default: as many as fit)"},
    "--address": {"metavar": "HOST:PORT", "help": "a Ray cluster (default: one that runs here, else a new one)"},
    "--json": {"action": "store_true", "help": "print the result as one JSON object, and nothing else"},
    "--text-column": {"metavar": "NAME", "help": "column of the text (default: the usual names)"},
    "--id-column": {"metavar": "NAME", "help": "column of the ids (default: the usual names, else made)"},
    "--encoding": {"default": "utf-8", "help": "encoding of text files (default: %(default)s)"},
    "--limit": {"type": count, "metavar": "N", "help": "use no more than N documents"},
    "--seed": {
        "type": seed, "default": 0, "metavar": "N", "help": "decides everything that is drawn (default: %(default)s)"
    },
    "--quiet": {"action": "store_true", "help": "show no progress bars"},
    "--verbose": {"action": "store_true", "help": "show the libraries' messages too"},
    "--debug": {"action": "store_true", "help": "show where in the code an error comes from"},
}  # fmt: skip
"""Arguments that several commands share, as ``add_argument`` takes them."""

READING = ("--text-column", "--id-column", "--encoding", "--limit")
"""Those that say how to read documents."""

ENGINE = ("--engine", "--actors", "--address")
"""Those that say what encodes documents."""

SEVERAL_DEVICES: dict[str, Any] = {
    "type": devices,
    "metavar": "NAME[,NAME]",
    "help": "where the model computes: cpu, cuda, cuda:1 or mps (default: a GPU, if any); several share the work: "
    "cuda:0,cuda:1",
}
"""What ``--device`` is for commands that can encode on several."""

COMMON = ("--verbose", "--debug")
"""Those that every command has."""

RESULT_FILES = ("output",)
"""Options that name a file of results."""


def add_arguments(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add arguments of :data:`ARGUMENTS`."""
    for name in names:
        if name == "engine":
            group = parser.add_argument_group("devices and machines")
            group.add_argument("--device", **SEVERAL_DEVICES)
            add_arguments(group, *ENGINE)
        elif name == "reading":
            add_arguments(parser.add_argument_group("reading"), *READING)
        elif name == "common":
            add_arguments(parser, *COMMON)
        else:
            parser.add_argument(name, **ARGUMENTS[name])


def engine_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what says where documents are encoded by the names that the library has for it."""
    return {name: getattr(arguments, name) for name in ("device", "engine", "actors", "address")}


def loading_device(arguments: argparse.Namespace) -> str | None:
    """Say where to load a model that encodes as :func:`engine_options` say: on the CPU, where copies of it go out."""
    several = arguments.engine != "local" or isinstance(arguments.device, list)
    return "cpu" if several else arguments.device


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the reading options by the names that :func:`~simlte_st.data.read_documents` has for them."""
    return {name: getattr(arguments, name) for name in ("text_column", "id_column", "encoding", "limit")}


def print_result(arguments: argparse.Namespace, text: str, values: Mapping[str, Any]) -> None:
    """Print the result of a command on standard output."""
    from simlte_st.files import to_json

    if arguments.json:  # what would be a command to a terminal is written as JSON has it, which then stays JSON
        print(UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", to_json(values)))
    else:
        print(wrapped(in_options(text, arguments.flags)))


def check_result_files(arguments: argparse.Namespace, *sources: Any) -> None:
    """Check that the files of results can be written without losing anything, before work begins."""
    from simlte_st.errors import ConfigurationError
    from simlte_st.files import check_apart, check_place

    for name in RESULT_FILES:
        file = getattr(arguments, name, None)
        if file is None:
            continue
        path = Path(file)
        for source in sources:
            check_apart(source, path)
        check_place(path)
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "device"
            raise ConfigurationError(f"--{name} {path} is a {kind}: name a file.")
        if path.exists() and not arguments.overwrite:
            raise ConfigurationError(f"{path} exists already: choose another file, or replace it with --overwrite.")
