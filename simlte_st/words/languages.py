"""Languages: their stemmers and stop words, and language detection."""

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
"""Snowball algorithms by ISO 639-1 code."""

PUNKT: dict[str, str] = _DATA["punkt"]
"""NLTK's names of the languages in ``punkt_tab``, by ISO 639-1 code."""

_VARIETIES: dict[str, str] = _DATA["varieties"]  # codes of varieties, and the languages used for them
_ENGLISH = frozenset(_DATA["english"])  # scikit-learn's stop words; importing it takes a second
_CONTENT: dict[str, list[str]] = _DATA["content"]  # content words on stopwordsiso's lists

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Tham}\p{Javanese}\p{Balinese}"
    r"\u30fc\u3005"
)
"""Scripts without spaces between words, for a character class."""

_WORD = regex.compile(rf"[{UNSPACED}]|[\p{{L}}\p{{M}}]+")

_READ = 1_000  # characters of a text that are used to detect its language
_WORDS = 100  # maximum number of words compared with stop words
_SAMPLE = 200  # documents that are used to detect the languages of a corpus
_LEAST_SHARE = 0.05  # minimum share of the sample in a language of the corpus
_LIKELY = 0.9
_SURE = 0.45  # share of stop words that no text reaches in another language: Catalan has .32 of Spanish
_SURE_ENGLISH = 0.35  # its list is shorter: in five sentences of 13 other languages the maximum is .28, in Dutch
_FEWEST = 10  # minimum words in a text for detection
_LEAST_STOP_WORDS = 0.1  # minimum share; sufficient in scripts without spaces, which have no stemmers


@functools.cache
def language_codes() -> frozenset[str]:
    """Return the codes of the languages that have a stemmer or stop words."""
    return frozenset(STEMMERS.keys() | stopwordsiso.langs())


def check_language(code: str) -> str:
    """Return the language code that is used internally."""
    known = sorted(language_codes())
    found = _VARIETIES.get(code.lower(), code.lower())
    if found not in known:
        named = next((each for each, algorithm in STEMMERS.items() if algorithm == found), None)
        hint = f" Did you mean {named!r}?" if named else did_you_mean(found, known)
        raise ConfigurationError(
            f"language={code!r}: must be the ISO 639-1 code of a language with a stemmer or stop words.{hint} "
            f"Available: {', '.join(known)}."
        )
    return found


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return the stemming function of a language, for lower-case words with accents; ``str`` if there is none."""
    algorithm = STEMMERS.get(language)
    if algorithm is None:
        return str
    stem: Callable[[str], str] = Stemmer.Stemmer(algorithm, 0).stemWord  # no cache: callers have one
    return stem


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language in lower case; empty if there is no list."""
    if language == "en":
        return _ENGLISH
    listed = stopwordsiso.stopwords(language) if stopwordsiso.has_lang(language) else ()
    return frozenset(word.lower() for word in listed if " " not in word).difference(_CONTENT.get(language, ()))


@functools.cache
def is_latin(language: str) -> bool:
    """Return whether a language uses Latin script; in others, Latin words count as English."""
    listed = stop_words(language)
    return 2 * sum(regex.search(r"\p{Latin}", word) is not None for word in listed) > len(listed)


@functools.cache
def _identifier() -> Any:
    """Return py3langid's identifier (Lui and Baldwin, "langid.py: An Off-the-shelf Language Identification Tool")."""
    return py3langid.langid.LanguageIdentifier.from_model_file(py3langid.langid.MODEL_FILE, norm_probs=True)


class LanguageFinder:
    """Finds the language of each document in a corpus.

    The share of stop words decides between the languages of the first documents. If it is small, py3langid is used; a
    new language needs a longer text, with more of its stop words than of the known languages.

    Attributes:
        languages: The languages of the corpus, the most frequent first.
    """

    def __init__(self, first: Sequence[str], named: str | None = None, known: Sequence[str] = ()) -> None:
        self._named = named
        self.languages = [named] if named else list(dict.fromkeys([*known, *_detect_languages(first)]))

    def __call__(self, text: str) -> str:
        """Return the language of a text."""
        if self._named is not None:
            return self._named
        words = _first_words(text)
        best = most_stop_words(words, self.languages)[0]
        share = stop_word_share(words, best)
        sure = (_SURE_ENGLISH if best == "en" else _SURE) if _is_spaced(words) else _LEAST_STOP_WORDS
        told = None if share >= sure else _detect_language(text)
        return told if told in self.languages or (told and stop_word_share(words, told) >= share) else best


def _detect_languages(texts: Sequence[str]) -> list[str]:
    """Return the languages of a corpus, the most frequent first; English if detection fails."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)][:_SAMPLE]
    found = Counter(filter(None, map(_detect_language, sample))) or Counter(
        [_detect_language("\n".join(sample)) or "en"]
    )
    return [language for language, count in found.most_common() if count >= _LEAST_SHARE * sum(found.values())]


def _detect_language(text: str) -> str | None:
    """Return the language of a text; None if it has few words or few stop words."""
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
    """Return the languages with the largest share of stop words; several in a tie."""
    shares = {language: stop_word_share(words, language) for language in languages}
    return [language for language, share in shares.items() if share == max(shares.values())]
