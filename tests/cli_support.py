"""The parsers of all commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from simlte_st.cli.parser import CommandParser


def parsers(parser: CommandParser) -> Iterator[CommandParser]:
    """Yield a parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)
