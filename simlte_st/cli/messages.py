"""Messages of the library as the command line prints them.

The library names parameters as Python does, always with an equals sign: ``overwrite=True``, ``text_column=``. Only
here do they become options.
"""

from __future__ import annotations

import argparse
import logging
import re
import shlex
import sys
from collections.abc import Mapping

from simlte_st.cli.terminal import wrapped

_PARAMETER = re.compile(r"""(?<![\w/.\\-])(?P<name>[a-z]\w*)=(?P<value>'[^']*'|"[^"]*"|[\w.+-]*\w)?(?![\w=(])""")
"""A parameter in a message: ``name='value'``, ``name=3``, or ``name=`` where no value is meant."""


def in_options(text: str, flags: Mapping[str, str]) -> str:
    """Return a message with options in place of parameters: ``--batch-size 1`` for ``batch_size=1``."""

    def option(match: re.Match[str]) -> str:
        name, value = match["name"], match["value"]
        if name not in flags:
            return match[0]
        flag = flags[name]
        if value == "True" or value is None:
            return flag
        if value == "False":
            return flags.get(f"{name}=False") or flag.replace("--", "--no-", 1)
        return f"{flag} {shlex.quote(value.strip(QUOTES))}"

    return _PARAMETER.sub(option, text)


def note(text: str, arguments: argparse.Namespace) -> None:
    """Print a message on standard error, with options in place of parameters, wrapped."""
    print(wrapped(in_options(text, arguments.flags)), file=sys.stderr)


QUOTES = "'\""


class OptionFormatter(logging.Formatter):
    """Formats log lines with options in place of parameters, wrapped."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        super().__init__("%(message)s")
        self.flags = flags

    def format(self, record: logging.LogRecord) -> str:
        """Format a line."""
        return wrapped(in_options(super().format(record), self.flags))
