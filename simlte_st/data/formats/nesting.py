"""Tells HTML whose tree would take quadratic time or memory, which malicious pages exploit.

A browser searches all open elements at most tags, reopens unclosed ``<font>``s in every paragraph, and compares each
attribute of a tag with all others.
"""

from __future__ import annotations

import html
import re

# Elements without an end, or that the next one ends: they are never deep, except in others.
_SHALLOW = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr", "p",
    "li", "dt", "dd", "option", "optgroup", "rt", "rp", "td", "th", "tr", "tbody", "thead", "tfoot", "caption",
    "colgroup",
))  # fmt: skip
_REOPENED = frozenset((
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
))  # fmt: skip
_ATTRIBUTE = r"""[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>"'][^\s>]*)?)?"""
_TOKEN = re.compile(
    r"<!--(?:>|->|.*?(?:--!?>|\Z))|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<(?:(script|style|title|textarea|xmp|iframe|noembed|noframes|noscript|plaintext)\b.*?(?:</\1(?=[\s/>])[^>]*>?|\Z)"
    rf"|(/?)([a-z][^\s/>]*)((?:[\s/]+|{_ATTRIBUTE})*)(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_START = re.compile(r"<[a-z]", re.IGNORECASE)
_FEW, _SHORT = 2_000, 60_000  # tags and characters of a page whose tree never takes long
_LONG = 5_000  # characters of a tag, whose attributes are counted
_MOST_STEPS = 50_000_000  # half a second


def takes_long(page: str) -> bool:
    """Return whether the tree of a page may take quadratic time, by an upper bound of its steps."""
    if page.count("<") <= _FEW and len(page) <= _SHORT:
        return False
    opened: list[str] = []
    tokens = starts = reopened = steps = 0
    for match in _TOKEN.finditer(page):
        _, closes, name, attributes = match.groups()
        tokens += 1
        steps += len(opened) + 20 * reopened
        if name is None:
            continue
        starts += not closes
        name = name.lower()
        if not closes and name not in _SHALLOW:
            opened.append(name)
            reopened += name in _REOPENED
        elif closes and opened and opened[-1] == name:
            opened.pop()
            reopened -= name in _REOPENED
        if attributes and len(attributes) > _LONG:
            steps += len(re.findall(_ATTRIBUTE, attributes)) ** 2
    # What may be a tag in a script, a comment or an attribute counts as one that opens an element and never closes it.
    doubtful = len(_START.findall(page)) - starts
    return steps + doubtful * (tokens + doubtful) > _MOST_STEPS


def without_tags(page: str) -> str:
    """Return the text between the tags of a page, without its scripts and styles."""
    return html.unescape(_TOKEN.sub("\n", page))
