"""HTML files: the tree of a browser, by selectolax, and the encodings of browsers, by webencodings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from simlte_st.data.config import SourceConfig
from simlte_st.data.formats.base import FileText, tidy_lines
from simlte_st.data.formats.nesting import takes_long, without_tags
from simlte_st.data.text_files import decode_text, read_whole

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
    "select", "audio", "video", "canvas", "svg", "annotation", "annotation-xml",
))  # fmt: skip
_VERBATIM = frozenset(("pre", "textarea", "listing", "xmp", "plaintext"))
_BLOCKS = (
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext",
    "pre", "search", "section", "summary", "table", "tr", "ul", "xmp",
)  # fmt: skip
_BREAKS = {**dict.fromkeys(_BLOCKS, "\n\n"), **dict.fromkeys(("td", "th", "button", "textarea", "object"), " ")}
"""What is put before and after the text of a tag."""
_HIDING_STYLE = re.compile(r"(?:^|[;\s])display\s*:\s*none\b", re.IGNORECASE)


def has_tags(text: str) -> bool:
    """Return whether a text has HTML tags near its beginning, more than one."""
    return len(_TAG.findall(text, 0, _TAGGED)) > 1


def read(path: Path, config: SourceConfig) -> FileText:
    """Return what a browser shows, except navigation: inline tags do not separate words, blocks are paragraphs.

    Left out are scripts, styles, templates, drawings, drop-down lists and elements hidden by ``hidden`` or
    ``display: none``; and ``nav``, ``menu`` and ``footer``, unless one is never closed. Style sheets are not evaluated.
    """
    data = read_whole(path, config.max_characters)
    return FileText(page_text(data, config.encoding, xml=path.suffix.lower() == ".xhtml"))


def page_text(data: bytes, encoding: str, xml: bool = False) -> str:
    """Return what a browser shows of a page; the encoding is for one that declares none."""
    return html_text(_decode(data, encoding), xml)


def html_text(text: str, xml: bool = False) -> str:
    """Return what a browser shows of a page; see :func:`read`. A page that takes too long is read by its tags alone."""
    from selectolax.lexbor import LexborHTMLParser

    if xml:
        text = _SELF_CLOSED.sub(r"<\1\2></\1>", text)
    if takes_long(text):
        return tidy_lines([without_tags(text)])
    root = LexborHTMLParser(text.encode("utf-8", "replace"), scripting=True).root
    lower = text.lower()
    ended = (name for name in _NAVIGATION if _count(f"<{name}", lower) <= _count(f"</{name}", lower))
    return tidy_lines(_parts(root, _UNSEEN.union(ended)))


def _count(tag: str, lower: str) -> int:
    return len(re.findall(rf"{tag}[\s/>]", lower))


def _parts(root: Any, unseen: frozenset[str]) -> Iterator[str]:
    """Walk through the tree, without recursion, as pages may be deep."""
    node, verbatim = root, 0
    parents: list[Any] = []
    while True:
        tag = node.tag
        if tag == "-text":
            yield node.text_content if verbatim else _SPACE.sub(" ", node.text_content)
        elif tag == "br":
            yield "\n"
        elif tag not in unseen and not _is_hidden(node):
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
            yield _BREAKS.get(node.tag, "")
        node = following


def _is_hidden(node: Any) -> bool:
    attributes = node.attributes
    hides = "hidden" in attributes or _HIDING_STYLE.search(attributes.get("style") or "") is not None
    return hides and node.tag not in ("html", "body")  # which scripts show when the page is loaded


def _decode(data: bytes, encoding: str) -> str:
    """Decode a page in the encoding that it declares, else in the configured one."""
    label = _LABEL.search(data[:_LABEL_BYTES]) or _XML_LABEL.match(data[:_LABEL_BYTES])
    declared = None if label is None else _python_encoding(label[1].decode("ascii", "replace"))
    return decode_text(data, declared or encoding)


def _python_encoding(label: str) -> str | None:
    """Return Python's name of an encoding by its label in the encoding standard; None for an unknown label."""
    import webencodings

    known = webencodings.lookup(label)
    if known is None or known.name in ("replacement", "x-user-defined"):
        return None
    return _PYTHON_NAMES.get(known.name, str(known.codec_info.name))
