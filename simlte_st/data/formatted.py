"""The text of HTML, PDF and DOCX files, by the libraries of the extra ``documents``.

lxml, pypdf and python-docx: each is small, well kept and made for one of these, and none fetches or runs anything.
"""

from __future__ import annotations

import codecs
import logging
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.streams import TOO_LONG, BadTextError, decode_text, marked_encoding
from simlte_st.extras import require

EXTRA = "documents"
DAMAGED = "damaged"
ENCRYPTED = "encrypted"
UNPACKS = "unpacking to far more than text does"
NO_TEXT = "without text (scanned?)"
MISSING_EXTRA = f'not readable without the extra {EXTRA}: pip install "simlte-st[{EXTRA}]"'

# Bytes, below which a file is unpacked however it is packed; its tree takes 30 times as much memory.
_LARGE = 20_000_000
_MOST_PACKED = 100  # times smaller than what it unpacks to

_HTML_SPACE = re.compile(r"[ \t\n\f\r]+")
_BLANK_LINES = re.compile(r"\n{3,}")
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_META_BYTES = 1024  # the standard says that it stands among the first of them
_UNSEEN = {
    "head", "script", "style", "template", "noscript", "nav", "svg", "math", "object", "iframe", "select", "button"
}  # fmt: skip
_BLOCKS = (
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li",
    "main", "ol", "p", "pre", "section", "summary", "table", "tr", "ul",
)  # fmt: skip
_BREAKS = {**dict.fromkeys(_BLOCKS, "\n\n"), "br": "\n", "td": " ", "th": " "}
"""What stands before and after the text of a tag."""


def require_reader(suffix: str) -> Callable[[Path, str, int], str]:
    """Give what extracts the text of files of a suffix of :data:`FORMATTED_SUFFIXES`.

    Raises:
        MissingExtraError: Its library is not installed.
    """
    module, reader = _READERS[suffix]
    require(module, EXTRA, f"reading {suffix} files")
    return reader


def formatted_text(path: Path, encoding: str, max_characters: int) -> str:
    """Extract the text of a file, its paragraphs a blank line apart.

    Args:
        path: A file whose suffix is one of :data:`FORMATTED_SUFFIXES`.
        encoding: The encoding of HTML that names none.
        max_characters: Longest text wanted; of a longer one, what is given is longer too, but not all of it.

    Raises:
        BadTextError: It is damaged, encrypted, holds no text, or would unpack to far more than text does.
        MissingExtraError: The library for it is not installed.
        OSError: It cannot be read.
    """
    read = require_reader(path.suffix.lower())
    try:
        return read(path, encoding, max_characters)
    except (BadTextError, OSError):
        raise
    except Exception as error:  # of a damaged file the libraries raise whatever they stumble over
        raise BadTextError(DAMAGED, f"{type(error).__name__}: {error}") from error


def _paragraphs(parts: Iterator[str]) -> str:
    lines = (line.strip() for line in "".join(parts).split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()


# HTML


def _html_text(path: Path, encoding: str, max_characters: int) -> str:
    """Give what a browser shows, but menus: inline tags do not part words, blocks are paragraphs."""
    from lxml import etree

    # Markup may be most of a page; the bound is that of a line of JSON.
    if (size := path.stat().st_size) > 12 * max_characters + (1 << 20):
        raise BadTextError(TOO_LONG, f"{size:,} bytes")
    data = path.read_bytes()
    text = decode_text(data, _html_encoding(data, encoding))
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    parser.feed(b"<html>")  # so that there is a root, whatever comes
    parser.feed(text.encode("utf-8", "replace"))
    root = parser.close()
    for error in parser.feed_error_log.filter_from_fatals():  # tags in thousands of others: the rest is not in the tree
        raise BadTextError(DAMAGED, error.message)
    return _paragraphs(_html_parts(etree, root))


def _html_parts(etree: Any, root: Any) -> Iterator[str]:
    walker = etree.iterwalk(root, events=("start", "end"))
    verbatim = 0
    for event, node in walker:
        tag, start = node.tag, event == "start"
        if start and tag in _UNSEEN:
            walker.skip_subtree()
            continue
        if tag == "pre":
            verbatim += 1 if start else -1
        if start or tag != "br":
            yield _BREAKS.get(tag, "")
        if text := node.text if start else node.tail:
            yield text if verbatim else _HTML_SPACE.sub(" ", text)


def _html_encoding(data: bytes, encoding: str) -> str:
    """Give the encoding that a page names; a byte order mark goes before it."""
    found = _META.search(data[:_META_BYTES])
    if marked_encoding(data[:4]) or found is None:
        return encoding
    try:
        name = codecs.lookup(found[1].decode("ascii", "replace")).name
        "a".encode(name)
    except (LookupError, ValueError):
        return encoding
    # As browsers have it: the name is often wrong in these ways.
    if name in ("ascii", "iso8859-1"):
        return "cp1252"
    return "utf-8" if name.startswith(("utf-16", "utf-32")) else name


# PDF


def _pdf_text(path: Path, encoding: str, max_characters: int) -> str:
    """Give the text of the pages, one after the other: sentences run on from page to page."""
    import pypdf

    # It tells what it mends in a file; what cannot be mended is counted by us.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    characters = 0
    try:
        with path.open("rb") as stream:
            for page in pypdf.PdfReader(stream).pages:
                pages.append(page.extract_text().strip())
                characters += len(pages[-1])
                if characters > max_characters:
                    break
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.WrongPasswordError) as error:
        raise BadTextError(ENCRYPTED, "it needs a password") from error
    text = "\n".join(pages)
    if not text.strip():
        raise BadTextError(NO_TEXT, f"{len(pages):,} page{'' if len(pages) == 1 else 's'}")
    return text


# DOCX


def _docx_text(path: Path, encoding: str, max_characters: int) -> str:
    """Give the paragraphs of the body in order: those in tables, text boxes and fields, and what was inserted."""
    import docx
    from docx.oxml.ns import qn

    with path.open("rb") as stream:
        _check_unpacked(stream, path.stat().st_size, max_characters)
        body = docx.Document(stream).element.body
    # Text boxes stand there a second time, for old readers.
    for again in list(body.iter("{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback")):
        again.getparent().remove(again)
    between = {qn("w:p"): "\n\n", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:tab"): " ", qn("w:noBreakHyphen"): "-"}
    text = qn("w:t")
    return _paragraphs(
        (node.text or "") if node.tag == text else between[node.tag] for node in body.iter(text, *between)
    )


def _check_unpacked(stream: Any, size: int, max_characters: int) -> None:
    """Refuse a file that unpacks to far more than text does: its parts are held in memory, pictures too.

    Raises:
        BadTextError: It does.
    """
    with zipfile.ZipFile(stream) as archive:  # which reads no more of a part than the size that it tells
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > min(size + 4 * max_characters + (1 << 20), max(_LARGE, _MOST_PACKED * size)):
        raise BadTextError(UNPACKS, f"to {unpacked:,} bytes from {size:,}")


_READERS: dict[str, tuple[str, Callable[[Path, str, int], str]]] = {
    ".html": ("lxml", _html_text),
    ".htm": ("lxml", _html_text),
    ".xhtml": ("lxml", _html_text),
    ".pdf": ("pypdf", _pdf_text),
    ".docx": ("docx", _docx_text),
}

FORMATTED_SUFFIXES = tuple(_READERS)
