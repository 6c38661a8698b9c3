"""Draws two views of a document: what a view is, the sentences that fit it, and the text of what was drawn.

A view works on numbers only (sentences, words and tokens) and returns :class:`Span` s, so that the lengths of views can
be counted without making their texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, Protocol, runtime_checkable

from simlte_st.data.document import SegmentedDocument, word_spans


class Span(NamedTuple):
    """Words ``start`` to ``stop`` (exclusive) of a sentence; ``stop`` None means the whole sentence."""

    sentence: int
    start: int = 0
    stop: int | None = None


ViewSpans = tuple[list[Span], list[Span]]
"""The two views of a document, in the document's order."""


@runtime_checkable
class View(Protocol):
    """Draws two views of one document. Implementations are frozen dataclasses; their ``repr`` shows their settings."""

    def accepts(self, document: SegmentedDocument) -> bool:
        """Return whether two views can be drawn from a document, whatever the random draw."""
        ...

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw the two views.

        Args:
            document: A document that :meth:`accepts` accepts.
            budget: Tokens that *one* view may hold, special tokens not counted; None for no bound.
            rng: The only source of randomness.
        """
        ...


@dataclass(frozen=True, slots=True)
class ViewPair:
    """Two views of one document, as text.

    Attributes:
        id: The document's id.
        anchor: The first view.
        positive: The second view.
        tokens: Tokens of the document.
        seen: Those of them that are in at least one of the views.
    """

    id: str
    anchor: str
    positive: str
    tokens: int
    seen: int


def view_rng(seed: int, epoch: int, document_id: str) -> Random:
    """Return the random generator of the views of one document in one epoch.

    It depends on nothing else: not the order of the documents, not the batch, not the number of workers.
    """
    key = f"{seed}\x00{epoch}\x00{document_id}".encode("utf-8", "surrogatepass")
    return Random(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))


def draw_views(
    document: SegmentedDocument, view: View, *, seed: int = 0, epoch: int = 0, budget: int | None = None
) -> ViewPair | None:
    """Draw the two views of a document in an epoch.

    Args:
        document: The segmented document.
        view: How to draw.
        seed: The run's seed.
        epoch: The epoch, from 0; another epoch gives another draw.
        budget: Tokens that one view may hold, special tokens not counted; None for no bound.

    Returns:
        The pair, or None if the view does not accept the document.
    """
    spans = draw_spans(document, view, seed=seed, epoch=epoch, budget=budget)
    if spans is None:
        return None
    anchor, positive = (render(document, side) for side in spans)
    return ViewPair(document.id, anchor, positive, sum(document.tokens), count_seen(document, spans, budget))


def draw_spans(
    document: SegmentedDocument, view: View, *, seed: int = 0, epoch: int = 0, budget: int | None = None
) -> ViewSpans | None:
    """Draw the two views of a document as spans; the arguments are those of :func:`draw_views`."""
    return view.draw(document, budget, view_rng(seed, epoch, document.id)) if view.accepts(document) else None


def render(document: SegmentedDocument, spans: Sequence[Span]) -> str:
    """Join spans into a text, with a space between them; whole sentences are unchanged."""
    parts = []
    for sentence, start, stop in spans:
        text = document.sentences[sentence]
        if stop is not None:
            words = word_spans(text)
            text = text[words[start][0] : words[stop - 1][1]]
        parts.append(text)
    return " ".join(parts)


def count_seen(document: SegmentedDocument, views: ViewSpans, budget: int | None) -> int:
    """Return the number of the document's tokens in a view that the tokenizer does not truncate at ``budget``."""
    if budget is None and all(span.stop is None for spans in views for span in spans):  # nothing of them is partly seen
        return sum(document.tokens[sentence] for sentence in {span.sentence for spans in views for span in spans})
    parts: dict[int, list[tuple[float, float]]] = {}  # of each sentence, as shares of it: 0 to 1 is all of it
    for spans in views:
        left = float("inf") if budget is None else float(budget)
        for sentence, start, stop in spans:
            words = 1 if stop is None else max(1, document.words(sentence))
            first, last = start / words, (words if stop is None else stop) / words
            size = (last - first) * document.tokens[sentence]
            kept = min(size, left)
            left -= kept
            if kept > 0:
                parts.setdefault(sentence, []).append(
                    (first, last if kept == size else first + kept / size * (last - first))
                )
    return round(sum(document.tokens[sentence] * _covered(shares) for sentence, shares in parts.items()))


def _covered(intervals: list[tuple[float, float]]) -> float:
    """Return the length of a union of intervals: the parts that two views take of a sentence may overlap."""
    covered, reached = 0.0, 0.0
    for first, last in sorted(intervals):
        covered += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return covered


def choose_window(sizes: Sequence[int], budget: int | None, rng: Random, at_least: int = 2) -> list[int]:
    """Choose the sentences of a document that its views hold: a run of them from a random place.

    The window is chosen before the sentences are split into views, so that both views are full. Truncating them
    afterwards would keep the beginning of each, and the model would never see the rest of the document.
    """
    if budget is None or sum(sizes) <= budget:
        return list(range(len(sizes)))
    rest = 0
    last_start = len(sizes)
    # The last start is the one from which the rest fits as a whole, so that the last sentence is reached.
    while last_start > 0 and (rest + sizes[last_start - 1] <= budget or len(sizes) - last_start < at_least):
        last_start -= 1
        rest += sizes[last_start]
    chosen: list[int] = []
    taken = 0
    for index in range(rng.randint(0, last_start), len(sizes)):
        # Stop at the first sentence that does not fit: going on to smaller ones would favour fragments.
        if taken + sizes[index] > budget and len(chosen) >= at_least:
            break
        chosen.append(index)
        taken += sizes[index]
    return chosen


def whole_sentences(sentences: Sequence[int]) -> list[Span]:
    """Return the spans of whole sentences."""
    return [Span(sentence) for sentence in sentences]


def words_of(document: SegmentedDocument, sentences: Sequence[int]) -> list[tuple[int, int]]:
    """Return all words of some sentences in order, each as ``(sentence, word)``."""
    return [(sentence, word) for sentence in sentences for word in range(document.words(sentence))]


def spans_of_words(words: Sequence[tuple[int, int]]) -> list[Span]:
    """Return the spans of single words; neighbours in one sentence are joined."""
    spans: list[Span] = []
    for sentence, word in words:
        if spans and spans[-1].sentence == sentence and spans[-1].stop == word:
            spans[-1] = Span(sentence, spans[-1].start, word + 1)
        else:
            spans.append(Span(sentence, word, word + 1))
    return spans


def has_two_words(document: SegmentedDocument) -> bool:
    """Return whether a document has at least two words, without which its two views would be the same."""
    return len(document.tokens) > 1 or (len(document.tokens) == 1 and document.words(0) > 1)
