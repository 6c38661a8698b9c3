"""Read PDF files with pypdf."""

from __future__ import annotations

import logging
import re
import unicodedata
from pathlib import Path

import regex

from simlte_st.reading.rows import ENCRYPTED, BadTextError, Reading

NO_TEXT = "without text (scanned?)"

_LIGATURE = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]")  # including Arabic presentation forms
_SIGN = r"[\p{L}\p{M}\p{N}]"
_TORN = regex.compile(rf"({_SIGN}+)([-\u2010\xad])[ \t]*\n[ \t]*({_SIGN}+)")
_WORD = regex.compile(rf"{_SIGN}+(?:[-\u2010]{_SIGN}+)*+(?![-\u2010\xad])")
_NUMBER = regex.compile(r"\p{N}")
# Words that usually begin a compound when a hyphen follows at the end of a line.
_FIRST_OF_TWO = frozenset((
    "cross", "decision", "double", "end", "first", "five", "four", "full", "half", "hand", "hard", "high", "human",
    "large", "last", "left", "light", "long", "low", "machine", "mid", "multi", "near", "new", "non", "off", "one",
    "open", "peer", "post", "pre", "real", "right", "second", "self", "semi", "short", "single", "six", "small",
    "state", "ten", "third", "three", "time", "top", "two", "user", "well", "wide", "word", "work", "year",
))  # fmt: skip


def read_pdf(path: Path, reading: Reading) -> str:
    """Return the text of all pages, joined, as sentences may continue on the next page.

    Ligatures become letters, and words hyphenated at line ends are joined.
    """
    import pypdf

    # pypdf warns about repairs; unreadable files are reported here.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    pages: list[str] = []
    characters = 0
    try:
        with path.open("rb") as stream:
            for page in pypdf.PdfReader(stream).pages:
                pages.append(page.extract_text().strip())
                characters += len(pages[-1])
                if characters > reading.max_characters:
                    break
    except (pypdf.errors.FileNotDecryptedError, pypdf.errors.WrongPasswordError) as error:
        raise BadTextError(ENCRYPTED, "it needs a password") from error
    if not any(pages):
        raise BadTextError(NO_TEXT, f"{len(pages):,} pages")
    return _join_words(_LIGATURE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), "\n".join(pages)))


def _join_words(text: str) -> str:
    """Join words that are hyphenated at line ends.

    A hyphen is removed if it is soft or if the joined word occurs in the text. It stays if the hyphenated word occurs
    in the text, before a capital, beside a digit, and between two words of the text. Otherwise it is removed, unless
    the first part is a word such as "long" or "self".
    """
    words = {match[0].lower() for match in _WORD.finditer(text)} if _TORN.search(text) else frozenset[str]()

    def join(match: regex.Match[str]) -> str:
        first, hyphen, second = match.groups()
        start, end = first.lower(), second.lower()
        word = start + end
        stays = f"{start}-{end}" in words or second[0].isupper() or _NUMBER.search(word) or start in _FIRST_OF_TWO
        is_word = hyphen == "\xad" or word in words or not (stays or {start, end} <= words)
        return first + second if is_word else f"{first}{hyphen}{second}"

    count = 1
    while count:  # a word may be hyphenated twice
        text, count = _TORN.subn(join, text)
    return text.replace("\xad", "")
