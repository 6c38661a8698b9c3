"""Read HTML as browsers do, parsing it with selectolax."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from simlte_st.reading.rows import Reading, find_codec
from simlte_st.reading.text_files import decode_text, read_whole, tidy_lines

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_SPACE = re.compile(r"[ \t\n\f\r]{2,}|[\t\n\f\r]")  # anything but a single space
_LABEL = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_XML_LABEL = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""")
_LABEL_BYTES = 1024  # the standard requires the encoding label within the first 1,024 bytes
_SELF_CLOSED = re.compile(r"<(?!(?:br|hr|img|input|meta|link|col|area|base|wbr)\b)([a-zA-Z][\w:-]*)((?:\s[^<>]*)?)/>")

_TAG = re.compile(
    r"</?(?:html|head|body|p|br|div|span|b|i|a|ul|ol|li|table|tr|td|h[1-6]|strong|em|font|img)\b[^<>]*>", re.IGNORECASE
)
_BEGINNING = 8_192  # characters searched for tags
_UNSEEN = frozenset((
    "head", "title", "script", "style", "template", "noscript", "iframe", "noembed", "noframes", "datalist", "rp",
    "select", "audio", "video", "canvas", "svg", "annotation", "annotation-xml", "nav", "menu", "footer",
))  # fmt: skip
_UNSEEN_ROLES = frozenset(("navigation", "menu", "menubar", "contentinfo"))  # ARIA roles of menus and footers
_VERBATIM = frozenset(("pre", "textarea", "listing", "xmp", "plaintext"))
_BLOCKS = (
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext",
    "pre", "search", "section", "summary", "table", "tr", "ul", "xmp",
)  # fmt: skip
_BREAKS = {**dict.fromkeys(_BLOCKS, "\n\n"), **dict.fromkeys(("td", "th", "button", "textarea", "object"), " ")}
"""Break before and after an element's text, by tag."""
_HIDING_STYLE = re.compile(r"(?:^|[;\s])display\s*:\s*none\b", re.IGNORECASE)

# Void elements, which have no end tag and so never nest deeply.
_SHALLOW = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p",
    "li", "dt", "dd", "option", "td", "th", "tr",
))  # fmt: skip
_REOPENED = frozenset(("a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"))
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|title|textarea|iframe|noscript)\b.*?(?:</\1\b[^>]*>|\Z)|</?[a-z][^>]*(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
_LONG_TAG = re.compile(r"<[a-z][^<>]{100000}", re.IGNORECASE)
_MAX_STEPS = 50_000_000  # takes about half a second


def has_tags(text: str) -> bool:
    """Return whether a text has at least two HTML tags near its beginning."""
    return len(_TAG.findall(text, 0, _BEGINNING)) > 1


def read_html(path: Path, reading: Reading) -> str:
    """Return the text that a browser shows, without navigation; block elements become paragraphs.

    Scripts, styles, templates, drawings, drop-down lists, ``nav``, ``menu`` and ``footer`` are ignored, as are elements
    with ``hidden``, ``display: none`` or a navigation or menu role. Style sheets are not evaluated.
    """
    data = read_whole(path, reading)
    return page_text(data, reading.encoding, xml=data.lstrip().startswith(b"<?xml") or path.suffix.lower() == ".xhtml")


def page_text(data: bytes, encoding: str, xml: bool = False, mend: bool = False) -> str:
    """Return the text of a page, decoded with ``encoding`` unless the page declares one."""
    return html_text(_decode(data, encoding, mend), xml)


def html_text(text: str, xml: bool = False) -> str:
    """Return a page's text, as in :func:`read_html`; if parsing would take too long, only strip the tags."""
    from selectolax.lexbor import LexborHTMLParser

    if xml:
        text = _SELF_CLOSED.sub(r"<\1\2></\1>", text)
    if _takes_long(text):
        return tidy_lines([html.unescape(_TOKEN.sub("\n", text))])
    root = LexborHTMLParser(text.encode("utf-8", "replace"), scripting=True).root
    return "" if root is None else tidy_lines(_parts(root))


def _parts(root: LexborNode) -> Iterator[str]:
    """Yield the texts and breaks in a tree, without recursion, because pages may be deeply nested."""
    node, verbatim = root, 0
    parents: list[LexborNode] = []
    while True:
        tag = node.tag or ""
        if tag == "-text":
            text = node.text_content or ""
            yield text if verbatim else _SPACE.sub(" ", text)
        elif tag == "br":
            yield "\n"
        elif tag not in _UNSEEN and not _is_hidden(node):
            yield _BREAKS.get(tag, "")
            if node.child is not None:
                parents.append(node)
                verbatim += tag in _VERBATIM
                node = node.child
                continue
            yield _BREAKS.get(tag, "")
        while (following := node.next) is None or not parents:
            if not parents:
                return
            node = parents.pop()
            verbatim -= node.tag in _VERBATIM
            yield _BREAKS.get(node.tag or "", "")
        node = following


def _is_hidden(node: LexborNode) -> bool:
    attributes = node.attributes
    unseen = "hidden" in attributes or (attributes.get("role") or "").lower() in _UNSEEN_ROLES
    hidden = unseen or _HIDING_STYLE.search(attributes.get("style") or "") is not None
    return hidden and node.tag not in ("html", "body")  # a script reveals these once the page has loaded


def _decode(data: bytes, encoding: str, mend: bool) -> str:
    """Decode a page with the encoding that it declares, or else with ``encoding``."""
    label = _LABEL.search(data[:_LABEL_BYTES]) or _XML_LABEL.match(data[:_LABEL_BYTES])
    codec = None if label is None else find_codec(label[1].decode("ascii", "replace"))
    # A page whose label can be read as ASCII is not UTF-16.
    return decode_text(data, "utf-8" if codec in ("utf-16-le", "utf-16-be") else codec or encoding, mend)


def _takes_long(page: str) -> bool:
    """Estimate whether parsing a page takes quadratic time or memory.

    At most tags, parsers search all open elements; they also reopen unclosed ``<font>`` tags in every paragraph and
    compare each attribute of a tag with all others.
    """
    open_tags: Counter[str] = Counter()
    depth = steps = 0
    for closes, name in _NAME.findall(page.lower()):
        steps += depth
        if name not in _SHALLOW and (open_tags[name] or not closes):
            change = -1 if closes else 1
            open_tags[name] += change
            depth += change * (20 if name in _REOPENED else 1)
    return steps > _MAX_STEPS or _LONG_TAG.search(page) is not None
