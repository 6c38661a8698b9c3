"""What reaches the terminal: names, labels and messages come from other people's files, and may hold its commands."""

from __future__ import annotations

import re
from typing import Any, TextIO

_COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tab and end of line, and what reverses the direction of the text after it."""

_CURSOR = re.compile(r"(\n|\x1b\[A)*")
"""How tqdm goes from one bar to another: a write of nothing else."""


def printable(text: str) -> str:
    r"""Write what a terminal would obey as Python does: an escape as ``\x1b``."""
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


class PrintableStream:
    """A stream that shows control characters instead of sending them.

    Args:
        stream: Where the text goes; everything but writing is its own.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        return self._stream.write(text if _CURSOR.fullmatch(text) else printable(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
