"""Arguments that several commands share and that are not settings, and printing of results."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simlte_st.cli.messages import in_options
from simlte_st.cli.sources import SOURCE_HELP, Sources
from simlte_st.cli.terminal import as_json, wrapped

ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"metavar": "MODEL", "help": "folder or name of a model"},
    "index": {"metavar": "INDEX", "help": "folder of the index"},
    "source": {"metavar": "SOURCE", "nargs": "+", "action": Sources, "help": SOURCE_HELP},
    "--model": {"metavar": "MODEL", "help": "the model of the index, if it has been moved"},
    "--json": {"action": "store_true", "help": "print the result as one JSON object, and nothing else"},
    "--verbose": {"action": "store_true", "help": "show the libraries' messages too"},
    "--debug": {"action": "store_true", "help": "show where in the code an error comes from"},
}
"""Arguments as ``add_argument`` takes them."""


def add_arguments(parser: argparse._ActionsContainer, *names: str) -> None:
    """Add arguments of :data:`ARGUMENTS`."""
    for name in names:
        parser.add_argument(name, **ARGUMENTS[name])


def print_result(arguments: argparse.Namespace, text: str, values: Mapping[str, Any]) -> None:
    """Print the result of a command on standard output."""
    from simlte_st.files import to_json

    if arguments.json:
        print(as_json(to_json(values)))
    else:
        print(wrapped(in_options(text, arguments.flags)))


def check_result_file(arguments: argparse.Namespace, *sources: Any) -> None:
    """Check, before work begins, that ``arguments.output`` can be written and replaces nothing unasked."""
    from simlte_st.files import check_apart, check_new, check_place

    if arguments.output is None:
        return
    path = Path(arguments.output)
    check_apart(sources, path)
    check_place(path)
    check_new(path, arguments.overwrite and path.is_file())
