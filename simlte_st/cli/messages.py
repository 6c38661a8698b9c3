"""What the command says: the library's messages in the words of the command line.

The library names parameters as Python has them, always with an equals sign: ``overwrite=True``, ``text_column=``. Here
alone they become options.
"""

from __future__ import annotations

import argparse
import logging
import re
import shlex
import sys
from collections.abc import Mapping

from simlte_st.cli.terminal import wrapped

_PARAMETER = re.compile(
    r"""(?<![\w/.\\-])(?P<name>[a-z]\w*)=(?P<value>'[^']*'|"[^"]*"|\(\d+, \d+\)|[\w.+-]*\w)?(?![\w=(])"""
)
"""A parameter in a message: ``name='value'``, ``name=3``, ``name=(2, 12)``, or ``name=`` where no value is meant."""


def in_options(text: str, flags: Mapping[str, str]) -> str:
    """Say a message in the words of the command line: ``batch_size=1`` is ``--batch-size 1`` there."""

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name not in flags:
            return match[0]
        flag = flags[name]
        if value == "True" or value is None:
            return flag
        if value in ("False", "None"):
            return flag.replace("--", "--no-", 1) if value == "False" else f"no {flag}"
        if value.startswith("("):
            return f"{flag} {value.strip('()').replace(', ', '-')}"
        return f"{flag} {shlex.quote(value[1:-1]) if value[0] in QUOTES else value}"

    return _PARAMETER.sub(option, text)


QUOTES = "'\""


def note(text: str, arguments: argparse.Namespace) -> None:
    """Print what is no result: on standard error, in the words of the command line, wrapped."""
    print(wrapped(in_options(text, arguments.flags)), file=sys.stderr)


class OptionFormatter(logging.Formatter):
    """Formats log lines in the words of the command line, wrapped."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        super().__init__("%(message)s")
        self.flags = flags

    def format(self, record: logging.LogRecord) -> str:
        """Format a line."""
        return wrapped(in_options(super().format(record), self.flags))
