"""Languages: their stemmers and stop words, and language detection."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import py3langid.langid
import regex
import Stemmer
import stopwordsiso

from simlte_st.errors import ConfigurationError, did_you_mean
from simlte_st.files import read_json

_DATA = read_json(Path(__file__).with_suffix(".json"))

STEMMERS: dict[str, str] = _DATA["stemmers"]
"""Snowball stemmers by ISO 639-1 code."""

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

_MAX_CHARACTERS = 1_000  # of a text, to detect its language
_MAX_WORDS = 100  # compared with stop words
_SAMPLE = 200  # documents, to detect the languages of a corpus
_MIN_SHARE = 0.05  # of a language in the sample
_MIN_PROBABILITY = 0.9
_SURE = 0.45  # share of stop words that no text reaches in another language: Catalan has .32 of Spanish
_SURE_ENGLISH = 0.35  # its list is shorter: in five sentences of 13 other languages the maximum is .28, in Dutch
_MIN_WORDS = 10  # in a text, to detect its language
_MIN_STOP_WORDS = 0.1  # share; also sure in scripts without spaces, which have no stemmers


@functools.cache
def language_codes() -> frozenset[str]:
    """Return the codes of the languages that have a stemmer or stop words."""
    return frozenset(STEMMERS.keys() | stopwordsiso.langs())


def check_language(code: str) -> str:
    """Return the language of a code: a variety, such as ``nb``, has the code of its main language."""
    codes = sorted(language_codes())
    language = _VARIETIES.get(code.lower(), code.lower())
    if language not in codes:
        named = next((code for code, algorithm in STEMMERS.items() if algorithm == language), None)
        hint = f" Did you mean {named!r}?" if named else did_you_mean(language, codes)
        raise ConfigurationError(
            f"language={code!r}: must be the ISO 639-1 code of a language with a stemmer or stop words.{hint} "
            f"Available: {', '.join(codes)}."
        )
    return language


@functools.cache
def stemmer(language: str) -> Callable[[str], str]:
    """Return the stemming function of a language, for lower-case words with accents; ``str`` if there is none."""
    # No cache: callers have one.
    return Stemmer.Stemmer(STEMMERS[language], 0).stemWord if language in STEMMERS else str


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language in lower case; empty if there is no list."""
    if language == "en":
        return _ENGLISH
    words = stopwordsiso.stopwords(language) if stopwordsiso.has_lang(language) else ()
    return frozenset(word.lower() for word in words if " " not in word).difference(_CONTENT.get(language, ()))


@functools.cache
def is_latin(language: str) -> bool:
    """Return whether a language uses Latin script; in others, Latin words count as English."""
    stops = stop_words(language)
    return 2 * sum(regex.search(r"\p{Latin}", word) is not None for word in stops) > len(stops)


@functools.cache
def _identifier() -> py3langid.langid.LanguageIdentifier:
    """Return py3langid's identifier (Lui and Baldwin, "langid.py: An Off-the-shelf Language Identification Tool")."""
    return py3langid.langid.LanguageIdentifier.from_model_file(py3langid.langid.MODEL_FILE, norm_probs=True)


class LanguageFinder:
    """Find the language of each document in a corpus.

    The share of stop words decides between the languages of the first documents. If it is small, py3langid decides; a
    new language needs a longer text, with more of its stop words than of the known languages.

    Args:
        texts: The first documents of the corpus.
        language: The language of all documents, if known.
        languages: Languages that the corpus is known to have.

    Attributes:
        languages: The languages of the corpus, the most frequent first.
    """

    def __init__(self, texts: Sequence[str], language: str | None = None, languages: Sequence[str] = ()) -> None:
        self._language = language
        self.languages = [language] if language else list(dict.fromkeys([*languages, *_detect_languages(texts)]))

    def __call__(self, text: str) -> str:
        """Return the language of a text."""
        if self._language is not None:
            return self._language
        words = _first_words(text)
        best = most_stop_words(words, self.languages)[0]
        share = stop_word_share(words, best)
        sure = (_SURE_ENGLISH if best == "en" else _SURE) if _is_spaced(words) else _MIN_STOP_WORDS
        detected = None if share >= sure else _detect_language(text)
        if detected in self.languages or (detected and stop_word_share(words, detected) >= share):
            return detected
        return best


def _detect_languages(texts: Sequence[str]) -> list[str]:
    """Return the languages of a corpus, the most frequent first; English if detection fails."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)][:_SAMPLE]
    detected = [language for language in map(_detect_language, sample) if language]
    counts = Counter(detected or [_detect_language("\n".join(sample)) or "en"])
    return [language for language, count in counts.most_common() if count >= _MIN_SHARE * sum(counts.values())]


def _detect_language(text: str) -> str | None:
    """Return the language of a text; None if it has few words or few stop words."""
    if len(words := _first_words(text)) < _MIN_WORDS:
        return None
    code, probability = _identifier().classify(text[:_MAX_CHARACTERS])
    language: str = _VARIETIES.get(code, code)
    if probability < _MIN_PROBABILITY or language not in language_codes():
        return None
    is_unlikely = _is_spaced(words) and stop_words(language) and stop_word_share(words, language) < _MIN_STOP_WORDS
    return None if is_unlikely else language


def _is_spaced(words: Sequence[str]) -> bool:
    return 2 * sum(len(word) > 1 for word in words) > len(words)


def _first_words(text: str) -> list[str]:
    words: list[str] = _WORD.findall(text[:_MAX_CHARACTERS].lower())
    return words[:_MAX_WORDS]


def stop_word_share(words: Sequence[str], language: str) -> float:
    """Return the share of the words that are stop words of a language."""
    return sum(map(stop_words(language).__contains__, words)) / max(1, len(words))


def most_stop_words(words: Sequence[str], languages: Iterable[str]) -> list[str]:
    """Return the languages with the largest share of stop words; several in a tie."""
    shares = {language: stop_word_share(words, language) for language in languages}
    return [language for language, share in shares.items() if share == max(shares.values())]
