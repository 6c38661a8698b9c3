"""The languages that words are stemmed in, their stop words, and which of them a text is in."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import py3langid.langid
import regex
import Stemmer
import stopwordsiso

from simlte_st.errors import ConfigurationError, did_you_mean
from simlte_st.files import read_json

_DATA = read_json(Path(__file__).with_suffix(".json"))

STEMMERS: dict[str, str] = _DATA["stemmers"]
"""Snowball's algorithms, by the ISO 639-1 code of the language."""

PUNKT: dict[str, str] = _DATA["punkt"]
"""NLTK's names of the languages that ``punkt_tab`` has parameters of, by the same codes."""

_VARIETIES: dict[str, str] = _DATA["varieties"]  # their codes, and those of the languages that they are taken for
_ENGLISH = frozenset(_DATA["english"])  # scikit-learn's function words: it takes a second to import, and may change
_CONTENT: dict[str, list[str]] = _DATA["content"]  # words on stopwordsiso's lists that people search for

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Tham}\p{Javanese}\p{Balinese}"
    r"\u30fc\u3005"
)
"""Scripts that do not write spaces between words, for a set of characters."""

_WORD = regex.compile(rf"[{UNSPACED}]|[\p{{L}}\p{{M}}]+")

_READ = 1_000  # characters of a text by which its language is told
_WORDS = 100  # of them that are compared with stop words
_SAMPLE = 200  # documents by which the languages of a corpus are told
_LEAST_SHARE = 0.05  # of the sample that are in a language of the corpus
_LIKELY = 0.9
_SURE = 0.45  # share of stop words that no text has of another language: Catalan has .32 of Spanish
_SURE_ENGLISH = 0.35  # of its shorter list: of five sentences of 13 other languages, Dutch have .28 at most
_FEWEST = 10  # words of a text that tells its language itself
_LEAST_STOP_WORDS = 0.1  # share of them; in scripts without spaces, which have no stemmers, enough to be sure


@functools.cache
def language_codes() -> frozenset[str]:
    """Return the codes of the languages that have a stemmer or stop words."""
    return frozenset(STEMMERS.keys() | stopwordsiso.langs())


def check_language(code: str) -> str:
    """Return the code of a language as it is used here."""
    known = sorted(language_codes())
    found = _VARIETIES.get(code.lower(), code.lower())
    if found not in known:
        named = next((each for each, algorithm in STEMMERS.items() if algorithm == found), None)
        hint = f" Did you mean {named!r}?" if named else did_you_mean(found, known)
        raise ConfigurationError(
            f"language={code!r}: must be an ISO 639-1 code of a language with a stemmer or stop words.{hint} There "
            f"are: {', '.join(known)}."
        )
    return found


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return what stems the words of a language, in lower case and with their accents; itself where nothing does."""
    algorithm = STEMMERS.get(language)
    if algorithm is None:
        return str
    stem: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord  # words are remembered by who calls it
    return stem


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the function words of a language, in lower case; none where there is no list."""
    if language == "en":
        return _ENGLISH
    listed = stopwordsiso.stopwords(language) if stopwordsiso.has_lang(language) else ()
    return frozenset(word.lower() for word in listed if " " not in word).difference(_CONTENT.get(language, ()))


@functools.cache
def is_latin(language: str) -> bool:
    """Return whether a language is written in Latin letters; in others, words in these letters count as English."""
    listed = stop_words(language)
    return 2 * sum(regex.search(r"\p{Latin}", word) is not None for word in listed) > len(listed)


@functools.cache
def _identifier() -> Any:
    """Return py3langid's identifier (Lui and Baldwin, "langid.py: An Off-the-shelf Language Identification Tool")."""
    return py3langid.langid.LanguageIdentifier.from_model_file(py3langid.langid.MODEL_FILE, norm_probs=True)


class LanguageFinder:
    """Finds the language of each document of a corpus.

    Most function words decide between the languages of the first documents. Where they are few, py3langid is asked; a
    language that is not among those needs a text of some words, and more of its function words than of theirs.

    Attributes:
        languages: Those that the corpus has, beginning with the one of most of the first texts.
    """

    def __init__(self, first: Sequence[str], named: str | None = None, known: Sequence[str] = ()) -> None:
        self._named = named
        self.languages = [named] if named else list(dict.fromkeys([*known, *_languages_of(first)]))

    def __call__(self, text: str) -> str:
        """Return the language of a text."""
        if self._named is not None:
            return self._named
        words = _first_words(text)
        best = most_stop_words(words, self.languages)[0]
        share = stop_word_share(words, best)
        sure = (_SURE_ENGLISH if best == "en" else _SURE) if _is_spaced(words) else _LEAST_STOP_WORDS
        told = None if share >= sure else _told(text)
        return told if told in self.languages or (told and stop_word_share(words, told) >= share) else best


def _languages_of(texts: Sequence[str]) -> list[str]:
    """Return the languages of a corpus, from the most frequent on; English where nothing tells."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)][:_SAMPLE]
    found = Counter(filter(None, map(_told, sample))) or Counter([_told("\n".join(sample)) or "en"])
    return [language for language, count in found.most_common() if count >= _LEAST_SHARE * sum(found.values())]


def _told(text: str) -> str | None:
    """Return the language that a text is in; None where its words are few, or hardly any is a stop word."""
    words = _first_words(text)
    language, likely = _identifier().classify(text[:_READ]) if len(words) >= _FEWEST else ("", 0.0)
    language = _VARIETIES.get(language, language)
    if likely < _LIKELY or language not in language_codes():
        return None
    few = _is_spaced(words) and stop_words(language) and stop_word_share(words, language) < _LEAST_STOP_WORDS
    return None if few else language


def _is_spaced(words: Sequence[str]) -> bool:
    return 2 * sum(len(word) > 1 for word in words) > len(words)


def _first_words(text: str) -> list[str]:
    found: list[str] = _WORD.findall(text[:_READ].lower())
    return found[:_WORDS]


def stop_word_share(words: Sequence[str], language: str) -> float:
    """Return the share of the words that are stop words of a language."""
    return sum(map(stop_words(language).__contains__, words)) / max(1, len(words))


def most_stop_words(words: Sequence[str], languages: Iterable[str]) -> list[str]:
    """Return the languages that most of the words are stop words of: several where as many are."""
    shares = {language: stop_word_share(words, language) for language in languages}
    return [language for language, share in shares.items() if share == max(shares.values())]
