"""Hypothesis strategies for the texts that real corpora hold and nobody thinks of."""

from __future__ import annotations

from hypothesis import strategies as st

# Everything but lone surrogates, which the reader replaces; and, more often than chance would, what cuts are made at.
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
    """The characters that are not white space."""
    return "".join(text.split())
