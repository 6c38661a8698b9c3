"""How commands are parsed: help that ends with examples, errors that are short."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NoReturn

from simlte_st.cli.terminal import wrapped
from simlte_st.errors import did_you_mean
from simlte_st.files import valid_unicode


def utf8_words(words: Sequence[str]) -> list[str]:
    """Mend words of a command line that are no UTF-8, as the texts of documents are mended, and say so.

    A word that names a file or folder, or something in a folder that there is, stays as it is: that is how it is
    found.
    """
    mended = []
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        folder = os.path.dirname(value)
        names_a_place = os.path.lexists(value) or (folder != "" and os.path.isdir(folder))
        text = value if names_a_place else valid_unicode(value)
        if text != value:
            print(wrapped(f"simlte: {value!r} is no UTF-8; it is taken as {text!r}."), file=sys.stderr)
        mended.append(f"{option}{equals}{text}")
    return mended


class CommandParser(argparse.ArgumentParser):
    """A parser whose help ends with examples, and whose errors are two lines instead of a page of usage.

    The parsers of its subcommands are of this class too.
    """

    def __init__(
        self, *arguments: Any, examples: Sequence[str] = (), parameters: Mapping[str, str] = MappingProxyType({}),
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(*arguments, **{"allow_abbrev": False, **options})
        self.examples = tuple(examples)
        self.parameters = dict(parameters)
        self._words: list[str] = []

    def format_help(self) -> str:
        """Write the help, with the examples at its end."""
        shown = "".join(f"  {line}\n" for line in self.examples)
        return super().format_help() + (f"\nexamples:\n{shown}" if shown else "")

    def parse_known_args(  # type: ignore[override]  # its overloads add nothing here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse; what is unknown is an error here, where it is known which command it was given to.

        The namespace has ``flags`` too: those of the command that was named.
        """
        self._words = list(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if not hasattr(parsed, "flags"):  # a subcommand has set its own
            parsed.flags = self.flags()
        return parsed, unknown

    def flags(self) -> dict[str, str]:
        """Tell what the command calls each parameter of the library: an option, or the name of an argument."""
        flags = {
            action.dest: action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)
            for action in self._actions
            if action.nargs != argparse.PARSER
        }
        return flags | self.parameters

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Check a choice; the nearest one is named where it is none."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = did_you_mean(str(value), map(str, action.choices or ()))
            error.message += f".{meant}" if meant else ""
            raise

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end the process with the status 2."""
        meant = list(self._meant())
        hint = f". Did you mean {' and '.join(meant)}?" if meant else ""
        lines = f"{self.prog}: error: {message}{hint}\n{self.prog} --help lists all arguments, with examples."
        self.exit(2, f"{wrapped(lines)}\n")

    def _meant(self) -> Iterator[str]:
        """Find the options that are nearest to those which there are not."""
        words = takewhile(lambda word: word != "--", self._words)
        if any(action.nargs == argparse.PARSER for action in self._actions):  # the rest is for a subcommand
            words = takewhile(lambda word: word.startswith("-"), words)
        for word in words:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                yield from get_close_matches(option, self._option_string_actions, 1)
