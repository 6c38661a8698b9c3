"""Text for the terminal: wrapped to its width, and without control characters, which documents may contain."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from typing import Any, TextIO

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and line ends, characters that change the direction of text, and lone surrogates."""

_NOT_ASCII = re.compile(r"[^\n -~]")

_CURSOR = re.compile(r"(\n|\x1b\[A)*")
"""What tqdm writes, and nothing else, to move from one bar to another."""


def printable(text: str) -> str:
    r"""Return a text with control characters as Python writes them, such as ``\x1b``."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def as_json(text: str) -> str:
    """Return JSON in which a terminal finds no control characters, and no characters that its encoding lacks."""
    escaped = UNPRINTABLE if _holds_everything(sys.stdout) else _NOT_ASCII
    return escaped.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _holds_everything(stream: TextIO) -> bool:
    return (stream.encoding or "utf").lower().startswith("utf")


class PrintableStream:
    """A stream that shows control characters, and characters that its encoding lacks, instead of sending them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        shown = text if _CURSOR.fullmatch(text) else printable(text)
        if not _holds_everything(self._stream):
            encoding = self._stream.encoding
            shown = shown.encode(encoding, "replace").decode(encoding)
        return self._stream.write(shown)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def terminal_width() -> int:
    """Return the columns of the terminal, at least 40; 80 without a terminal."""
    return max(40, shutil.get_terminal_size().columns)


def wrapped(text: str) -> str:
    """Return a text whose lines are broken at spaces to the width of the terminal.

    Tables, indented lines such as code, and lines with tabs stay as they are.
    """
    width = terminal_width()
    lines = []
    for line in text.split("\n"):
        laid_out = line.startswith("|") or "\t" in line or line.startswith(" ")
        if laid_out or len(line) <= width:
            lines.append(line)
        else:
            settings: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
            lines += textwrap.wrap(line, width, **settings)
    return "\n".join(lines)
