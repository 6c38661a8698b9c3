"""Prepare text for the terminal: wrap it, escape control characters, and replace parameters with options."""

from __future__ import annotations

import json
import logging
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from simlte_st.files import standard_input, valid_unicode

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and line ends, characters that change the direction of text, and lone surrogates."""

_NOT_ASCII = re.compile(r"[^\n -~]")

_CURSOR = re.compile(r"(\n|\x1b\[A)*")
"""Output of tqdm that only moves the cursor between bars."""

_PARAMETER = re.compile(r"""(?<![\w/.\\-])(?P<name>[a-z]\w*)=(?P<value>'[^']*'|"[^"]*"|[\w.+-]*\w)?(?![\w=(])""")
"""A parameter in a message: ``name='value'``, ``name=3``, or ``name=`` without a value."""

_QUOTES = "'\""


def printable(text: str) -> str:
    r"""Return a text with control characters escaped as in Python, such as ``\x1b``."""
    return UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def as_json(text: str) -> str:
    """Escape control characters in JSON, and characters missing from the terminal's encoding."""
    pattern = UNPRINTABLE if _is_unicode(sys.stdout) else _NOT_ASCII
    return pattern.sub(lambda match: json.dumps(match[0])[1:-1], text)


def _is_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "utf").lower().startswith("utf")


class PrintableStream:
    """A stream that escapes control characters and replaces characters missing from its encoding."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        text = text if _CURSOR.fullmatch(text) else printable(text)
        if not _is_unicode(self._stream):
            text = text.encode(self._stream.encoding, "replace").decode(self._stream.encoding)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def with_lines(words: Iterable[str]) -> Iterator[str]:
    """Yield words, replacing ``-`` with the non-empty lines of standard input."""
    for word in words:
        lines = (line.decode("utf-8-sig", "replace").strip() for line in (standard_input() if word == "-" else ()))
        yield from filter(None, lines) if word == "-" else [valid_unicode(word)]


def terminal_width() -> int:
    """Return the width of the terminal: at least 40 columns, or 80 if there is no terminal."""
    return max(40, shutil.get_terminal_size().columns)


def wrap_text(text: str) -> str:
    """Wrap a text at spaces to the width of the terminal.

    Tables, indented lines such as code, and lines with tabs stay unchanged.
    """
    width = terminal_width()

    def wrap_line(line: str) -> str:
        if len(line) <= width or line.startswith(("|", " ")) or "\t" in line:
            return line
        return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)

    return "\n".join(map(wrap_line, text.split("\n")))


def crop_line(text: str, width: int) -> str:
    """Return the start of a text as one line of at most ``width`` characters."""
    line = " ".join(text[: 4 * width].split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def in_options(text: str, flags: Mapping[str, str]) -> str:
    """Replace parameters in a message with options: ``batch_size=1`` becomes ``--batch-size 1``.

    The library writes parameters as in Python, always with an equals sign: ``overwrite=True``, ``text_column=``.
    """

    def to_option(match: re.Match[str]) -> str:
        flag, value = flags.get(match["name"]), match["value"]
        if flag is None or value in ("True", None):
            return flag or match[0]
        if value == "False":
            return flags.get(match[0]) or flag.replace("--", "--no-", 1)
        return f"{flag} {shlex.quote(value.strip(_QUOTES))}"

    return _PARAMETER.sub(to_option, text)


class OptionFormatter(logging.Formatter):
    """Wraps log lines and replaces parameters in them with options."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        super().__init__("%(message)s")
        self.flags = flags

    def format(self, record: logging.LogRecord) -> str:
        """Format a line."""
        return wrap_text(in_options(super().format(record), self.flags))
