"""Read text files: compression, encodings, lines of bounded length, Markdown and notebooks."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from simlte_st.reading.rows import BINARY, TOO_LONG, WRONG_ENCODING, BadTextError, BrokenSourceError, Content, Reading

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED = (".gz", ".zst")

_BOMS = (  # UTF-32 first, because its mark begins with UTF-16's
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
_SHIFT = re.compile(rb"\x1b\$[@B]([!-~]*)|\x1b\([BJ]")  # to Japanese characters and back, in ISO-2022-JP
_BUFFER = 1 << 18
_ESCAPED = re.compile("[\udc80-\udcff]")  # undecodable bytes
_BLANK_LINES = re.compile(r"\n{3,}")

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*([\"']?)([^\n>|].*)\1[ \t]*$", re.MULTILINE)
_EMBEDDED = re.compile(r"data:[\w/+.-]{1,80};base64,[\w+/=]*")  # pictures embedded in Markdown
_MAX_FRONT_MATTER = 1 << 16  # characters


class Line(NamedTuple):
    """One line of a file: its number (from 1), its text and its problem, if any.

    A line in the wrong encoding keeps its text, with replacement characters, because a CSV reader must see the quotes
    in it. A line that is too long has an empty text.
    """

    number: int
    text: str
    problem: str | None = None
    detail: str = ""


def decode_text(data: bytes, encoding: str, mend: bool = False) -> str:
    """Decode a text file; a byte order mark or valid UTF-8 takes precedence over ``encoding``.

    ``mend`` replaces undecodable bytes with a replacement character.
    """
    encoding = _bom_encoding(data) or ("utf-8" if _is_utf8(data) else encoding)
    # NUL bytes in text occur only in wide encodings.
    if b"\0" in data and (encoding == "utf-8-sig" or "a\n".encode(encoding) == b"a\n"):
        raise BadTextError(BINARY, f"NUL byte at {data.index(0):,}")
    if encoding in ("iso2022_jp_ext", "euc_jp") and "\ufffd" in data.decode(encoding, "replace"):
        # Windows adds characters such as circled numbers.
        data, encoding = _SHIFT.sub(lambda match: bytes(byte | 0x80 for byte in match[1] or b""), data), "euc_jis_2004"
    try:
        text = data.decode(encoding, "replace" if mend else "strict")
    except UnicodeDecodeError as error:
        position = f"byte {error.start:,} (0x{error.object[error.start]:02x})"
        raise BadTextError(WRONG_ENCODING, f"not valid {encoding} at {position}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _bom_encoding(start: bytes) -> str | None:
    return next((encoding for mark, encoding in _BOMS if start.startswith(mark)), None)


def _is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid, non-ASCII UTF-8; text in other encodings is so only by chance."""
    with contextlib.suppress(UnicodeDecodeError):
        return not data.isascii() and b"\0" not in data and bool(data.decode("utf-8"))
    return False


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[io.BufferedReader | gzip.GzipFile | zstd.ZstdFile]:
    """Open a file, decompressing ``.gz`` and ``.zst``; errors include its path."""
    try:
        with _decompress(path) as stream:
            yield stream
    except (OSError, EOFError, zlib.error, zstd.ZstdError) as error:
        raise BrokenSourceError(f"{path} is truncated, corrupt or unreadable ({error})") from error
    except UnicodeError as error:  # in a wide encoding, where line ends cannot be found
        raise BrokenSourceError(f"{path} cannot be decoded: {error}") from error


def _decompress(path: Path) -> io.BufferedReader | gzip.GzipFile | zstd.ZstdFile:
    # No larger buffer for compressed files: its contents would be lost if the file is truncated.
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path, "rb")
    if suffix == ".zst":
        # pyarrow cannot read files made with `zstd --long=31`, as corpora often are.
        return zstd.open(path, "rb", options={zstd.DecompressionParameter.window_log_max: 31})
    return io.BufferedReader(io.FileIO(path), _BUFFER)


def read_whole(path: Path, reading: Reading) -> bytes:
    """Read a whole file."""
    pieces, size = list[bytes](), 0
    with open_bytes(path) as stream:
        while piece := stream.read(_BUFFER):  # in pieces: a single read would allocate the maximum size
            pieces.append(piece)
            size += len(piece)
            reading.check_size(size)
    return b"".join(pieces)


def read_lines(path: Path, reading: Reading) -> Iterator[Line]:
    """Yield the lines of a file, including their line endings."""
    limit, number = reading.max_bytes, 0
    with open_bytes(path) as stream:
        encoding = _bom_encoding(stream.peek(4)[:4]) or reading.encoding
        lines = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")
        while line := lines.readline(limit):
            number += 1
            if len(line) >= limit and line[-1] not in "\r\n":
                while (piece := lines.readline(limit)) and piece[-1] not in "\r\n":
                    pass
                yield Line(number, "", TOO_LONG, f"a line of more than {limit:,} characters")
            elif line.isascii() or (escaped := _ESCAPED.search(line)) is None:
                yield Line(number, line)
            else:
                detail = f"not valid {encoding} (0x{ord(escaped[0]) - 0xDC00:02x})"
                yield Line(number, _ESCAPED.sub("\ufffd", line), WRONG_ENCODING, detail)


def tidy_lines(parts: Iterable[str]) -> str:
    """Join a text's parts, removing soft hyphens, white space around lines and repeated blank lines."""
    lines = (line.strip() for line in "".join(parts).replace("\xad", "").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


def read_text(path: Path, reading: Reading) -> str:
    """Return the text of a file."""
    return decode_text(read_whole(path, reading), reading.encoding)


def read_markdown(path: Path, reading: Reading) -> Content:
    """Return the text after the front matter, which stands between two ``---`` lines, and the title in it, if any.

    As an e-mail's text begins with its subject, the text begins with the title, unless that occurs in it.
    """
    text = _EMBEDDED.sub("", read_text(path, reading))
    match = _FRONT_MATTER.match(text, 0, _MAX_FRONT_MATTER)
    field = _TITLE.search((match and match[1]) or "")
    title, text = field[2].strip() if field else "", text[match.end() :].lstrip("\n") if match else text
    return Content(text if title in text else f"{title}\n\n{text}", {"title": title} if title else {})


def read_notebook(path: Path, reading: Reading) -> str:
    """Return the text and code of a Jupyter notebook, without outputs."""
    notebook = json.loads(read_text(path, reading))
    cells = [cell for sheet in notebook.get("worksheets") or [notebook] for cell in sheet["cells"]]
    texts = ("".join(cell.get("source") or cell.get("input") or "").strip() for cell in cells)
    return _EMBEDDED.sub("", "\n\n".join(filter(None, texts)))
