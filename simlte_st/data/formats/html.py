"""HTML files, by lxml, which neither fetches nor runs anything."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.formats.base import DAMAGED, tidy_lines
from simlte_st.data.rows import ReadSettings
from simlte_st.data.streams import TOO_LONG, BadTextError, decode_text, marked_encoding

_HTML_SPACE = re.compile(r"[ \t\n\f\r]+")
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


def read(path: Path, settings: ReadSettings) -> str:
    """Give what a browser shows, but menus: inline tags do not part words, blocks are paragraphs.

    Raises:
        BadTextError: It is too long, in another encoding, no text, or too deep a tree.
        OSError: It cannot be read.
    """
    from lxml import etree

    # Markup may be most of a page; the bound is that of a line of JSON.
    if (size := path.stat().st_size) > 12 * settings.max_characters + (1 << 20):
        raise BadTextError(TOO_LONG, f"{size:,} bytes")
    data = path.read_bytes()
    text = decode_text(data, _declared_encoding(data, settings.encoding))
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=True)
    parser.feed(b"<html>")  # so that there is a root, whatever comes
    parser.feed(text.encode("utf-8", "replace"))
    root = parser.close()
    for error in parser.feed_error_log.filter_from_fatals():  # tags in thousands of others: the rest is not in the tree
        raise BadTextError(DAMAGED, error.message)
    return tidy_lines(_parts(etree, root))


def _parts(etree: Any, root: Any) -> Iterator[str]:
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


def _declared_encoding(data: bytes, encoding: str) -> str:
    """Give the encoding that a page names; a byte order mark goes before it."""
    declared = _META.search(data[:_META_BYTES])
    if marked_encoding(data[:4]) or declared is None:
        return encoding
    try:
        name = codecs.lookup(declared[1].decode("ascii", "replace")).name
        "a".encode(name)
    except (LookupError, ValueError):
        return encoding
    # As browsers have it: the name is often wrong in these ways.
    if name in ("ascii", "iso8859-1"):
        return "cp1252"
    return "utf-8" if name.startswith(("utf-16", "utf-32")) else name
