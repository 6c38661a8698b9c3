"""The piece of a text that has most of the words that were looked for."""

from __future__ import annotations

import re

from simlte_st.data.analyzer import WORD, content_terms, terms_of

LENGTH = 200
"""Characters of a snippet, at most."""

_BEFORE = 40  # characters before the first word that was found
_LAST_WORD = re.compile(r"\s+\S{0,40}$")


def shortened(text: str, length: int) -> str:
    """Return a text, or its first words, as many as ``length`` characters hold, and a mark that it goes on."""
    return text if len(text) <= length else _LAST_WORD.sub("", text[: length + 1])[:length] + " …"


def snippet(text: str, question: str, length: int = LENGTH) -> str:
    """Cut out the piece of a text that has most different words of a question."""
    wanted = {each.term for each in content_terms(question)}
    found = [
        (match.start(), term)
        for match in WORD.finditer(text)
        for term in {each.term for each in terms_of(match[0])} & wanted
    ]
    best, most = 0, 0
    first = 0
    for last, (place, _) in enumerate(found):
        while place - found[first][0] > length - _BEFORE:
            first += 1
        many = len({term for _, term in found[first : last + 1]})
        if many > most:
            best, most = max(0, found[first][0] - _BEFORE), many
    start = text.find(" ", best) + 1 if best else 0  # whole words
    piece = text[start : start + length]
    if start + length < len(text):
        piece = piece.rpartition(" ")[0] or piece
    return ("… " if start else "") + " ".join(piece.split()) + (" …" if start + length < len(text) else "")
