"""Arguments that several commands share, and what they do."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simlte_st.cli.messages import in_options
from simlte_st.cli.numbers import count, seed
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import UNPRINTABLE, wrapped

ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"metavar": "MODEL", "help": "folder or name of a model"},
    "index": {"metavar": "INDEX", "help": "folder of the index"},
    "source": {"metavar": "SOURCE", "nargs": "+", "action": Sources, "help": SOURCE_HELP},
    "--model": {"metavar": "MODEL", "help": "the model of the index, if it has been moved"},
    "--resume": {"action": "store_true", "help": "go on with an interrupted run"},
    "--overwrite": {"action": "store_true", "help": "replace what is there already"},
    "--segmenter": {"default": "punkt", "help": "punkt or nupunkt (default: %(default)s)"},
    "--device": {
        "metavar": "NAME",
        "help": "where the model computes: cpu, cuda, cuda:1 or mps (default: a GPU, if any)",
    },
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

COMMON = ("--verbose", "--debug")
"""Those that every command has."""


def add_arguments(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add arguments of :data:`ARGUMENTS`."""
    for name in names:
        if name == "reading":
            add_arguments(parser.add_argument_group("reading"), *READING)
        elif name == "common":
            add_arguments(parser, *COMMON)
        else:
            parser.add_argument(name, **ARGUMENTS[name])


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


def check_result_file(arguments: argparse.Namespace, *sources: Any) -> None:
    """Check, before work begins, that ``arguments.output`` can be written and replaces nothing unasked."""
    from simlte_st.errors import ConfigurationError
    from simlte_st.files import check_apart, check_new, check_place

    if arguments.output is None:
        return
    path = Path(arguments.output)
    check_apart(sources, path)
    check_place(path)
    if path.exists() and not path.is_file():
        raise ConfigurationError(f"output={path} is a {'folder' if path.is_dir() else 'device'}: name a file.")
    check_new(path, arguments.overwrite)
