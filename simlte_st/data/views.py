"""DocSplit, the papers' way to make two views of one document, and the protocol that its rivals share.

A view works on numbers only (how many sentences, words and tokens there are) and answers with :class:`Piece` s, so that
the lengths of views can be told without making their texts.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, NamedTuple, Protocol, get_args, runtime_checkable

from simlte_st.checks import check_choice, check_number
from simlte_st.data.document import Outline, SegmentedDocument
from simlte_st.data.windows import WindowMode, choose_window
from simlte_st.data.words import word_spans
from simlte_st.errors import ConfigurationError


class Piece(NamedTuple):
    """A part of one sentence: its words ``start`` to ``stop`` (exclusive); ``stop`` None is the sentence as it is."""

    sentence: int
    start: int = 0
    stop: int | None = None


Sides = tuple[list[Piece], list[Piece]]
"""The two views of a document as pieces, in the document's order."""


@runtime_checkable
class View(Protocol):
    """Draws two views of one document. Implementations are frozen dataclasses; their ``repr`` tells their settings."""

    def accepts(self, document: Outline) -> bool:
        """Return whether this document can make two views; does not depend on chance."""
        ...

    def draw(self, document: Outline, budget: int | None, rng: Random) -> Sides:
        """Draw the two views.

        Args:
            document: A document that :meth:`accepts` said yes to.
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
        seen: How many of them stand in at least one of the views.
    """

    id: str
    anchor: str
    positive: str
    tokens: int
    seen: int


def view_rng(seed: int, epoch: int, document_id: str) -> Random:
    """Make the generator from which the views of one document in one epoch are drawn.

    Nothing else enters: not the order of the documents, not the batch, not the number of workers.
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
        The pair, or None where the view does not accept the document.
    """
    sides = draw_sides(document, view, seed=seed, epoch=epoch, budget=budget)
    if sides is None:
        return None
    return ViewPair(
        id=document.id,
        anchor=render(document, sides[0]),
        positive=render(document, sides[1]),
        tokens=sum(document.tokens),
        seen=count_seen(document, sides, budget),
    )


def draw_sides(
    document: Outline, view: View, *, seed: int = 0, epoch: int = 0, budget: int | None = None
) -> Sides | None:
    """Draw the two views of a document as pieces; the arguments are those of :func:`draw_views`."""
    if not view.accepts(document):
        return None
    return view.draw(document, budget, view_rng(seed, epoch, document.id))


def render(document: SegmentedDocument, pieces: Sequence[Piece]) -> str:
    """Join pieces into a text, with one space between them; whole sentences stand in it as they are."""
    parts = []
    for sentence, start, stop in pieces:
        text = document.sentences[sentence]
        if stop is not None:
            spans = word_spans(text)
            text = text[spans[start][0] : spans[stop - 1][1]]
        parts.append(text)
    return " ".join(parts)


def count_seen(document: Outline, sides: Sides, budget: int | None) -> int:
    """Count the document's tokens that stand in a view and are not cut by the tokenizer at ``budget``."""
    parts: dict[int, list[tuple[float, float]]] = {}  # of each sentence, as shares of it: 0 to 1 is all of it
    for pieces in sides:
        left = float("inf") if budget is None else float(budget)
        for sentence, start, stop in pieces:
            words = 1 if stop is None else max(1, document.words(sentence))
            first, last = start / words, (words if stop is None else stop) / words
            size = (last - first) * document.tokens[sentence]
            kept = min(size, left)
            left -= kept
            if kept > 0:
                parts.setdefault(sentence, []).append(
                    (first, last if kept == size else first + kept / size * (last - first))
                )
    return round(sum(document.tokens[sentence] * _union(shares) for sentence, shares in parts.items()))


def _union(intervals: list[tuple[float, float]]) -> float:
    """Measure what intervals cover together: the parts that two views take of a sentence may overlap or not."""
    covered, reached = 0.0, 0.0
    for first, last in sorted(intervals):
        covered += max(0.0, last - max(first, reached))
        reached = max(reached, last)
    return covered


def whole(sentences: Sequence[int]) -> list[Piece]:
    """Make pieces of whole sentences."""
    return [Piece(sentence) for sentence in sentences]


def words_of(document: Outline, sentences: Sequence[int]) -> list[tuple[int, int]]:
    """List all words of some sentences in order, each as ``(sentence, word)``."""
    return [(sentence, word) for sentence in sentences for word in range(document.words(sentence))]


def pieces_of_words(words: Sequence[tuple[int, int]]) -> list[Piece]:
    """Make pieces of single words, neighbours in one sentence joined."""
    pieces: list[Piece] = []
    for sentence, word in words:
        if pieces and pieces[-1].sentence == sentence and pieces[-1].stop == word:
            pieces[-1] = Piece(sentence, pieces[-1].start, word + 1)
        else:
            pieces.append(Piece(sentence, word, word + 1))
    return pieces


def has_two_words(document: Outline) -> bool:
    """Return whether a document has two words at least; without them no view is possible that is not a copy."""
    return len(document.tokens) > 1 or (len(document.tokens) == 1 and document.words(0) > 1)


@dataclass(frozen=True)
class DocSplit:
    """DocSplit / SimLTE: deal the sentences of a document to two views.

    Each unit goes to the first view with probability ``p``, independently of the others, and to the second otherwise;
    the order is kept. The views are disjoint, together they are the document (its window, where it is longer than the
    model reads; :func:`~simlte_st.data.windows.choose_window` chooses it), and neither is empty: a draw that leaves one
    empty is drawn again.

    Args:
        p: Probability of the first view. The papers' is 0.5.
        unit: What is dealt: ``"sentence"`` (the papers), ``"paragraph"``, or ``"block"``: runs of consecutive
            sentences. A document that is one paragraph or block only is dealt by sentences.
        block: Sentences in a block for ``unit="block"``: a number, or a range ``(least, most)`` from which each
            document draws one number.
        window: What to use of a document that its views cannot hold: sentences from a ``"random"`` place on, those
            at its ``"head"``, or some ``"spread"`` over all of it.
        single: A document of one sentence: ``"halve"`` cuts it at the middle word, ``"skip"`` leaves it out.

    Raises:
        ConfigurationError: ``p`` outside 0.01 to 0.99, an unknown unit, window or policy, a block below 1, or a block
            where another unit is dealt.

    References:
        DocSplit, section 2.2; SimLTE, section 2.2. Cropping is the case of one contiguous block a view.
    """

    p: float = 0.5
    unit: Literal["sentence", "paragraph", "block"] = "sentence"
    block: int | tuple[int, int] = (2, 12)
    window: WindowMode = "random"
    single: Literal["halve", "skip"] = "halve"

    def __post_init__(self) -> None:
        check_number("p", self.p, least=0.01, most=0.99)
        check_choice("window", self.window, get_args(WindowMode))
        check_choice("unit", self.unit, ("sentence", "paragraph", "block"))
        check_choice("single", self.single, ("halve", "skip"))
        least, most = self._block_range()
        if not 1 <= least <= most:
            raise ConfigurationError(f"block={self.block!r}: give a number from 1, or a range (least, most).")
        if self.unit != "block" and self.block != type(self).block:
            raise ConfigurationError("block= is for unit='block': give that too.")

    def _block_range(self) -> tuple[int, int]:
        return (self.block, self.block) if isinstance(self.block, int) else (self.block[0], self.block[1])

    def accepts(self, document: Outline) -> bool:
        """Accept two sentences or more; one sentence only if it may and can be halved."""
        if len(document.tokens) == 1 and self.single == "skip":
            return False
        return has_two_words(document)

    def draw(self, document: Outline, budget: int | None, rng: Random) -> Sides:
        """Deal the units of the document's window. See :meth:`View.draw`."""
        if len(document.tokens) == 1:
            middle = document.words(0) // 2
            return [Piece(0, 0, middle)], [Piece(0, middle, document.words(0))]
        bounds = self._bounds(document, budget, rng)
        sizes = _sizes(bounds, document.tokens)
        # The larger view holds the share max(p, 1 - p) of the window: that one must fit.
        room = None if budget is None else round(budget / max(self.p, 1 - self.p))
        window = choose_window(sizes, room, self.window, rng)
        while True:
            dealt = [rng.random() < self.p for _ in window]
            if any(dealt) and not all(dealt):
                break
        sides: Sides = ([], [])
        for index, first in zip(window, dealt, strict=True):
            sides[0 if first else 1].extend(map(Piece, range(bounds[index], bounds[index + 1])))
        return sides

    def _bounds(self, document: Outline, budget: int | None, rng: Random) -> Sequence[int]:
        """Cut a document into units; one begins at each number but the last, where the document ends."""
        count = len(document.tokens)
        if self.unit == "sentence":
            return range(count + 1)
        if self.unit == "paragraph":
            starts = [*document.paragraphs, count]
        else:
            starts = [*range(0, count, rng.randint(*self._block_range())), count]
        bounds = [0]
        for start, stop in itertools.pairwise(starts):
            bounds.extend(_ends(start, stop, document.tokens, budget))
        return bounds if len(bounds) > 2 else range(count + 1)


def _sizes(bounds: Sequence[int], tokens: Sequence[int]) -> Sequence[int]:
    if len(bounds) == len(tokens) + 1:
        return tokens
    return [sum(tokens[start:stop]) for start, stop in itertools.pairwise(bounds)]


def _ends(start: int, stop: int, tokens: Sequence[int], budget: int | None) -> list[int]:
    """Cut a unit longer than a view into parts that fit one, at sentence ends."""
    if budget is None or sum(tokens[start:stop]) <= budget:
        return [stop]
    ends: list[int] = []
    taken = 0
    for sentence in range(start, stop):
        if taken + tokens[sentence] > budget and sentence > start:
            ends.append(sentence)
            start, taken = sentence, 0
        taken += tokens[sentence]
    return [*ends, stop]
