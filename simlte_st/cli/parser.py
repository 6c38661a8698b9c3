"""A parser of commands whose help ends with examples and whose errors are short."""

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
    """Return the words of a command line as valid UTF-8, repaired like texts of documents, with a note on each repair.

    Paths of existing files or folders, or into existing folders, stay as they are, or they would not be found.
    """
    valid = []
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        folder = os.path.dirname(value)
        is_path = os.path.lexists(value) or (folder != "" and os.path.isdir(folder))
        text = value if is_path else valid_unicode(value)
        if text != value:
            print(wrapped(f"simlte: {value!r} is not UTF-8; it is read as {text!r}."), file=sys.stderr)
        valid.append(f"{option}{equals}{text}")
    return valid


class CommandParser(argparse.ArgumentParser):
    """A parser whose help ends with examples, and whose errors are two lines instead of a page of usage.

    The parsers of subcommands have the same class. ``parameters`` are options of this command by the names of the
    library's parameters that messages mention, where the option's own destination has another name.
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
        """Return the help with the examples at its end."""
        shown = "".join(f"  {line}\n" for line in self.examples)
        return super().format_help() + (f"\nexamples:\n{shown}" if shown else "")

    def parse_known_args(  # type: ignore[override]  # its overloads add nothing here
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse, and end with an error on unknown arguments here, where the command they were given to is known.

        The namespace also has the ``flags`` of the command that was named.
        """
        self._words = list(sys.argv[1:] if args is None else args)
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        if not hasattr(parsed, "flags"):  # a subcommand has set its own
            parsed.flags = self.flags()
        return parsed, unknown

    def flags(self) -> dict[str, str]:
        """Return the option or positional argument of each parameter of the library, and what makes it False."""
        flags = {
            action.dest: action.option_strings[0] if action.option_strings else str(action.metavar or action.dest)
            for action in self._actions
            if action.nargs != argparse.PARSER
        }
        negative = (action for action in self._actions if action.const is False)
        return flags | {f"{action.dest}=False": action.option_strings[0] for action in negative} | self.parameters

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error that suggests the nearest choice."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = did_you_mean(str(value), map(str, action.choices or ()))
            error.message += f".{meant}" if meant else ""
            raise

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and end the process with status 2."""
        meant = list(self._meant())
        hint = f". Did you mean {' and '.join(meant)}?" if meant else ""
        lines = f"{self.prog}: error: {message}{hint}\n{self.prog} --help lists all arguments, with examples."
        self.exit(2, f"{wrapped(lines)}\n")

    def _meant(self) -> Iterator[str]:
        """Yield the options nearest to unknown ones."""
        words = takewhile(lambda word: word != "--", self._words)
        if any(action.nargs == argparse.PARSER for action in self._actions):  # the rest belongs to a subcommand
            words = takewhile(lambda word: word.startswith("-"), words)
        for word in words:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in self._option_string_actions:
                yield from get_close_matches(option, self._option_string_actions, 1)
