"""Hypothesis strategies for unusual texts, as they occur in real corpora."""

from __future__ import annotations

from hypothesis import strategies as st

# All characters except lone surrogates, which the reader replaces; boundary characters are more frequent.
characters = st.characters(exclude_categories=("Cs",))
SPACES = [
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    " ",
    "  ",
    "\x0b",
    "\x0c",
    "\x1c",
    "\x85",
    "\xa0",
    "\u2028",
    "\u2029",
    "\u3000",
]
ENDS = ["One two. ", "Dr. A", "! ", "?", "...", '."', ".)", "1.5", "a.b.c", "漢字。", "한국어.", "।", "؟"]
ODD = [
    "\ufeff",
    "\u200b",
    "\x00",
    "かな",
    "\U00020000",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "x" * 30,
    "def f(x):\n    return x",
    "| a |\n",
]
pieces = st.sampled_from(SPACES + ENDS + ODD)
texts = st.one_of(st.text(characters, max_size=120), st.lists(st.one_of(pieces, characters), max_size=40).map("".join))


def letters(text: str) -> str:
    """Return the characters that are not white space."""
    return "".join(text.split())
