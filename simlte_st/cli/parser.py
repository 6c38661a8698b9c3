"""A parser of commands whose help ends with examples and whose errors are short."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NoReturn

from simlte_st.cli.terminal import wrapped
from simlte_st.errors import did_you_mean


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
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            meant = did_you_mean(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}.{meant}")
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

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and end the process with status 2."""
        lines = f"{self.prog}: error: {message}\n{self.prog} --help lists all arguments, with examples."
        self.exit(2, f"{wrapped(lines)}\n")
