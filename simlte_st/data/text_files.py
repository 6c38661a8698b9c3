"""Text files: compression, encodings, lines of bounded length, and Markdown with front matter."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import yaml

from simlte_st.data.rows import BINARY, TOO_LONG, WRONG_ENCODING, BadTextError, BrokenSourceError, Reading

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED = (".gz", ".zst")

_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_BUFFER = 1 << 18
_LINE_ENDS = ("\n", b"\n")
_BLANK_LINES = re.compile(r"\n{3,}")

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST = 1 << 16  # characters of front matter
_VALUES = (str, int, float, date)  # and bool and datetime, which are such


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file; the kinds and names of the parts that are not in it; the values of its headers."""

    text: str
    left_out: tuple[tuple[str, str], ...] = ()
    columns: Mapping[str, Any] = field(default_factory=dict)


class Line(NamedTuple):
    """One line of a file: its number from 1, its text, and the problem with it, if any.

    The text of a line in the wrong encoding has replacement characters (a CSV reader must see its quotes); that of a
    line that is too long is empty.
    """

    number: int
    text: str
    problem: str | None = None
    what: str = ""


def decode_text(data: bytes, encoding: str) -> str:
    """Decode a whole text file: a byte order mark or valid UTF-8 goes before the encoding."""
    marked = _marked_encoding(data)
    if marked is None and _is_utf8(data):
        encoding = "utf-8"
    # NUL bytes do not occur in text, except as parts of letters in wide encodings.
    if marked in (None, "utf-8-sig") and _ascii_compatible(marked or encoding) and b"\0" in data:
        raise BadTextError(BINARY, f"NUL byte at {data.index(0):,}")
    try:
        text = data.decode(marked or encoding)
    except UnicodeDecodeError as error:
        raise BadTextError(WRONG_ENCODING, _wrong(error, marked or encoding)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _marked_encoding(start: bytes) -> str | None:
    return next((name for mark, name in _MARKS if start.startswith(mark)), None)


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8 beyond ASCII, which other encodings produce only by chance."""
    if data.isascii() or b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _ascii_compatible(encoding: str) -> bool:
    return encoding == "utf-8-sig" or "a\n".encode(encoding) == b"a\n"


def _wrong(error: UnicodeDecodeError, encoding: str) -> str:
    return f"not valid {encoding} at byte {error.start:,} (0x{error.object[error.start]:02x})"


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed if its name ends in ``.gz`` or ``.zst``; name it in the error if it is broken."""
    try:
        with _unpacked(path) as stream:
            yield stream
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise BrokenSourceError(f"{path} is truncated, corrupt or unreadable ({error})") from error
    except UnicodeError as error:  # of a wide encoding, whose lines cannot be told apart
        raise BrokenSourceError(f"{path} cannot be decoded: {error}") from error


def _unpacked(path: Path) -> BinaryIO:
    # Not wrapped in a larger buffer, whose content would be lost when the file breaks off.
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        # Corpora are often packed with `zstd --long=31`, whose window pyarrow does not read.
        return cast(BinaryIO, zstd.open(path, "rb", options={zstd.DecompressionParameter.window_log_max: 31}))
    return path.open("rb", buffering=_BUFFER)


def read_whole(path: Path, reading: Reading) -> bytes:
    """Read a file that is not read line by line."""
    pieces, size = list[bytes](), 0
    with open_bytes(path) as stream:
        while piece := stream.read(_BUFFER):  # a read of all would allocate as much as the bound
            pieces.append(piece)
            size += len(piece)
            if size > reading.most_bytes:
                raise BadTextError(TOO_LONG, f"more than {reading.most_bytes:,} bytes")
    return b"".join(pieces)


def read_lines(path: Path, reading: Reading) -> Iterator[Line]:
    """Stream the lines of a file, with their line ends; a line's ``problem`` says why it has no text."""
    with open_bytes(path) as stream:
        marked = _marked_encoding(stream.peek(4)[:4])  # type: ignore[attr-defined]
        if marked == "utf-8-sig" or (marked is None and _ascii_compatible(reading.encoding)):
            yield from _lines(stream, "utf-8" if marked else reading.encoding, reading.most_bytes)
            return
        # In UTF-16 a line feed byte is not a line end, so the stream is decoded before it is cut into lines.
        text = io.TextIOWrapper(stream, encoding=marked or reading.encoding, newline="\n")
        yield from _lines(text, marked or reading.encoding, reading.most_bytes)


def _lines(stream: BinaryIO | io.TextIOWrapper, encoding: str, bound: int) -> Iterator[Line]:
    """Number and decode the lines of a stream; nothing is kept of one longer than the bound."""
    number = 0
    while line := stream.readline(bound):
        number += 1
        if len(line) >= bound and line[-1:] not in _LINE_ENDS:
            while (rest := stream.readline(bound)) and rest[-1:] not in _LINE_ENDS:
                pass
            yield Line(number, "", TOO_LONG, f"a line of more than {bound:,} bytes")
        elif isinstance(line, str):
            yield Line(number, line)
        else:
            data = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            try:
                yield Line(number, data.decode(encoding))
            except UnicodeDecodeError as error:
                yield Line(number, data.decode(encoding, "replace"), WRONG_ENCODING, _wrong(error, encoding))


def tidy_lines(parts: Iterable[str]) -> str:
    """Join the parts of a text, without soft hyphens, white space around lines and runs of blank lines."""
    lines = (line.strip() for line in "".join(parts).replace("\xad", "").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def read_text(path: Path, reading: Reading) -> FileText:
    """Return the text of a file."""
    return FileText(decode_text(read_whole(path, reading), reading.encoding))


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Without aliases, by which a few lines can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def read_markdown(path: Path, reading: Reading) -> FileText:
    """Return the text below the front matter, YAML between two lines ``---``; all of it where that is not a mapping.

    Numbers, dates and text are values of columns, and lists of them are joined; other values are not read.
    """
    whole = read_text(path, reading)
    if (match := _FRONT_MATTER.match(whole.text, 0, _LONGEST)) is None:
        return whole
    try:
        values = yaml.load(match[1] or "", _Loader)
    except Exception:  # YAML errors, and ValueError of impossible dates
        return whole
    if not isinstance(values, dict):
        return whole
    columns = {str(name): kept for name, value in values.items() if (kept := _front_value(value)) is not None}
    return FileText(whole.text[match.end() :].lstrip("\n"), columns=columns)


def _front_value(value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value if isinstance(each, _VALUES)) or None
    return value if isinstance(value, _VALUES) else None
