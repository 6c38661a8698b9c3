"""Text files on disk: compression, encodings, and lines of bounded length."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from simlte_st.errors import DataError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED = (".gz", ".zst")
WRONG_ENCODING = "wrong encoding"
TOO_LONG = "too long"
BINARY = "binary"

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BUFFER = 1 << 18
_LINE_ENDS = ("\n", b"\n")
_BROKEN = (OSError, EOFError, zlib.error, zstd.ZstdError)


class BrokenSourceError(DataError):
    """A source that breaks off; the reader adds the number of documents read before."""


class BadTextError(Exception):
    """Bytes that are not text; its arguments are the reason for the report, and details."""


class Line(NamedTuple):
    """One line of a file: its number from 1, its text, and what is wrong with it, if anything.

    The text of a line in the wrong encoding has replacement characters (a CSV reader must see its quotes); that of a
    line that is too long is empty.
    """

    number: int
    text: str
    problem: str | None = None
    what: str = ""


def file_version(file: str | Path | int) -> tuple[int, int] | None:
    """Return the size and the time of the last change of a file or open file; None if it is not a file here."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def check_encoding(encoding: str) -> str:
    """Return the encoding's name without ``-sig`` (byte order marks are always removed)."""
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        raise DataError(
            f"There is no text encoding called {encoding!r}; try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
        ) from error
    return "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding


def _open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed if its name ends in ``.gz`` or ``.zst``."""
    # Not wrapped in a larger buffer, whose content would be lost when the file breaks off.
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        # Corpora are often packed with `zstd --long=31`, whose window pyarrow does not read.
        return cast(BinaryIO, zstd.open(path, "rb", options={zstd.DecompressionParameter.window_log_max: 31}))
    return path.open("rb", buffering=_BUFFER)


def _marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a file's first four bytes mark, if they do."""
    return next((name for mark, name in _BOMS if start.startswith(mark)), None)


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8 beyond ASCII, which other encodings produce only by chance."""
    if data.isascii() or b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _wrong(error: UnicodeDecodeError, encoding: str | None = None) -> str:
    # Python calls all encodings with a table of 256 letters "charmap".
    return f"not valid {encoding or error.encoding} at byte {error.start:,} (0x{error.object[error.start]:02x})"


def _ascii_compatible(encoding: str) -> bool:
    return encoding == "utf-8-sig" or "a\n".encode(encoding) == b"a\n"


def decode_text(data: bytes, encoding: str) -> str:
    """Decode a whole text file: a byte order mark decides and is removed, line ends become line feeds."""
    marked = _marked_encoding(data[:4])
    if marked is None and _is_utf8(data):
        encoding = "utf-8"
    narrow = marked in (None, "utf-8-sig") and _ascii_compatible(marked or encoding)
    # NUL bytes do not occur in text, except as parts of letters in wide encodings.
    if narrow and b"\0" in data:
        raise BadTextError(BINARY, f"NUL byte at {data.index(0):,}")
    try:
        text = data.decode(marked or encoding)
    except UnicodeDecodeError as error:
        raise BadTextError(WRONG_ENCODING, _wrong(error, marked or encoding)) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lines(stream: BinaryIO | io.TextIOWrapper, encoding: str, bound: int) -> Iterator[Line]:
    """Number and decode the lines of a stream; nothing is kept of one longer than the bound."""
    number = 0
    while line := stream.readline(bound):
        number += 1
        if len(line) >= bound and line[-1:] not in _LINE_ENDS:
            while (rest := stream.readline(bound)) and rest[-1:] not in _LINE_ENDS:
                pass
            unit = "characters" if isinstance(line, str) else "bytes"
            yield Line(number, "", TOO_LONG, f"a line of more than {bound:,} {unit}")
        elif isinstance(line, str):
            yield Line(number, line)
        else:
            data = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            try:
                yield Line(number, data.decode(encoding))
            except UnicodeDecodeError as error:
                yield Line(number, data.decode(encoding, "replace"), WRONG_ENCODING, _wrong(error, encoding))


def read_whole(path: Path, max_characters: int) -> bytes:
    """Read a file that is not read line by line."""
    bound = most_bytes(max_characters)
    pieces: list[bytes] = []
    with open_bytes(path) as stream:
        while piece := stream.read(_BUFFER):  # a read of all would allocate as much as the bound
            pieces.append(piece)
            bound -= len(piece)
            if bound < 0:
                raise BadTextError(TOO_LONG, f"more than {most_bytes(max_characters):,} bytes")
    return b"".join(pieces)


def most_bytes(max_characters: int) -> int:
    """Return the bytes of the longest file, line or mail that is read."""
    # A character outside the basic plane takes 12 bytes as JSON escapes; the spare megabyte is for what is not text.
    return 12 * max_characters + (1 << 20)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in the error if it cannot be read."""
    try:
        yield
    except _BROKEN as error:
        raise BrokenSourceError(f"{path} is truncated, corrupt or unreadable ({error})") from error
    except UnicodeError as error:  # not a UnicodeDecodeError for UTF-16 and UTF-32 without their marks
        problem = _wrong(error) if isinstance(error, UnicodeDecodeError) else str(error)
        raise BrokenSourceError(f"{path} cannot be decoded: {problem}") from error


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed; name it in the error if it is broken."""
    with _naming(path), _open_bytes(path) as stream:
        yield stream


def read_lines(path: Path, encoding: str, max_characters: int) -> Iterator[Line]:
    """Stream the lines of a file, with their line ends; what is wrong with a line is told by its ``problem``."""
    bound = most_bytes(max_characters)
    with open_bytes(path) as stream:
        marked = _marked_encoding(stream.peek(4)[:4])  # type: ignore[attr-defined]
        if marked == "utf-8-sig" or (marked is None and _ascii_compatible(encoding)):
            yield from _lines(stream, "utf-8" if marked else encoding, bound)
            return
        # In UTF-16 a line feed byte is not a line end, so the stream is decoded before it is cut into lines.
        text = io.TextIOWrapper(stream, encoding=marked or encoding, newline="\n")
        yield from _lines(text, marked or encoding, bound)
