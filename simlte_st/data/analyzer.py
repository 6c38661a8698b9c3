"""The analyzer: texts to words, and words to the terms that they are compared by.

By its rules documents are searched, explained, compared by TF-IDF and BM25, named, and told from their duplicates.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import regex
import Stemmer

from simlte_st.data.languages import STEMMERS, UNSPACED, is_latin, most_stop_words, stemmer, stop_words

ANALYZER: dict[str, Any] = {"version": 3, "snowball": Stemmer.version()}
"""What the terms of an index were made by."""

_CHARACTER = r"[\p{L}\p{M}\p{N}\p{Pc}\p{Default_Ignorable_Code_Point}]"
_NUMBER = r"(?<=\p{N})[,:\u066b\u066c](?=\p{N})"
_PICTURE = r"\p{RI}\p{RI}|[\p{Extended_Pictographic}--[\u0000-\u21ff\u3030\u303d\u3297\u3299]]"
WORD = regex.compile(
    # Letters, digits and their marks; what stands between two of them may join them: node.js, 10.17.3.9, 12,500.75,
    # don't, INV-2024-17, 10:30, name@example.com. Signs that make another word of it: .NET, C++, C#. Emoji.
    rf"(?V1)(?:(?<![^\s(\[{{/\"'\u201c\u2018])\.(?=\p{{L}}{{2}}))?"
    rf"{_CHARACTER}+(?:(?:[.@'\u2019\u00b7]|[-/](?=\S{{0,40}}\p{{N}})|{_NUMBER}){_CHARACTER}+)*"
    rf"(?:(?<=\p{{L}})(?:\+\+(?![\p{{L}}+])|[+#](?![\p{{L}}\p{{N}}+#])))?|{_PICTURE}"
)
"""A word of a text, or several that are joined."""

PLAIN = regex.compile(r"[\p{L}\p{M}]+")
"""A term of letters and their marks alone."""

_PART = regex.compile(  # a zero-width non-joiner stands between the parts of Persian words
    rf"(?V1)(?P<unspaced>[{UNSPACED}]+)|(?P<hangul>\p{{Hangul}}+)"
    rf"|(?:[{_CHARACTER}--[\u200c{UNSPACED}\p{{Hangul}}]]|(?<!\p{{Arabic}})\u200c)+"
)
_ALONE = regex.compile(rf"[^{UNSPACED}\p{{Hangul}}]")  # of scripts whose words have several letters
_UNIT = regex.compile(rf"[{UNSPACED}]\p{{M}}*")
_ENDINGS = frozenset(("d", "ll", "m", "re", "s", "t", "ve"))  # after an apostrophe: no words

_BEFORE, _BEHIND = "([{\"'\u201c\u2018", ".,;:!?)]}\"'\u201d\u2019"  # signs around a word that make no other word of it
_ADDRESS_WORDS = frozenset(("http", "https", "www"))
_REMEMBERED = 64  # characters of words whose terms are kept in memory
_LONGEST_RUN = 12  # characters of a script without spaces: longer runs are sentences, and no terms

_CHANGED = regex.compile(  # what is not seen, vowel signs that are mostly not written, kashida, digits of other scripts
    r"\p{Default_Ignorable_Code_Point}|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    r"\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0730-\u074a\u08ca-\u08ff]"
    r"|\u20e3|(?![0-9])\p{Nd}"
)
_SIGNS = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u066b": ".", "\u066c": ","})
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_WRITTEN_WITH_ACCENTS = "\u0301"  # ends the second term of such a word; other terms have no accents
_LETTERS = str.maketrans({"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_DEVANAGARI = regex.compile(r"[\u0900-\u097f]")
_NASAL = regex.compile("[\u0919\u091e\u0923\u0928\u092e]\u094d(?=[\u0915-\u0939])|\u0901")  # each written as \u0902

T = TypeVar("T")


class Term(NamedTuple):
    """A word as it is compared (lower case, without accents, stemmed) and as it stands in the text."""

    term: str
    word: str


def normal(text: str) -> str:
    """Return a text in lower case and without what makes no other word.

    That is its width, invisible characters, vowel signs and kashida where they are mostly not written, and the script
    of its digits. Accents stay.
    """
    if text.isascii():
        return text.lower()
    lower = unicodedata.normalize("NFKC", text).casefold()
    plain = _CHANGED.sub(lambda sign: str(unicodedata.decimal(sign[0], "")), lower)
    return unicodedata.normalize("NFKC", plain).translate(_SIGNS)


def _by_chunk(cut: Callable[..., Sequence[T]]) -> Callable[..., list[T]]:
    """Apply a function to what stands between spaces, and remember the results unless the chunk is long."""
    remembered = functools.lru_cache(1 << 17)(cut)

    @functools.wraps(cut)
    def cut_text(text: str, *language: str) -> list[T]:
        found: list[T] = []
        for chunk in text.split():
            found += (remembered if len(chunk) <= _REMEMBERED else cut)(chunk, *language)
        return found

    return cut_text


def words_of(text: str) -> list[str]:
    """Return the words of a text in their normal form, in order.

    Joined words are cut at what joins them. In scripts without spaces each character with its marks is a word, as word
    boundaries depend on the context.
    """
    found: list[str] = []
    for chunk in text.split():  # most are plain words: looking them up would take three times as long
        if chunk.isascii() and chunk.isalnum():
            found.append(chunk.lower())
        else:
            found += _words(chunk)
    return found


@_by_chunk
def _words(chunk: str) -> Sequence[str]:
    units = (unit for word in _joined_words(chunk) for unit, _, _ in _units(word))
    return [plain for unit in units if (plain := normal(unit).strip("_"))]


def features_of(text: str, languages: Iterable[str] = ()) -> list[str]:
    """Return the words by which TF-IDF and BM25 compare texts whole, in order, without stop words of some languages.

    Words of one letter or digit say little, and are left out, as scikit-learn does. In scripts without spaces each pair
    of neighbouring characters is a word, too.
    """
    stops = frozenset[str]().union(*map(stop_words, languages))
    return [word for word in _features(text) if word not in stops]


@_by_chunk
def _features(chunk: str) -> Sequence[str]:
    found: list[str] = []
    before = ""
    for word in words_of(chunk):
        unspaced = not word.isascii() and _UNIT.fullmatch(word) is not None
        if unspaced or len(word) > 1 or not word.isalnum():
            found += [word, before + word] if unspaced and before else [word]
        before = word if unspaced else ""
    return found


@_by_chunk
def terms_of(chunk: str, language: str) -> Sequence[Term]:
    """Return the terms of a text in a language, in order.

    A joined word is a term, and so is each of its parts: "node.js" is found by itself, by "node" and by "js". In
    scripts without spaces each character is a term and so is each pair of neighbours; of Korean words, which take their
    particles with them, each pair of syllables is.
    """
    pieces = (piece for word in _joined_words(chunk) for piece in _pieces(word))
    return [Term(term, piece) for piece in pieces for term in _document_terms(piece, language) if term]


@_by_chunk
def plain_words(chunk: str) -> Sequence[str]:
    """Return the words of a text that stand by themselves, as they are written, in order.

    They begin with a letter, and are no remains of numbers or of English contractions. In scripts without spaces each
    character with its marks is one.
    """
    found: list[str] = []
    for unit, left, right in (unit for word in _joined_words(chunk) for unit in _units(word)):
        plain = unit.strip("_")
        remains = right in ("'t", "\u2019t") or (left.endswith(("'", "\u2019")) and plain in _ENDINGS)
        letters = len(plain) > 1 and plain[0].isalpha() and not remains
        if letters or _is_signed(plain) or _UNIT.fullmatch(plain):
            found.append(plain)
    return found


@_by_chunk
def _query_pieces(chunk: str) -> Sequence[str]:
    """Return the pieces of a query: of a joined word, no parts of one letter or digit."""
    return [
        piece
        for word in _joined_words(chunk)
        for number, piece in enumerate(_pieces(word))
        if number == 0 or len(piece) > 1 or not _ALONE.match(piece)
    ]


def _joined_words(chunk: str) -> Sequence[str]:
    """Return the words of a chunk, joined ones whole.

    Most chunks are one word of ASCII letters and digits but for signs around it, which is found in a tenth of the time
    of the pattern.
    """
    plain = chunk.rstrip(_BEHIND).lstrip(_BEFORE)
    if plain.isascii() and plain.isalnum():
        return (plain,)
    found: list[str] = WORD.findall(chunk if chunk.isascii() else unicodedata.normalize("NFKC", chunk))
    return found


def _is_signed(word: str) -> bool:
    return word.startswith(".") or word.endswith(("+", "#"))


def _units(word: str) -> Iterator[tuple[str, str, str]]:
    """Return the parts of a joined word, or its characters in scripts without spaces, with what stands on both sides.

    A word with signs, or an emoji, is one part.
    """
    parts = [] if _is_signed(word) or (word.isascii() and word.isalnum()) else list(_PART.finditer(word))
    if not parts:
        yield word, "", ""
    for part in parts:
        for unit in _UNIT.findall(part[0]) if part.lastgroup == "unspaced" else part.captures(0):
            yield unit, word[: part.start()], word[part.end() :]


def _pieces(word: str) -> Iterator[str]:
    """Return what a word is found by: itself, its parts, and the characters and pairs of scripts without spaces."""
    if word.isascii() and word.isalnum():
        yield word
        return
    parts = list(_PART.finditer(word))
    if all(part.lastgroup != "unspaced" or len(part[0]) <= _LONGEST_RUN for part in parts):
        yield word
    for part in parts:
        run = part[0]
        if part.lastgroup == "unspaced":
            units = _UNIT.findall(run)
            if run != word or len(units) > 1:
                yield from units
                yield from map("".join, pairwise(units))
            continue
        if run == word or (len(run) == 1 and word[-1] in "+#"):
            pass  # "C" is not what "C++" is about
        elif word[: part.start()][-1:] not in ("'", "\u2019") or run not in _ENDINGS:
            yield run
        if part.lastgroup == "hangul" and len(run) > 2:
            yield from (run[start : start + 2] for start in range(len(run) - 1))


def content_terms(text: str, languages: Sequence[str]) -> list[Term]:
    """Return the terms of a query without stop words; all of them where it has nothing but stop words.

    In an index of several languages a word is stemmed in each, but in a query of some length only in those that most
    of its stop words are of. A word in capitals, in a query that is not all in capitals, is not a stop word: US, IT,
    WHO. Of a joined word, parts of one letter or digit are left out: BM25 takes the "t" of "https://t.co/UTys" to be
    rare, and "T-shirts" would be found by it.
    """
    pieces = [piece for piece in _query_pieces(text) if term_of(piece, languages[0])]
    own = languages if len(languages) == 1 else most_stop_words([normal(piece) for piece in pieces], languages)
    shouted = text.isupper()
    content = [
        piece
        for piece in pieces
        if (len(piece) > 1 and piece.isupper() and not shouted) or not any(is_stop_word(piece, each) for each in own)
    ]
    stemmed = tuple(own if len(pieces) > _SHORT else languages)
    return [term for piece in content or pieces for term in _query_terms_in(piece, stemmed)]


_SHORT = 20  # words of a query that may not tell their language


@functools.lru_cache(1 << 16)
def is_stop_word(word: str, language: str) -> bool:
    """Return whether a word is a stop word of a language, or what addresses of the web begin with."""
    plain, listed = normal(word), stop_words(language)
    if plain in listed or plain in _ADDRESS_WORDS:
        return True
    return language == "el" and _ACCENTS.sub("", unicodedata.normalize("NFD", plain)) in listed


@functools.lru_cache(1 << 17)
def term_of(word: str, language: str) -> str:
    """Return the term of a word: words that differ in case, accents, width or endings share one."""
    if language == "tr":
        word = word.replace("I", "ı").replace("İ", "i")
    plain = normal(word)
    if not PLAIN.fullmatch(plain):
        return "_".join(_folded(plain).removesuffix("'s").split())
    folded = _folded(plain)
    if folded.isascii() and (language == "en" or not is_latin(language)):
        return stemmer("en")(folded)
    return _folded(stemmer(language)(plain))  # stemmed first: accents tell endings apart


def _document_terms(word: str, language: str) -> tuple[str, ...]:
    """Return the terms that a word of a document is found by: also one for queries that have it without accents."""
    term, bare = term_of(word, language), _bare_term(word, language)
    return (term,) if bare in ("", term) else (term, bare + _WRITTEN_WITH_ACCENTS)


def query_terms(word: str, language: str) -> tuple[str, ...]:
    """Return the terms that find a word of a query, of which a word of a document has one: BM25 adds up all it has."""
    term, bare = term_of(word, language), _bare_term(word, language)
    if word.isascii() and language != "en" and language in STEMMERS and is_latin(language) and PLAIN.fullmatch(term):
        return term, term + _WRITTEN_WITH_ACCENTS
    return (term,) if bare in ("", term) else (term, bare)


@functools.lru_cache(1 << 16)
def _query_terms_in(word: str, languages: tuple[str, ...]) -> tuple[Term, ...]:
    terms = (term for language in languages for term in query_terms(word, language))
    return tuple(Term(term, word) for term in dict.fromkeys(terms))


def _bare_term(word: str, language: str) -> str:
    """Return the term of a word as it is written without its accents; nothing where it has none.

    A stemmer takes other endings of it: "despu" is the stem of "despues", "después" is its own. By both terms, queries
    without accents find 91% (French) and 92% (Spanish) of what the stem finds, else 82%.
    """
    bare = "" if word.isascii() or not is_latin(language) else _folded(normal(word))
    return term_of(bare, language) if bare.isascii() and bare else ""


def _folded(word: str) -> str:
    """Return a word without accents, and with what Hindi spells in two ways in one of them."""
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", word)))
    if _DEVANAGARI.search(plain):
        plain = _NASAL.sub("\u0902", unicodedata.normalize("NFD", plain).replace("\u093c", ""))
    return plain.casefold().translate(_LETTERS)
