"""A tagger with a fixed vocabulary for the tests of the analyses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from benchmarks.papers.tagging import SpacyTagger, TaggedWord

_WORD = re.compile(r"\w+|[^\w\s]|\n+")


class FakeTagger(SpacyTagger):
    """Looks words up, as in ``{"cats": ("NOUN", "cat")}``; unknown words are adverbs."""

    def __init__(self, known: Mapping[str, tuple[str, str]] | None = None) -> None:
        self.known = dict(known or {})
        self.seen: list[str] = []
        self.description = {"pipeline": "fake"}

    def tag(self, text: str) -> list[TaggedWord]:
        self.seen.append(text)
        return [self._word(match) for match in _WORD.finditer(text)]

    def _word(self, match: re.Match[str]) -> TaggedWord:
        text = match[0]
        if text.isspace():
            found = ("SPACE", text)
        elif not text[0].isalnum():
            found = ("PUNCT", text)
        else:
            found = self.known.get(text.lower(), ("ADV", text.lower()))
        return TaggedWord(match.start(), match.end(), *found)


class EndingTagger(FakeTagger):
    """Tags the made-up words of ``support.WORDS`` by their endings."""

    def _word(self, match: re.Match[str]) -> TaggedWord:
        word = super()._word(match)
        for ending, pos in (("a", "NOUN"), ("ei", "PROPN"), ("o", "VERB"), ("un", "ADJ"), ("is", "AUX")):
            if word.pos == "ADV" and word.lemma.endswith(ending):
                return word._replace(pos=pos)
        return word
