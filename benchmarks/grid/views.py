"""Views for ablations: random words instead of sentences, and splits that never change."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from simlte_st.data.document import SegmentedDocument
from simlte_st.data.views import View, ViewSpans, choose_window, has_two_words, spans_of_words, view_rng, words_of


@dataclass(frozen=True)
class WordSplit:
    """DocSplit with words in place of sentences: each word goes to one of the two views, with equal probability.

    The window of a longer document is chosen as DocSplit chooses it. As there, the views are disjoint and neither is
    empty.
    """

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document of two words or more."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Deal the words of the window. See :meth:`simlte_st.data.views.View.draw`."""
        room = None if budget is None else 2 * budget
        words = words_of(document, choose_window(document.tokens, room, rng, at_least=1))
        if len(words) < 2:  # the window is a sentence of one word: the document has others
            words = words_of(document, range(len(document.tokens)))
        while True:
            dealt = [rng.random() < 0.5 for _ in words]
            if any(dealt) and not all(dealt):
                break
        first = [word for word, side in zip(words, dealt, strict=True) if side]
        second = [word for word, side in zip(words, dealt, strict=True) if not side]
        return spans_of_words(first), spans_of_words(second)


@dataclass(frozen=True)
class FrozenView:
    """Another view, drawn once a document: every epoch sees the same two views."""

    view: View
    seed: int = 0

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept what the view accepts."""
        return self.view.accepts(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw as the view does in the first epoch; the generator given here, which knows the epoch, is not used."""
        return self.view.draw(document, budget, view_rng(self.seed, 0, document.id))
