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

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tab, line feed, vertical tab, form feed, carriage return and escape (ISO 2022) do occur in plain text; NUL has a
# check of its own.
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\0\t\n\v\f\r\x1b")
_CONTROL_SHARE = 0.1
_BUFFER = 1 << 18
_LINE_ENDS = ("\n", b"\n")
_BROKEN = (OSError, EOFError, zlib.error, zstd.ZstdError)


class BrokenSourceError(DataError):
    """A source that breaks off; the reader adds the number of documents read before, and the advice."""

    advice = "Download or create it again."


class ChangedSourceError(BrokenSourceError):
    """A source that was written to while it was read, so that its beginning and its end do not belong together."""

    advice = "Run it again when nothing writes to it, or on a copy."


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


@contextlib.contextmanager
def unchanged(path: Path, stream: BinaryIO) -> Iterator[None]:
    """Check at the end that nothing was written to an open file. One that another has replaced is read as it was."""
    before, broken = file_version(stream.fileno()), None
    try:
        yield
    except Exception as error:
        broken = error
    if file_version(stream.fileno()) != before:
        raise ChangedSourceError(f"{path} changed while it was read") from broken
    if broken is not None:
        raise broken


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


def _is_utf8(data: bytes, whole: bool = True) -> bool:
    """Return whether bytes are valid UTF-8 beyond ASCII, which other encodings produce only by chance.

    Unless they are a whole text, the last letter may be incomplete.
    """
    if data.isascii() or b"\0" in data:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=whole)
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
    text, problem = "", None
    try:
        text = data.decode(marked or encoding)
    except UnicodeDecodeError as error:
        problem = _wrong(error, marked or encoding)
    plain = data if narrow or problem else text.encode("utf-8")
    share = (len(plain) - len(plain.translate(None, _CONTROLS))) / max(len(plain), 1)
    if share > _CONTROL_SHARE:
        raise BadTextError(BINARY, f"{share:.0%} control characters")
    if problem:
        raise BadTextError(WRONG_ENCODING, problem)
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


def read_whole(path: Path, encoding: str, max_characters: int) -> str:
    """Read a text file that cannot be read line by line."""
    bound = _longest(max_characters)
    with open_bytes(path) as stream:
        data = stream.read(bound + 1)
    if len(data) > bound:
        raise BadTextError(TOO_LONG, f"more than {bound:,} bytes")
    return decode_text(data, encoding)


def _longest(max_characters: int) -> int:
    # A character outside the basic plane takes 12 bytes as JSON escapes; the spare megabyte is for other columns.
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
    """Open a file, decompressed; name it in the error if it is broken, or changes meanwhile."""
    with _naming(path), _open_bytes(path) as stream, unchanged(path, stream):
        yield stream


def _looks(path: Path, encoding: str) -> tuple[str, bool]:
    """Return a file's encoding, and whether its lines end in carriage returns alone, from its beginning.

    It is UTF-8, whatever encoding was asked for, if the first piece with letters beyond ASCII is valid UTF-8.
    """
    start = data = b""
    with contextlib.suppress(*_BROKEN), _open_bytes(path) as stream:  # reading it tells what is wrong
        pieces = iter(lambda: stream.read1(_BUFFER), b"")  # type: ignore[attr-defined]
        start = data = next(pieces, b"")
        while data and data.isascii() and codecs.lookup(encoding).name != "utf-8":
            data = next(pieces, b"")
    return "utf-8" if _is_utf8(data, whole=False) else encoding, b"\r" in start and b"\n" not in start


def read_lines(path: Path, encoding: str, max_characters: int) -> Iterator[Line]:
    """Stream the lines of a file, with their line ends; what is wrong with a line is told by its ``problem``."""
    bound = _longest(max_characters)
    encoding, returns = _looks(path, encoding)
    with open_bytes(path) as stream:
        marked = _marked_encoding(stream.peek(4)[:4])  # type: ignore[attr-defined]
        if marked == "utf-8-sig" or (marked is None and _ascii_compatible(encoding) and not returns):
            yield from _lines(stream, "utf-8" if marked else encoding, bound)
            return
        # In UTF-16 and UTF-32 a line feed byte is not a line end, so the stream is decoded before it is cut into lines;
        # carriage returns as line ends (newline=None) become line feeds.
        encoding = marked or encoding
        errors = "surrogatepass" if encoding.lower().startswith("utf") else "strict"
        newline = None if returns else "\n"
        text = io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline=newline)
        yield from _lines(text, encoding, bound)
        text.detach()  # the stream is still asked whether it has changed
