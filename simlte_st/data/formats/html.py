"""HTML files: the tree of a browser, by selectolax, and the encodings of browsers, by webencodings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import DAMAGED, FileText, tidy_lines
from simlte_st.data.formats.nesting import bounded_markup
from simlte_st.data.text_files import TOO_LONG, WRONG_ENCODING, BadTextError, decode_text

_SPACE = re.compile(r"[ \t\n\f\r]{2,}|[\t\n\f\r]")  # what is not one space already
_LABEL = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]{1,40})""", re.IGNORECASE)
_XML_LABEL = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})""")
_LABEL_BYTES = 1024  # the standard has it among the first of them
_PYTHON_NAMES = {"gbk": "gb18030", "utf-16le": "utf-8", "utf-16be": "utf-8"}  # as the standard has them
_SELF_CLOSED = re.compile(r"<(?!(?:br|hr|img|input|meta|link|col|area|base|wbr)\b)([a-zA-Z][\w:-]*)((?:\s[^<>]*)?)/>")

_TAG = re.compile(
    r"</?(?:html|head|body|p|br|div|span|b|i|a|ul|ol|li|table|tr|td|h[1-6]|strong|em|font|img)\b[^<>]*>", re.IGNORECASE
)
_TAGGED = 8_192  # characters
_NAVIGATION = ("nav", "menu", "footer")
_UNSEEN = frozenset((
    "head", "title", "script", "style", "template", "noscript", "iframe", "noembed", "noframes", "datalist", "rp",
    "select", "audio", "video", "canvas", "annotation", "annotation-xml",
))  # fmt: skip
_SECTIONS = frozenset((
    "article", "aside", "blockquote", "details", "dialog", "fieldset", "figure", "main", "section", "td",
))  # fmt: skip
_VERBATIM = frozenset(("pre", "textarea", "listing", "xmp", "plaintext"))
_BLOCKS = (
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext",
    "pre", "search", "section", "summary", "table", "tr", "ul", "xmp",
)  # fmt: skip
_BREAKS = {**dict.fromkeys(_BLOCKS, "\n\n"), **dict.fromkeys(("td", "th", "button", "textarea", "text", "object"), " ")}
"""What is put before and after the text of a tag."""
_HIDING_WORDS = ("hidden", "display", "visibility", "popover", "<dialog")
_HIDING_STYLE = re.compile(r"(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse))\b", re.IGNORECASE)


def has_tags(text: str) -> bool:
    """Return whether a text has HTML tags near its beginning, more than one."""
    return len(_TAG.findall(text, 0, _TAGGED)) > 1


def read(path: Path, config: SourceConfig) -> FileText:
    """Return what a browser shows, except navigation: inline tags do not separate words, blocks are paragraphs.

    Left out are what a browser that runs scripts does not show (scripts, styles, templates, elements hidden by an
    attribute or their own style, closed dialogs); ``nav``, ``menu`` and the page's ``footer``, unless one is never
    closed; drop-down lists; and drawings except their text. Style sheets are not evaluated.
    """
    # Markup may be most of a page; the bound is the one for a line of JSON.
    if (size := path.stat().st_size) > 12 * config.max_characters + (1 << 20):
        raise BadTextError(TOO_LONG, f"{size:,} bytes")
    return FileText(page_text(path.read_bytes(), config.encoding, xml=path.suffix.lower() == ".xhtml"))


def page_text(data: bytes, encoding: str, xml: bool = False) -> str:
    """Return what a browser shows of a page; the encoding is for one that declares none."""
    return html_text(_decode(data, encoding), xml)


def html_text(text: str, xml: bool = False) -> str:
    """Return what a browser shows of a page; see :func:`read`."""
    from selectolax.lexbor import LexborHTMLParser

    if xml:
        text = _SELF_CLOSED.sub(r"<\1\2></\1>", text)
    page = bounded_markup(text)
    if page is None:
        raise BadTextError(DAMAGED, "tags in thousands of others")
    root = LexborHTMLParser(page.encode("utf-8", "replace"), scripting=True).root
    lower = page.lower()
    return tidy_lines(_parts(root, _unseen(lower), any(word in lower for word in _HIDING_WORDS)))


def _unseen(lower: str) -> frozenset[str]:
    """Return the tags whose content is left out; those of navigation unless one is never closed."""
    ended = (name for name in _NAVIGATION if _count(f"<{name}", lower) <= _count(f"</{name}", lower))
    return _UNSEEN.union(ended)


def _count(tag: str, lower: str) -> int:
    return len(re.findall(rf"{tag}[\s/>]", lower))


def _parts(root: Any, unseen: frozenset[str], may_hide: bool) -> Iterator[str]:
    """Walk through the tree, without recursion, as pages may be deep."""
    node = root
    parents: list[tuple[Any, bool, bool, int]] = []  # and the state around each
    verbatim = drawing = False
    sections = 0
    while True:
        tag, child = node.tag, None
        if tag == "-text":
            if not drawing:
                text = node.text_content
                yield text if verbatim else _SPACE.sub(" ", text)
        elif tag == "br":
            yield "\n"
        elif not ((tag in unseen and not (tag == "footer" and sections)) or (may_hide and _is_hidden(node, tag))):
            yield _BREAKS.get(tag, "")
            if (child := node.child) is not None:
                parents.append((node, verbatim, drawing, sections))
                verbatim = verbatim or tag in _VERBATIM
                drawing = tag == "svg" or (drawing and tag not in ("text", "foreignobject"))
                sections += tag in _SECTIONS
                node = child
                continue
            yield _BREAKS.get(tag, "")
        while (following := node.next) is None:
            if not parents:
                return
            node, verbatim, drawing, sections = parents.pop()
            yield _BREAKS.get(node.tag, "")
        if not parents:
            return
        node = following


def _is_hidden(node: Any, tag: str) -> bool:
    attributes = node.attributes
    if tag in ("html", "body"):  # which scripts show when the page is loaded
        return False
    if tag == "dialog" and "open" not in attributes:
        return True
    if "popover" in attributes or (attributes.get("hidden", "until-found") or "").lower() != "until-found":
        return True
    return (
        (attributes.get("aria-hidden") or "").lower() == "true" and tag not in ("main", "article")
    ) or _HIDING_STYLE.search(attributes.get("style") or "") is not None


def _decode(data: bytes, encoding: str) -> str:
    """Decode a page in the encoding that it declares, else in the configured one."""
    label = _LABEL.search(data[:_LABEL_BYTES]) or _XML_LABEL.match(data[:_LABEL_BYTES])
    declared = None if label is None else _python_encoding(label[1].decode("ascii", "replace"))
    if declared is not None:
        try:
            return decode_text(data, declared)
        except BadTextError as error:
            if error.args[0] != WRONG_ENCODING:
                raise
    return decode_text(data, encoding)


def _python_encoding(label: str) -> str | None:
    """Return Python's name of an encoding by its label in the encoding standard; None for an unknown label."""
    import webencodings

    known = webencodings.lookup(label)
    if known is None or known.name in ("replacement", "x-user-defined"):
        return None
    return _PYTHON_NAMES.get(known.name, str(known.codec_info.name))
