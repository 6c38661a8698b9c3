"""Taggers without spaCy for the tests of the analyses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.papers.tagging import SpacyTagger, TaggedWord

_WORD = re.compile(r"\w+|[^\w\s]|\n+")


class FakeTagger(SpacyTagger):
    """Looks words up, as in ``{"cats": ("NOUN", "cat")}``; unknown words are adverbs."""

    def __init__(self, vocabulary: Mapping[str, tuple[str, str]] | None = None) -> None:
        self.vocabulary = dict(vocabulary or {})
        self.texts: list[str] = []
        self.description = {"pipeline": "fake"}

    def tag(self, text: str) -> list[TaggedWord]:
        self.texts.append(text)
        return [self._word(match) for match in _WORD.finditer(text)]

    def _word(self, match: re.Match[str]) -> TaggedWord:
        text = match[0]
        if text.isspace():
            tag = ("SPACE", text)
        elif not text[0].isalnum():
            tag = ("PUNCT", text)
        else:
            tag = self.vocabulary.get(text.lower(), ("ADV", text.lower()))
        return TaggedWord(match.start(), match.end(), *tag)


class EndingTagger(FakeTagger):
    """Tags the made-up words of ``support.WORDS`` by their endings."""

    def _word(self, match: re.Match[str]) -> TaggedWord:
        word = super()._word(match)
        for ending, pos in (("a", "NOUN"), ("ei", "PROPN"), ("o", "VERB"), ("un", "ADJ"), ("is", "AUX")):
            if word.pos == "ADV" and word.lemma.endswith(ending):
                return word._replace(pos=pos)
        return word
