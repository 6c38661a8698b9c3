"""Removes markup from HTML whose tree would take excessive time or memory.

A browser searches all open elements at most tags, reopens unclosed ``<font>``s in every paragraph, and compares each
attribute of a tag with all others. That is quadratic, which malicious pages exploit.
"""

from __future__ import annotations

import re

_FORMATTING = frozenset((
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
))  # fmt: skip
_INLINE = _FORMATTING | frozenset((
    "abbr", "acronym", "bdi", "bdo", "cite", "data", "del", "dfn", "ins", "kbd", "label", "mark", "output", "q",
    "samp", "span", "sub", "sup", "time", "var",
))  # fmt: skip
_FLAT = frozenset((
    "address", "article", "aside", "blockquote", "body", "center", "details", "div", "fieldset", "figcaption",
    "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "html", "hgroup", "main", "pre", "search",
    "section", "summary",
))  # fmt: skip
_VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
))  # fmt: skip
_ENDED_BY_NEXT = frozenset(("p", "li", "dt", "dd", "option", "optgroup", "rt", "rp"))
_ENDED_IN_TABLE = _ENDED_BY_NEXT | frozenset(("td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup"))
_TABLE = frozenset(("td", "th", "tr", "tbody", "thead", "tfoot", "table"))

_ATTRIBUTE = r"""[^\s/>][^\s/>=]*(?:\s*=\s*(?:"[^"]*(?:"|\Z)|'[^']*(?:'|\Z)|[^\s>"'][^\s>]*)?)?"""
_TOKEN = re.compile(
    r"<!--(?:>|->|.*?(?:--!?>|\Z))|<!\[CDATA\[.*?(?:\]\]>|\Z)"
    r"|<(?:(script|style|title|textarea|xmp|iframe|noembed|noframes|noscript|plaintext)\b.*?(?:</\1(?=[\s/>])|\Z)"
    rf"|(/?)([a-z][^\s/>]*)((?:[\s/]+|{_ATTRIBUTE})*)(?:>|\Z))",
    re.DOTALL | re.IGNORECASE,
)
_START = re.compile(r"<[a-z]")
_FEW, _SHORT = 2_000, 60_000  # tags and characters of a page whose tree never takes long
_LONG = 5_000  # characters of a tag, whose attributes are counted
_MOST_STEPS = 50_000_000  # half a second


def bounded_markup(page: str) -> str | None:
    """Return a page without the markup that makes its tree take quadratic time; None if it still does."""
    if _is_cheap(page):
        return page
    page = _TOKEN.sub(_flat, page)
    return page if _is_cheap(page) else None


def _is_cheap(page: str) -> bool:
    return (page.count("<") <= _FEW and len(page) <= _SHORT) or _steps(page.lower()) <= _MOST_STEPS


def _steps(page: str) -> int:
    """Return an upper bound of the steps to build the tree of a page in lower case.

    What may be a tag (in a script, a comment, an attribute) counts as one that opens an element and never closes it.
    """
    stack: list[str] = []
    tokens = starts = formatting = roots = steps = 0
    for match in _TOKEN.finditer(page):
        _, closes, name, attributes = match.groups()
        tokens += 1
        steps += len(stack) + 20 * formatting
        if name is None or name in _VOID:
            starts += name is not None
        elif closes:
            if stack and stack[-1] == name:
                stack.pop()
                formatting -= name in _FORMATTING
            elif name not in _INLINE:
                ended = _ENDED_IN_TABLE if name in _TABLE else _ENDED_BY_NEXT
                top = len(stack)
                while top and stack[top - 1] != name and stack[top - 1] in ended:
                    top -= 1
                if top and stack[top - 1] == name:
                    del stack[top - 1 :]
        else:
            starts += 1
            if name in _ENDED_IN_TABLE:
                ended = _ENDED_BY_NEXT if name in _ENDED_BY_NEXT else _ENDED_IN_TABLE
                while stack and stack[-1] in ended and (name != "p" or stack[-1] == "p"):
                    stack.pop()
            stack.append(name)
            formatting += name in _FORMATTING
            if name in ("html", "body"):
                roots += 1
                steps += 10 * roots
        if attributes and len(attributes) > _LONG:
            steps += len(re.findall(_ATTRIBUTE, attributes)) ** 2
    doubtful = len(_START.findall(page)) - starts
    return steps + doubtful * (tokens + doubtful)


def _flat(match: re.Match[str]) -> str:
    if match[3] is None:
        return match[0]
    name = match[3].lower()
    if name in _FLAT:
        return "<hr>"
    return "" if name in _INLINE else f"<{match[2]}{name}>"
