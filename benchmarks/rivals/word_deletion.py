"""The view of word deletion, behind the protocol of :mod:`simlte_st.data.views`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from simlte_st.config import check_number
from simlte_st.data.document import SegmentedDocument
from simlte_st.data.drawing import Span, ViewSpans, choose_window, has_two_words, spans_of_words, words_of


@dataclass(frozen=True)
class WordDeletion:
    """Word deletion (as in CLEAR, Wu et al., 2020): each view is the text with some of its words left out."""

    p: float = 0.1

    def __post_init__(self) -> None:
        check_number("p", self.p, least=0.0, most=0.99)

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document of two words or more."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Delete words from a window twice. See :meth:`simlte_st.data.drawing.View.draw`."""
        words = words_of(document, choose_window(document.tokens, budget, rng, at_least=1))
        return self._delete(words, rng), self._delete(words, rng)

    def _delete(self, words: Sequence[tuple[int, int]], rng: Random) -> list[Span]:
        left = [word for word in words if rng.random() >= self.p]
        return spans_of_words(left or [rng.choice(words)])
