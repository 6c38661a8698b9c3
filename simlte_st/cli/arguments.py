"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simlte_st.cli.messages import in_options
from simlte_st.cli.terminal import UNPRINTABLE, wrapped
from simlte_st.data.sources.files import PLACES


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what tells how to read documents."""
    group = parser.add_argument_group("reading")
    group.add_argument("--text-column", metavar="NAME", help="column of the text (found where not given)")
    group.add_argument("--id-column", metavar="NAME", help="column of the ids (found or made where not given)")
    group.add_argument("--encoding", default="utf-8", help="encoding of text files (default: %(default)s)")
    group.add_argument("--limit", type=int, metavar="N", help="use no more than N documents")


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what every command has."""
    parser.add_argument("--verbose", action="store_true", help="show the libraries' messages too")
    parser.add_argument("--debug", action="store_true", help="show where in the code an error comes from")


def add_seed_argument(parser: argparse.ArgumentParser) -> None:
    """Add what commands that draw have."""
    parser.add_argument("--seed", type=int, default=0, help="decides everything that is drawn (default: %(default)s)")


def add_quiet_argument(parser: argparse.ArgumentParser) -> None:
    """Add what commands that show their progress have."""
    parser.add_argument("--quiet", action="store_true", help="show no progress bars")


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Add what makes a command print for machines; :func:`print_result` prints."""
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object, and nothing else")


def print_result(arguments: argparse.Namespace, text: str, values: Mapping[str, Any]) -> None:
    """Print what a command found on standard output.

    Args:
        arguments: Of the command, which has :func:`add_json_argument`.
        text: For people; parameters become options, and lines that are too wide are wrapped.
        values: The same as JSON values, printed instead with ``--json``.
    """
    from simlte_st.files import to_json

    if arguments.json:  # what would be a command to a terminal is written as JSON has it, which then stays JSON
        print(UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", to_json(values)))
    else:
        print(wrapped(in_options(text, arguments.flags)))


def add_device_argument(parser: argparse._ActionsContainer) -> None:
    """Add what tells where a model computes."""
    parser.add_argument(
        "--device", metavar="NAME", help="where the model computes: cpu, cuda, cuda:1 or mps (default: a GPU, if any)"
    )


RESULT_FILES = ("output", "bars", "heatmap", "lines")
"""Options that name a file of results."""


def add_overwrite_argument(parser: argparse.ArgumentParser) -> None:
    """Add what allows to replace files of results."""
    parser.add_argument("--overwrite", action="store_true", help="replace files of results that are there already")


def check_result_files(arguments: argparse.Namespace, *sources: str | None) -> None:
    """Check that the files of results can be written without losing anything, before work begins.

    Raises:
        ConfigurationError: One exists and shall not be replaced, is a folder, or is what is read.
    """
    from simlte_st.errors import ConfigurationError
    from simlte_st.files import check_apart, check_place

    for name in RESULT_FILES:
        given = getattr(arguments, name, None)
        if given is None:
            continue
        path = Path(given)
        for source in sources:
            check_apart(source, path)
        check_place(path)
        if path.exists() and not path.is_file():
            kind = "folder" if path.is_dir() else "device"
            raise ConfigurationError(f"--{name} {path} is a {kind}: name a file.")
        if path.exists() and not arguments.overwrite:
            raise ConfigurationError(f"{path} exists already: choose another file, or replace it with --overwrite.")


def reading_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Give the reading options by the names that :func:`~simlte_st.data.read_documents` has for them."""
    return {name: getattr(arguments, name) for name in ("text_column", "id_column", "encoding", "limit")}


SOURCE_HELP = f"{PLACES}; or several of these, also by a pattern such as 'notes/*.txt'"
"""What a source can be, for --help."""


class Sources(argparse.Action):
    """Takes one source or several, with patterns replaced by what they match: a string, or a list of strings.

    Used with ``nargs="+"``, or ``nargs="*"`` where there is a default.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set them, or end with what is wrong."""
        from simlte_st.errors import DataError

        try:
            found = expand_sources([values] if isinstance(values, str) else list(values or ()))
        except DataError as error:
            parser.exit(1, wrapped(f"simlte: {error}\n"))
        if found:
            setattr(namespace, self.dest, found[0] if len(found) == 1 else found)


def expand_sources(given: Sequence[str]) -> list[str]:
    """Replace patterns by the files and folders that they match, sorted, as shells that expand them would.

    Raises:
        DataError: One matches nothing, or one of several sources does not exist.
    """
    from simlte_st.errors import DataError

    found: list[str] = []
    for source in given:
        there = source.startswith("hub:") or os.path.lexists(source)
        if not there and glob.has_magic(source):
            matches = sorted(glob.glob(source, recursive=True))
            if not matches:
                raise DataError(f"No file or folder matches the pattern {source!r}.")
            found += matches
        elif there or len(given) == 1:  # one that is not there may be the name of something; its reader says so
            found.append(source)
        else:
            raise DataError(f"There is no file or folder {source!r}.")
    return found
