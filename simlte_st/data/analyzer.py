"""The analyzer of the full-text search: texts to terms, by the same rules in documents, queries and explanations."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex
from nltk.stem.snowball import SnowballStemmer
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

_CHARACTER = r"[\p{L}\p{M}\p{N}\p{Pc}\u00ad\u200b-\u200d\u2060]"
WORD = regex.compile(
    # Letters, digits and their marks; what stands between two of them may join them: node.js, 10.17.3.9, 12,500.75,
    # don't, INV-2024-17, 10:30, name@example.com.
    rf"{_CHARACTER}+(?:(?:[.@'\u2019\u00b7]|[-/](?=\S{{0,40}}\p{{N}})|(?<=\p{{N}})[,:](?=\p{{N}})){_CHARACTER}+)*"
)
"""A word of a text, or several that are joined."""

PLAIN = regex.compile(r"[\p{L}\p{M}]+")
"""A term of letters and their marks alone."""

_PART = regex.compile(rf"{_CHARACTER}+")
_INVISIBLE = regex.compile(r"[\u00ad\u200b-\u200d\u2060]+")
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Tham}\p{Javanese}\p{Balinese}"
    r"\u30fc\u3005]+"
)
"""Runs of scripts that do not write spaces between words."""

_ENDINGS = frozenset(("d", "ll", "m", "re", "s", "t", "ve"))  # after an apostrophe: no words

_REMEMBERED = 64  # characters of words whose terms are kept in memory
_LONGEST_RUN = 12  # characters of a script without spaces: longer runs are sentences, and no terms

_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_LETTERS = str.maketrans({"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_stemmer = SnowballStemmer("english")

CONTENT_WORDS = frozenset((
    "amount", "bill", "bottom", "call", "cry", "describe", "detail", "eight", "eleven", "empty", "fifteen",
    "fifty", "fill", "fire", "five", "forty", "four", "front", "full", "hundred", "interest", "mill", "mine",
    "name", "nine", "part", "serious", "show", "side", "sincere", "six", "sixty", "system", "ten", "thick",
    "thin", "third", "three", "top", "twelve", "twenty", "two",
))  # fmt: skip
"""Words on scikit-learn's list of English stop words that people search for."""

STOP_WORDS = ENGLISH_STOP_WORDS - CONTENT_WORDS
"""Words that are left out of a query that has other words."""


class Term(NamedTuple):
    """A word as it is compared (lower case, without accents, stemmed) and as it stands in the text."""

    term: str
    word: str


def terms_of(text: str) -> Iterator[Term]:
    """Cut a text into terms, in order.

    A joined word is a term, and so is each of its parts: "node.js" is found by itself, by "node" and by "js". In
    scripts without spaces each character is a term and so is each pair of neighbours, as word boundaries depend on
    the context.
    """
    for match in WORD.finditer(text):
        word = match[0]
        yield from _remembered(word) if len(word) <= _REMEMBERED else _terms_of_word(word)


def _terms_of_word(word: str) -> tuple[Term, ...]:
    return tuple(Term(term, piece) for piece in _pieces(word) if (term := _folded(piece)))


_remembered = functools.lru_cache(1 << 17)(_terms_of_word)


def _pieces(word: str) -> Iterator[str]:
    """Return a word, its parts if it is a joined one, and the characters and pairs of scripts without spaces."""
    runs = _UNSPACED.findall(unicodedata.normalize("NFKC", _INVISIBLE.sub("", word)))
    if all(len(run) <= _LONGEST_RUN for run in runs):
        yield word
    parts = list(_PART.finditer(word))
    if len(parts) > 1:
        for part in parts:
            if word[: part.start()][-1:] not in ("'", "\u2019") or part[0] not in _ENDINGS:
                yield part[0]
    for run in runs:
        if run != word or len(run) > 1:
            yield from run
            yield from (run[start : start + 2] for start in range(len(run) - 1))


def content_terms(text: str) -> list[Term]:
    """Return the terms of a query without stop words; all of them where it has nothing but stop words.

    A word in capitals, in a query that is not all in capitals, is not a stop word: US, IT, WHO.
    """
    terms = list(terms_of(text))
    content = [
        each
        for each in terms
        if each.word.lower() not in STOP_WORDS or (len(each.word) > 1 and each.word.isupper() and not text.isupper())
    ]
    return content or terms


def _folded(word: str) -> str:
    """Return the term of a word: words that differ in case, accents, width or English endings share one."""
    lower = unicodedata.normalize("NFKD", _INVISIBLE.sub("", word).casefold())
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", lower)).casefold().translate(_LETTERS).replace("\u2019", "'")
    stem: str = _stemmer.stem(plain) if plain.isascii() and plain.isalpha() else plain.removesuffix("'s")
    return "_".join(stem.split())
