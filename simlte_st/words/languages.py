"""Stemmers and stop words by language, and language detection."""

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

_VARIETIES: dict[str, str] = _DATA["varieties"]  # maps the code of a variety to the language used for it
_ENGLISH = frozenset(_DATA["english"])  # scikit-learn's stop words, copied because importing it takes a second
_CONTENT: dict[str, list[str]] = _DATA["content"]  # content words that stopwordsiso lists as stop words

UNSPACED = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Tham}\p{Javanese}\p{Balinese}"
    r"\u30fc\u3005"
)
"""Scripts without spaces between words, as the inside of a regular-expression character class."""

_WORD = regex.compile(rf"[{UNSPACED}]|[\p{{L}}\p{{M}}]+")

_MAX_CHARACTERS = 1_000  # characters of a text used to detect its language
_MAX_WORDS = 100  # words of a text compared with stop words
_SAMPLE = 200  # documents used to detect the languages of a corpus
_MIN_SHARE = 0.05  # minimum share of the sample for a language to count
_MIN_PROBABILITY = 0.9
_SURE = 0.45  # stop-word share that no text reaches in another language: Catalan text reaches .32 with Spanish
_SURE_ENGLISH = 0.35  # a shorter list: over five sentences in each of 13 other languages, the maximum is .28 (Dutch)
_MIN_WORDS = 10  # minimum number of words for language detection
_MIN_STOP_WORDS = 0.1  # minimum share; also sufficient in scripts without spaces, which have no stemmers


@functools.cache
def language_codes() -> frozenset[str]:
    """Return the codes of all languages with a stemmer or stop words."""
    return frozenset(STEMMERS.keys() | stopwordsiso.langs())


def check_language(code: str) -> str:
    """Validate a language code, and replace that of a variety, such as ``nb``, by its main language's."""
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
    """Return a language's stemming function, for lower-case words with accents; ``str`` if it has none."""
    # Not cached here, because callers cache the results.
    return Stemmer.Stemmer(STEMMERS[language], 0).stemWord if language in STEMMERS else str


@functools.cache
def stop_words(language: str) -> frozenset[str]:
    """Return a language's stop words in lower case; an empty set if there is no list."""
    if language == "en":
        return _ENGLISH
    words = stopwordsiso.stopwords(language) if stopwordsiso.has_lang(language) else ()
    return frozenset(word.lower() for word in words if " " not in word).difference(_CONTENT.get(language, ()))


@functools.cache
def is_latin(language: str) -> bool:
    """Return whether a language uses the Latin script; in other languages, Latin words count as English."""
    stops = stop_words(language)
    return 2 * sum(regex.search(r"\p{Latin}", word) is not None for word in stops) > len(stops)


@functools.cache
def _identifier() -> py3langid.langid.LanguageIdentifier:
    """Return py3langid's identifier (Lui and Baldwin, "langid.py: An Off-the-shelf Language Identification Tool")."""
    return py3langid.langid.LanguageIdentifier.from_model_file(py3langid.langid.MODEL_FILE, norm_probs=True)


class LanguageFinder:
    """Find the language of each document in a corpus.

    The share of stop words decides among the languages of the first documents. If that share is small, py3langid
    decides; it picks a new language only for a longer text with at least as many stop words in it as in a known one.

    Args:
        texts: The first documents of the corpus.
        language: The language of all documents, if known.
        languages: Languages known to occur in the corpus.

    Attributes:
        languages: The languages of the corpus, most frequent first.
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
    """Return the languages of a corpus, most frequent first; English if detection fails."""
    sample = texts[:: max(1, len(texts) // _SAMPLE)][:_SAMPLE]
    detected = [language for language in map(_detect_language, sample) if language]
    counts = Counter(detected or [_detect_language("\n".join(sample)) or "en"])
    return [language for language, count in counts.most_common() if count >= _MIN_SHARE * sum(counts.values())]


def _detect_language(text: str) -> str | None:
    """Return the language of a text; None if it has too few words or stop words."""
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
    """Return the fraction of the words that are stop words in a language."""
    return sum(map(stop_words(language).__contains__, words)) / max(1, len(words))


def most_stop_words(words: Sequence[str], languages: Iterable[str]) -> list[str]:
    """Return the languages with the largest share of stop words, including ties."""
    shares = {language: stop_word_share(words, language) for language in languages}
    return [language for language, share in shares.items() if share == max(shares.values())]
