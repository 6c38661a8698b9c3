"""Bytes on disk to text: compressed files, encodings, and lines that are bounded in length."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from simlte_st.errors import DataError
from simlte_st.extras import require

COMPRESSED = (".gz", ".zst")
WRONG_ENCODING = "wrong encoding"
TOO_LONG = "longer than max_characters"
BINARY = "binary"

# UTF-32 first: its little-endian mark begins with the one of UTF-16.
_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Tab, line feed, vertical tab, form feed, carriage return and escape (ISO 2022) do occur in plain text; NUL is looked
# for by itself.
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\0\t\n\v\f\r\x1b")
_CONTROL_SHARE = 0.1
_ZSTD_CHUNK = 1 << 14
_BUFFER = 1 << 18


class BrokenSourceError(DataError):
    """A source ended before its end; the reader adds how many documents came before."""


class BadTextError(Exception):
    """Bytes that do not become text; ``reason`` is the one the report counts."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason
        self.what = what


class Line(NamedTuple):
    """One line of a file: its number from 1, its text, and what is wrong with it, if anything.

    A line in the wrong encoding carries a text with replacement characters (a CSV reader must see its quotes), one
    that is too long carries an empty text.
    """

    number: int
    text: str
    problem: str | None = None
    what: str = ""


class _ZstdRaw(io.RawIOBase):
    """Decompress a zstd file. ``zstandard``'s own ``stream_reader`` takes a truncated file for a finished one."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")  # first, since close() needs it even when what follows fails
        zstandard = require("zstandard", "zstd", "reading .zst files")
        self._error: type[Exception] = zstandard.ZstdError
        # Corpora are often packed with `zstd --long=31`, beyond the window the library allows by default.
        self._decompressor: Any = zstandard.ZstdDecompressor(max_window_size=2**31)
        self._frame: Any = None
        self._packed = b""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        while not self._plain:
            packed = self._packed or self._file.read(_ZSTD_CHUNK)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the zstd file ends in the middle of a frame")
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            try:
                self._plain = memoryview(self._frame.decompress(packed))
            except self._error as error:
                raise OSError(str(error)) from error
            self._packed = b""
            if self._frame.eof:  # a file may hold several frames, one after another
                self._packed = self._frame.unused_data
                self._frame = None
        count = min(len(buffer), len(self._plain))
        buffer[:count] = self._plain[:count]
        self._plain = self._plain[count:]
        return count


def check_encoding(encoding: str) -> str:
    """Give the encoding's name without ``-sig`` (byte order marks are always removed).

    Raises:
        DataError: Python knows no text encoding of that name.
    """
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        raise DataError(
            f"There is no text encoding called {encoding!r}; try 'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
        ) from error
    return "utf-8" if codecs.lookup(encoding).name == "utf-8-sig" else encoding


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, decompressed where its name ends in ``.gz`` or ``.zst``."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        # Not wrapped in a larger buffer: when the file breaks off, what that had gathered would be lost with it.
        return cast(BinaryIO, gzip.open(path, "rb"))
    if suffix == ".zst":
        return io.BufferedReader(_ZstdRaw(path), _BUFFER)
    return path.open("rb", buffering=_BUFFER)


def _marked_encoding(start: bytes) -> str | None:
    return next((name for mark, name in _BOMS if start.startswith(mark)), None)


def _wrong(error: UnicodeDecodeError) -> str:
    return f"not valid {error.encoding} at byte {error.start:,} (0x{error.object[error.start]:02x})"


def _ascii_compatible(encoding: str) -> bool:
    return encoding == "utf-8-sig" or "a\n".encode(encoding) == b"a\n"


def decode_text(data: bytes, encoding: str) -> str:
    """Decode a whole text file: byte order marks are obeyed and removed, line ends become line feeds.

    Args:
        data: The file's bytes.
        encoding: The encoding of a file without a byte order mark.

    Raises:
        BadTextError: The bytes are not in the encoding, or are no text at all.
    """
    marked = _marked_encoding(data[:4])
    narrow = marked in (None, "utf-8-sig") and _ascii_compatible(marked or encoding)
    # NUL bytes never occur in text, except in encodings where they are half of a letter.
    if narrow and b"\0" in data:
        raise BadTextError(BINARY, f"NUL byte at {data.index(0):,}")
    text, problem = "", None
    try:
        text = data.decode(marked or encoding)
    except UnicodeDecodeError as error:
        problem = _wrong(error)
    plain = data if narrow or problem else text.encode("utf-8")
    share = (len(plain) - len(plain.translate(None, _CONTROLS))) / max(len(plain), 1)
    if share > _CONTROL_SHARE:
        raise BadTextError(BINARY, f"{share:.0%} control characters")
    if problem:
        raise BadTextError(WRONG_ENCODING, problem)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _byte_lines(stream: BinaryIO, encoding: str, bound: int) -> Iterator[Line]:
    number = 0
    while data := stream.readline(bound):
        number += 1
        if number == 1 and data.startswith(codecs.BOM_UTF8):
            data = data[len(codecs.BOM_UTF8) :]
        if len(data) >= bound and not data.endswith(b"\n"):
            while (rest := stream.readline(bound)) and not rest.endswith(b"\n"):
                pass
            yield Line(number, "", TOO_LONG, f"a line of more than {bound:,} bytes")
            continue
        try:
            yield Line(number, data.decode(encoding))
        except UnicodeDecodeError as error:
            yield Line(number, data.decode(encoding, "replace"), WRONG_ENCODING, _wrong(error))


def _wide_lines(stream: BinaryIO, encoding: str, bound: int) -> Iterator[Line]:
    # In UTF-16 and UTF-32 a line feed byte is not a line end, so the stream is decoded before it is cut into lines.
    errors = "surrogatepass" if encoding.lower().startswith("utf") else "strict"
    with io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="\n") as text:
        number = 0
        while line := text.readline(bound):
            number += 1
            if len(line) >= bound and not line.endswith("\n"):
                while (rest := text.readline(bound)) and not rest.endswith("\n"):
                    pass
                yield Line(number, "", TOO_LONG, f"a line of more than {bound:,} characters")
                continue
            yield Line(number, line)


def read_lines(path: Path, encoding: str, max_characters: int) -> Iterator[Line]:
    """Stream the lines of a file, line ends kept, whatever is wrong with single ones.

    Args:
        path: A plain, ``.gz`` or ``.zst`` file.
        encoding: The encoding of a file without a byte order mark.
        max_characters: Length of the longest text wanted; a line that can only hold a longer one is not kept.

    Yields:
        Every line, the bad ones with their ``problem``.

    Raises:
        BrokenSourceError: The file cannot be read to its end.
    """
    # A character outside the basic plane takes 12 bytes as JSON escapes; the spare megabyte is for other columns.
    bound = 12 * max_characters + (1 << 20)
    try:
        with open_bytes(path) as stream:
            marked = _marked_encoding(stream.peek(4)[:4])  # type: ignore[attr-defined]
            if marked == "utf-8-sig":
                yield from _byte_lines(stream, "utf-8", bound)
            elif marked is None and _ascii_compatible(encoding):
                yield from _byte_lines(stream, encoding, bound)
            else:
                yield from _wide_lines(stream, marked or encoding, bound)
    except (OSError, EOFError, zlib.error) as error:
        raise BrokenSourceError(f"{path} is truncated, corrupt or unreadable ({error})") from error
    except UnicodeDecodeError as error:
        raise BrokenSourceError(f"{path} cannot be decoded: {_wrong(error)}") from error
