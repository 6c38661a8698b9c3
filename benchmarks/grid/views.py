"""Views for ablations: random words in place of sentences, and frozen splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from simlte_st.data import SegmentedDocument, View
from simlte_st.views.views import Span, ViewSpans, choose_window, has_two_words, view_rng


def sentence_words(document: SegmentedDocument, sentences: Sequence[int]) -> list[tuple[int, int]]:
    """Return the words of sentences in order, as pairs ``(sentence, word)``."""
    return [(sentence, word) for sentence in sentences for word in range(document.words(sentence))]


def spans_of_words(words: Sequence[tuple[int, int]]) -> list[Span]:
    """Merge words into spans; adjacent words of a sentence form one span."""
    spans: list[Span] = []
    for sentence, word in words:
        if spans and spans[-1].sentence == sentence and spans[-1].stop == word:
            spans[-1] = Span(sentence, spans[-1].start, word + 1)
        else:
            spans.append(Span(sentence, word, word + 1))
    return spans


@dataclass(frozen=True)
class WordSplit:
    """DocSplit with words in place of sentences: each word goes to one of two views with probability one half.

    As in DocSplit, long documents are limited to a random window, and the views are disjoint and never empty.
    """

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept documents of at least two words."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Split the words of the window. See :meth:`simlte_st.views.views.View.draw`."""
        room = None if budget is None else 2 * budget
        words = sentence_words(document, choose_window(document.tokens, room, rng, at_least=1))
        if len(words) < 2:  # the window is a one-word sentence
            words = sentence_words(document, range(len(document.tokens)))
        sides: list[bool] = []
        while len(set(sides)) < 2:
            sides = [rng.random() < 0.5 for _ in words]
        first = [word for word, side in zip(words, sides, strict=True) if side]
        second = [word for word, side in zip(words, sides, strict=True) if not side]
        return spans_of_words(first), spans_of_words(second)


@dataclass(frozen=True)
class FrozenView:
    """A view drawn once per document, so that every epoch sees the same two views."""

    view: View
    seed: int = 0

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept the same documents as the view."""
        return self.view.accepts(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw as in the first epoch, and ignore ``rng``, which depends on the epoch."""
        return self.view.draw(document, budget, view_rng(self.seed, 0, document.id))
