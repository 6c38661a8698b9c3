"""How commands are parsed: help that ends with examples, errors that are short."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NoReturn

from simlte_st.cli.terminal import wrapped


class CommandParser(argparse.ArgumentParser):
    """A parser whose help ends with examples, and whose errors are two lines instead of a page of usage.

    The parsers of its subcommands are of this class too.

    Args:
        *arguments: Of ``argparse.ArgumentParser``.
        examples: Command lines for the help.
        **options: Of ``argparse.ArgumentParser``.
    """

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.examples = tuple(examples)
        self._given: list[str] = []

    def format_help(self) -> str:
        """Write the help, with the examples at its end."""
        shown = "".join(f"  {line}\n" for line in self.examples)
        return super().format_help() + (f"\nexamples:\n{shown}" if shown else "")

    def parse_known_args(  # type: ignore[override]  # its overloads add nothing here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse; what is unknown is an error here, where it is known which command it was given to."""
        self._given = list(sys.argv[1:] if args is None else args)
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end the process with the status 2."""
        meant = list(self._meant())
        hint = f". Did you mean {' and '.join(meant)}?" if meant else ""
        lines = f"{self.prog}: error: {message}{hint}\n{self.prog} --help lists all arguments, with examples."
        self.exit(2, f"{wrapped(lines)}\n")

    def _meant(self) -> Iterator[str]:
        """Find the options that are nearest to those which there are not."""
        given = takewhile(lambda word: word != "--", self._given)
        if any(action.nargs == argparse.PARSER for action in self._actions):  # the rest is for a subcommand
            given = takewhile(lambda word: word.startswith("-"), given)
        for word in given:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                yield from get_close_matches(option, self._option_string_actions, 1)
