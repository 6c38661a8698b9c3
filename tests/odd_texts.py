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


CELLS = {
    "=1+1": "'=1+1",
    "=cmd|' /C calc'!A0": "'=cmd|' /C calc'!A0",
    "=A1": "'=A1",
    '@SUM(1+1)*cmd|"a"!A0': '\'@SUM(1+1)*cmd|"a"!A0',
    '+HYPERLINK("http://example.org";"x")': '\'+HYPERLINK("http://example.org";"x")',
    "-2+3+cmd|' /C calc'!A0": "'-2+3+cmd|' /C calc'!A0",
    "- first of a list": "'- first of a list",
    "@reader What a day!": "'@reader What a day!",
    "\t=1+1": "'\t=1+1",
    "\r=1+1": "'\r=1+1",
    "\n=1+1": "'\n=1+1",
    "＝1+1": "'＝1+1",
    "-": "-",
    "-0.25": "-0.25",
    "+1e-05": "+1e-05",
    "-1.5E+300": "-1.5E+300",
    "-1,234.50": "-1,234.50",
    "-dQw4w9WgXcQ": "-dQw4w9WgXcQ",
    "@reader": "@reader",
    "-a/b_c.txt": "-a/b_c.txt",
    "+49-30-1234": "+49-30-1234",
    "a=1+1": "a=1+1",
    "'=1+1": "'=1+1",
    'größer, "sagte" er': 'größer, "sagte" er',
}
"""Texts, and what stands for them in a table that spreadsheets open: no formula, and ids and numbers as they are."""
