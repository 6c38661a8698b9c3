"""Sentence segmenters: NLTK's Punkt, or any callable from a text to its segments.

A segmenter may drop or normalise white space between segments; it must keep every other character, in order, which
:func:`simlte_st.data.sentences.cut_sentences` checks on each call.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from simlte_st.errors import ConfigurationError

if TYPE_CHECKING:  # NLTK takes a second to import
    from nltk.tokenize.punkt import PunktParameters

logger = logging.getLogger(__name__)

SAMPLE_CHARACTERS = 1_000_000
"""Characters of a corpus that Punkt learns its parameters from, in a few seconds; more text changes little."""

LANGUAGES = {
    "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian",
    "fi": "finnish", "fr": "french", "it": "italian", "ml": "malayalam", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ru": "russian", "sl": "slovene", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""NLTK's names of the languages that ``punkt_tab`` has parameters of, by their ISO 639-1 codes."""

_LONGEST = 100_000  # characters of one text that Punkt learns from, so that no single document decides
_TOLD = 1_000  # texts that tell the languages of a corpus

T = TypeVar("T")


class Segmenter(Protocol):
    """Cuts one paragraph into sentences."""

    def __call__(self, text: str, /) -> Sequence[str]:
        """Return the segments of ``text`` in order; their non-space characters are exactly those of ``text``."""
        ...


def cut_at(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """Cut a text at the beginnings of spans, so that nothing between spans is lost."""
    starts = [start for start, _ in spans]
    starts[:1] = [0]
    return [text[start:stop].strip() for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]


class PunktSegmenter:
    """NLTK's Punkt (Kiss & Strunk, 2006), with installed or learned parameters.

    Args:
        parameters: Abbreviations, collocations, frequent sentence starters and the orthographic context of words.
            Without them, Punkt cuts after every full stop.
    """

    def __init__(self, parameters: PunktParameters | None = None) -> None:
        from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

        self.parameters = parameters if parameters is not None else PunktParameters()
        self._tokenizer = PunktSentenceTokenizer(self.parameters)

    def __call__(self, text: str, /) -> list[str]:
        """Cut ``text``; see :func:`cut_at`."""
        try:
            return cut_at(text, self._tokenizer.span_tokenize(text))
        except TimeoutError:
            # NLTK gives each of its regular expressions a few seconds, which only adversarial text needs.
            logger.warning("Punkt timed out on a text that begins with %r; it is cut by lines and length.", text[:40])
            return [text]

    def of(self, text: str) -> PunktSegmenter:
        """Return what cuts a document into sentences, by its whole text."""
        return self

    @classmethod
    def installed(cls, language: str = "english") -> PunktSegmenter | None:
        """Load NLTK's ``punkt_tab`` parameters for ``language``; None if they are not installed."""
        from nltk.data import find
        from nltk.tokenize.punkt import load_punkt_params

        try:
            return cls(load_punkt_params(find(f"tokenizers/punkt_tab/{language}/")))
        except (LookupError, FileNotFoundError):  # the latter before NLTK 3.9.2, for an incomplete folder
            return None

    @classmethod
    def learn(cls, texts: Iterable[str], max_characters: int = SAMPLE_CHARACTERS) -> PunktSegmenter:
        """Learn the parameters, without labels, from the first ``max_characters`` characters of ``texts``."""
        from nltk.tokenize.punkt import PunktTrainer

        trainer = PunktTrainer()
        left = max_characters
        for text in texts:
            if left <= 0:
                break
            try:
                trainer.train(text[: min(left, _LONGEST)], finalize=False)
            except TimeoutError:
                logger.warning("Punkt timed out while it learned from a text that begins with %r.", text[:40])
            left -= len(text)
        if left == max_characters:
            return cls()
        trainer.finalize_training()
        return cls(trainer.get_params())

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON values, sorted, so that the same corpus gives the same bytes."""
        return {
            "abbreviations": sorted(self.parameters.abbrev_types),
            "collocations": sorted(list(pair) for pair in self.parameters.collocations),
            "sentence_starters": sorted(self.parameters.sent_starters),
            "orthographic_context": dict(sorted(self.parameters.ortho_context.items())),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PunktSegmenter:
        """Return the segmenter of :meth:`to_dict`'s values."""
        if "languages" in values:
            return PunktOfLanguages({code: cls.from_dict(own) for code, own in values["languages"].items()})
        from nltk.tokenize.punkt import PunktParameters

        parameters = PunktParameters()
        parameters.abbrev_types = set(values["abbreviations"])
        parameters.collocations = {(first, second) for first, second in values["collocations"]}
        parameters.sent_starters = set(values["sentence_starters"])
        parameters.ortho_context.update(Counter(values["orthographic_context"]))
        return cls(parameters)


class PunktOfLanguages(PunktSegmenter):
    """Punkt with the parameters of several languages, of which a document is cut by those of its own.

    Args:
        segmenters: By the ISO 639-1 code, that of most documents first.
    """

    def __init__(self, segmenters: Mapping[str, PunktSegmenter]) -> None:
        from simlte_st.data.languages import LanguageFinder

        super().__init__(next(iter(segmenters.values())).parameters)
        self._segmenters = dict(segmenters)
        self._find = LanguageFinder((), known=list(segmenters))

    def of(self, text: str) -> PunktSegmenter:
        """Return the segmenter of a document's language; that of most documents where it is none of them."""
        return self._segmenters.get(self._find(text), next(iter(self._segmenters.values())))

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters of each language as JSON values, in their order."""
        return {"languages": {code: own.to_dict() for code, own in self._segmenters.items()}}


def make_segmenter(
    segmenter: str | Segmenter, sample: Callable[[], Iterable[str]], language: str | None = None
) -> Segmenter:
    """Return the segmenter of a name; Punkt learns from the sample if its parameters are not installed.

    Installed parameters are those of ``language``, by its ISO 639-1 code, or of the languages that the sample has.
    """
    if callable(segmenter):
        return segmenter
    if segmenter == "punkt":
        installed = PunktSegmenter.installed()
        if installed is not None:
            return _of_languages(installed, sample, language)
        return PunktSegmenter.learn(sample())
    raise ConfigurationError(f"Unknown segmenter {segmenter!r}: use 'punkt' or a callable.")


def _of_languages(english: PunktSegmenter, sample: Callable[[], Iterable[str]], language: str | None) -> PunktSegmenter:
    """Return the installed segmenter of the languages of a sample; the English one cuts those that NLTK has not."""
    from simlte_st.data.languages import LanguageFinder

    codes = [language] if language else LanguageFinder([*itertools.islice(sample(), _TOLD)]).languages
    found: dict[str, PunktSegmenter] = {}
    for code in codes:
        own = PunktSegmenter.installed(LANGUAGES[code]) if code in LANGUAGES and code != "en" else None
        found[code] = english if own is None else own
    if all(own is english for own in found.values()):
        return english
    return next(iter(found.values())) if len(found) == 1 else PunktOfLanguages(found)


def peek(items: Iterable[T], size: Callable[[T], int], enough: int = SAMPLE_CHARACTERS) -> tuple[list[T], Iterator[T]]:
    """Return the first items of a stream, up to ``enough`` in total size, and the whole stream.

    Punkt learns from the beginning of a corpus that can be read only once.
    """
    iterator = iter(items)
    first: list[T] = []
    taken = 0
    for item in iterator:
        first.append(item)
        taken += size(item)
        if taken >= enough:
            break
    return first, itertools.chain(first, iterator)
