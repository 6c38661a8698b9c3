"""The analyzer: split texts into words, and turn words into index terms.

Search, explanations, TF-IDF, BM25, topic names and duplicate detection share these rules.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import regex
import Stemmer

from simlte_st.words.languages import STEMMERS, UNSPACED, is_latin, most_stop_words, stemmer, stop_words

ANALYZER: dict[str, int | str] = {"version": 3, "snowball": Stemmer.version()}
"""Version of the rules that produce index terms."""

_CHARACTER = r"[\p{L}\p{M}\p{N}\p{Pc}\p{Default_Ignorable_Code_Point}]"
_NUMBER = r"(?<=\p{N})[,:\u066b\u066c](?=\p{N})"
_PICTURE = r"\p{RI}\p{RI}|[\p{Extended_Pictographic}--[\u0000-\u21ff\u3030\u303d\u3297\u3299]]"
WORD = regex.compile(
    # Letters, digits and their marks, which some characters join: node.js, 10.17.3.9, 12,500.75, don't,
    # INV-2024-17, 10:30, name@example.com. Symbols that are part of a word: .NET, C++, C#. Emoji.
    rf"(?V1)(?:(?<![^\s(\[{{/\"'\u201c\u2018])\.(?=\p{{L}}{{2}}))?"
    rf"{_CHARACTER}+(?:(?:[.@'\u2019\u00b7]|[-/](?=\S{{0,40}}\p{{N}})|{_NUMBER}){_CHARACTER}+)*"
    rf"(?:(?<=\p{{L}})(?:\+\+(?![\p{{L}}+])|[+#](?![\p{{L}}\p{{N}}+#])))?|{_PICTURE}"
)
"""Matches a word, or several joined words."""

PLAIN = regex.compile(r"[\p{L}\p{M}]+")
"""Matches a term made up entirely of letters and combining marks."""

_PART = regex.compile(  # with zero-width non-joiners, which occur inside Persian words
    rf"(?V1)(?P<unspaced>[{UNSPACED}]+)|(?P<hangul>\p{{Hangul}}+)"
    rf"|(?:[{_CHARACTER}--[\u200c{UNSPACED}\p{{Hangul}}]]|(?<!\p{{Arabic}})\u200c)+"
)
_SPACED = regex.compile(rf"[^{UNSPACED}\p{{Hangul}}]")  # scripts that write spaces between words, except Hangul
_UNIT = regex.compile(rf"[{UNSPACED}]\p{{M}}*")
_ENDINGS = frozenset(("d", "ll", "m", "re", "s", "t", "ve"))  # not words when they follow an apostrophe

_BEFORE, _BEHIND = "([{\"'\u201c\u2018", ".,;:!?)]}\"'\u201d\u2019"  # punctuation around a word
_ADDRESS_WORDS = frozenset(("http", "https", "www"))
_MAX_CACHED_LENGTH = 64  # maximum characters of a cached chunk
_MAX_RUN = 12  # characters; in scripts without spaces, longer runs are sentences rather than terms

_CHANGED = regex.compile(  # invisible characters, optional vowel signs, kashida, digits of other scripts
    r"\p{Default_Ignorable_Code_Point}|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640"
    r"\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0730-\u074a\u08ca-\u08ff]"
    r"|\u20e3|(?![0-9])\p{Nd}"
)
_SIGNS = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u066b": ".", "\u066c": ","})
_ACCENTS = regex.compile(r"[\u0300-\u036f]+")
_WRITTEN_WITH_ACCENTS = "\u0301"  # suffix of an accented word's second term; other terms have no accents
_LETTERS = str.maketrans({"đ": "d", "ð": "d", "ø": "o", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h"})
_DEVANAGARI = regex.compile(r"[\u0900-\u097f]")
_NASAL = regex.compile("[\u0919\u091e\u0923\u0928\u092e]\u094d(?=[\u0915-\u0939])|\u0901")  # all normalised to \u0902

T = TypeVar("T")


class Term(NamedTuple):
    """A normalised word (lower-cased, unaccented, stemmed) and the word as written in the text."""

    term: str
    word: str


def normal(text: str) -> str:
    """Lower-case a text and unify its spelling, keeping accents.

    Character width, digit scripts, invisible characters, optional vowel signs and kashida are normalised.
    """
    if text.isascii():
        return text.lower()
    lower = unicodedata.normalize("NFKC", text).casefold()
    plain = _CHANGED.sub(lambda sign: str(unicodedata.decimal(sign[0], "")), lower)
    return unicodedata.normalize("NFKC", plain).translate(_SIGNS)


def _by_chunk(split_chunk: Callable[..., Sequence[T]]) -> Callable[..., list[T]]:
    """Apply a function to each space-separated chunk, caching the results for short chunks."""
    split_cached = functools.lru_cache(1 << 17)(split_chunk)

    @functools.wraps(split_chunk)
    def split_text(text: str, *language: str) -> list[T]:
        pieces: list[T] = []
        for chunk in text.split():
            pieces += (split_cached if len(chunk) <= _MAX_CACHED_LENGTH else split_chunk)(chunk, *language)
        return pieces

    return split_text


def split_words(text: str) -> list[str]:
    """Return the normalised words of a text, in order.

    Joined words are split. In scripts without spaces, each character with its marks counts as a word, because word
    boundaries depend on the context.
    """
    words: list[str] = []
    for chunk in text.split():  # most chunks are plain words, for which caching would be three times slower
        if chunk.isascii() and chunk.isalnum():
            words.append(chunk.lower())
        else:
            words += _split_chunk(chunk)
    return words


@_by_chunk
def _split_chunk(chunk: str) -> Sequence[str]:
    units = (unit for word in _joined_words(chunk) for unit, _, _ in _units(word))
    return [plain for unit in units if (plain := normal(unit).strip("_"))]


def extract_features(text: str, languages: Iterable[str] = ()) -> list[str]:
    """Return the words of a text for TF-IDF and BM25, in order, without the stop words of ``languages``.

    Words of a single letter or digit are dropped, as in scikit-learn. In scripts without spaces, each pair of adjacent
    characters also counts as a word.
    """
    stops = frozenset[str]().union(*map(stop_words, languages))
    return [word for word in _features(text) if word not in stops]


@_by_chunk
def _features(chunk: str) -> Sequence[str]:
    features: list[str] = []
    previous = ""
    for word in split_words(chunk):
        is_unspaced = not word.isascii() and _UNIT.fullmatch(word) is not None
        if is_unspaced or len(word) > 1 or not word.isalnum():
            features += [word, previous + word] if is_unspaced and previous else [word]
        previous = word if is_unspaced else ""
    return features


@_by_chunk
def extract_terms(chunk: str, language: str) -> Sequence[Term]:
    """Return the terms of a text in a language, in order.

    A joined word and each of its parts are terms, so "node.js", "node" and "js" all find "node.js". In scripts without
    spaces, each character and each pair of adjacent characters are terms. In Korean, whose particles are attached to
    words, each pair of syllables is a term.
    """
    pieces = (piece for word in _joined_words(chunk) for piece in _pieces(word))
    return [Term(term, piece) for piece in pieces for term in _document_terms(piece, language) if term]


@_by_chunk
def plain_words(chunk: str) -> Sequence[str]:
    """Return the words of a text as written, in order, without fragments.

    Words begin with a letter and are not parts of numbers or English contractions. In scripts without spaces, each
    character with its marks counts as a word.
    """
    words: list[str] = []
    for unit, left, right in (unit for word in _joined_words(chunk) for unit in _units(word)):
        plain = unit.strip("_")
        is_fragment = right in ("'t", "\u2019t") or (left.endswith(("'", "\u2019")) and plain in _ENDINGS)
        is_word = len(plain) > 1 and plain[0].isalpha() and not is_fragment
        if is_word or _has_symbol(plain) or _UNIT.fullmatch(plain):
            words.append(plain)
    return words


@_by_chunk
def _query_pieces(chunk: str) -> Sequence[str]:
    """Return the pieces of a query, except single letters or digits in joined words."""
    numbered = (pair for word in _joined_words(chunk) for pair in enumerate(_pieces(word)))
    return [piece for number, piece in numbered if number == 0 or len(piece) > 1 or not _SPACED.match(piece)]


def _joined_words(chunk: str) -> Sequence[str]:
    """Return the words of a chunk, without splitting joined words.

    Most chunks are one ASCII word with surrounding punctuation; stripping is ten times as fast as the pattern.
    """
    plain = chunk.rstrip(_BEHIND).lstrip(_BEFORE)
    if plain.isascii() and plain.isalnum():
        return (plain,)
    words: list[str] = WORD.findall(chunk if chunk.isascii() else unicodedata.normalize("NFKC", chunk))
    return words


def _has_symbol(word: str) -> bool:
    return word.startswith(".") or word.endswith(("+", "#"))


def _units(word: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of a joined word, or its characters in scripts without spaces, with the text on either side.

    A word with symbols, such as "C++", is a single part, as is an emoji.
    """
    parts = [] if _has_symbol(word) or (word.isascii() and word.isalnum()) else list(_PART.finditer(word))
    if not parts:
        yield word, "", ""
    for part in parts:
        for unit in _UNIT.findall(part[0]) if part.lastgroup == "unspaced" else part.captures(0):
            yield unit, word[: part.start()], word[part.end() :]


def _pieces(word: str) -> Iterator[str]:
    """Yield a word, its parts and, in scripts without spaces, their characters and character pairs."""
    if word.isascii() and word.isalnum():
        yield word
        return
    parts = list(_PART.finditer(word))
    if all(part.lastgroup != "unspaced" or len(part[0]) <= _MAX_RUN for part in parts):
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
            pass  # "C" is not a part of "C++" but another word
        elif word[: part.start()][-1:] not in ("'", "\u2019") or run not in _ENDINGS:
            yield run
        if part.lastgroup == "hangul" and len(run) > 2:
            yield from (run[start : start + 2] for start in range(len(run) - 1))


def content_terms(text: str, languages: Sequence[str]) -> list[Term]:
    """Return a query's terms without stop words, or all of its terms if it consists only of stop words.

    If there are several languages, each word is stemmed in all of them; in longer queries, only in the languages whose
    stop words are most frequent in the query. A word in capitals such as US, IT or WHO is not a stop word unless the
    whole query is in capitals. Single letters and digits in joined words are dropped, because to BM25 the "t" in
    "https://t.co/UTys" is a rare term, and it would match "T-shirts".
    """
    pieces = [piece for piece in _query_pieces(text) if word_to_term(piece, languages[0])]
    likely = languages if len(languages) == 1 else most_stop_words([normal(piece) for piece in pieces], languages)
    acronyms = [] if text.isupper() else [piece for piece in pieces if len(piece) > 1 and piece.isupper()]
    stops = {piece for piece in pieces if any(is_stop_word(piece, language) for language in likely)}
    content = [piece for piece in pieces if piece in acronyms or piece not in stops]
    stem_languages = tuple(likely if len(pieces) > _SHORT_QUERY else languages)
    return [term for piece in content or pieces for term in _query_terms_in(piece, stem_languages)]


_SHORT_QUERY = 20  # words; queries up to this length are too short for language detection


@functools.lru_cache(1 << 16)
def is_stop_word(word: str, language: str) -> bool:
    """Return whether a word is a stop word in a language, or the beginning of a URL."""
    plain, stops = normal(word), stop_words(language)
    if plain in stops or plain in _ADDRESS_WORDS:
        return True
    return language == "el" and _ACCENTS.sub("", unicodedata.normalize("NFD", plain)) in stops


@functools.lru_cache(1 << 17)
def word_to_term(word: str, language: str) -> str:
    """Return the term for a word; words that differ only in case, accents, width or endings share one."""
    if language == "tr":
        word = word.replace("I", "ı").replace("İ", "i")
    plain = normal(word)
    if not PLAIN.fullmatch(plain):
        return "_".join(_fold_accents(plain).removesuffix("'s").split())
    folded = _fold_accents(plain)
    if folded.isascii() and (language == "en" or not is_latin(language)):
        return stemmer("en")(folded)
    return _fold_accents(stemmer(language)(plain))  # stem first, because accents distinguish endings


def _document_terms(word: str, language: str) -> tuple[str, ...]:
    """Return the terms for a word in a document, including one that matches queries without accents."""
    term, bare = word_to_term(word, language), _bare_term(word, language)
    return (term,) if bare in ("", term) else (term, bare + _WRITTEN_WITH_ACCENTS)


def query_terms(word: str, language: str) -> tuple[str, ...]:
    """Return the alternative terms for a query word; a document has only one of them, as BM25 adds up matches."""
    term, bare = word_to_term(word, language), _bare_term(word, language)
    if word.isascii() and language != "en" and language in STEMMERS and is_latin(language) and PLAIN.fullmatch(term):
        return term, term + _WRITTEN_WITH_ACCENTS
    return (term,) if bare in ("", term) else (term, bare)


@functools.lru_cache(1 << 16)
def _query_terms_in(word: str, languages: tuple[str, ...]) -> tuple[Term, ...]:
    terms = (term for language in languages for term in query_terms(word, language))
    return tuple(Term(term, word) for term in dict.fromkeys(terms))


def _bare_term(word: str, language: str) -> str:
    """Return the term for a word spelled without its accents; empty if it has none.

    The stems differ: "despues" becomes "despu", but "después" is unchanged. As documents are indexed under both terms,
    queries without accents find 91% (French) and 92% (Spanish) of the words that queries with accents find, up from
    82%.
    """
    bare = "" if word.isascii() or not is_latin(language) else _fold_accents(normal(word))
    return word_to_term(bare, language) if bare.isascii() and bare else ""


def _fold_accents(word: str) -> str:
    """Return a word without accents, with Hindi spelling variants unified."""
    if word.isascii():
        return word
    plain = unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", word)))
    if _DEVANAGARI.search(plain):
        plain = _NASAL.sub("\u0902", unicodedata.normalize("NFD", plain).replace("\u093c", ""))
    return plain.casefold().translate(_LETTERS)
