"""The views of the methods that the papers compare with, behind the protocol of :mod:`simlte_st.data.views`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from simlte_st.checks import check_choice, check_number
from simlte_st.data.document import Outline
from simlte_st.data.views import (
    Piece,
    Sides,
    has_two_words,
    pieces_of_words,
    whole,
    words_of,
)
from simlte_st.data.windows import WindowMode, choose_window


@dataclass(frozen=True)
class Identity:
    """SimCSE (Gao et al., 2021): the same text twice; only the encoder's dropout tells the two apart.

    Args:
        window: What to use of a document that its views cannot hold: sentences from a ``"random"`` place on, those
            at its ``"head"``, or some ``"spread"`` over all of it.
        unit: ``"document"``, the text is the document, as the SimLTE paper's SimCSE-long has it; ``"sentence"``, it is
            one of its sentences, drawn anew each epoch, as SimCSE itself has it.

    Raises:
        ConfigurationError: An unknown window or unit.
    """

    window: WindowMode = "random"
    unit: Literal["document", "sentence"] = "document"

    def __post_init__(self) -> None:
        check_choice("window", self.window, get_args(WindowMode))
        check_choice("unit", self.unit, ("document", "sentence"))

    def accepts(self, document: Outline) -> bool:
        """Accept any document that has a word."""
        return len(document.tokens) > 0

    def draw(self, document: Outline, budget: int | None, rng: Random) -> Sides:
        """Take the window, or a sentence, twice. See :meth:`simlte_st.data.views.View.draw`."""
        if self.unit == "sentence":
            sentence = whole([rng.randrange(len(document.tokens))])
            return sentence, sentence
        window = choose_window(document.tokens, budget, self.window, rng, at_least=1)
        return whole(window), whole(window)


@dataclass(frozen=True)
class Crop:
    """Contriever's independent cropping (Izacard et al., 2021): two random spans of words, which may overlap.

    Args:
        least: Least length of a crop, as a share of the document's words. Contriever's is 0.05.
        most: Largest length of a crop, likewise. Contriever's is 0.5.

    Raises:
        ConfigurationError: Not ``0 < least <= most <= 1``.
    """

    least: float = 0.05
    most: float = 0.5

    def __post_init__(self) -> None:
        check_number("least", self.least, least=1e-6, most=self.most)
        check_number("most", self.most, least=self.least, most=1.0)

    def accepts(self, document: Outline) -> bool:
        """Accept any document of two words or more."""
        return has_two_words(document)

    def draw(self, document: Outline, budget: int | None, rng: Random) -> Sides:
        """Crop twice, independently. See :meth:`simlte_st.data.views.View.draw`."""
        words = words_of(document, range(len(document.tokens)))
        return self._crop(document, words, budget, rng), self._crop(document, words, budget, rng)

    def _crop(
        self, document: Outline, words: Sequence[tuple[int, int]], budget: int | None, rng: Random
    ) -> list[Piece]:
        length = max(1, round(len(words) * rng.uniform(self.least, self.most)))
        if budget is not None:
            # Words that fill the budget: a crop drawn over a long document is bounded by what the model reads.
            length = min(length, max(1, budget * len(words) // max(1, sum(document.tokens))))
        start = rng.randint(0, len(words) - length)
        return pieces_of_words(words[start : start + length])


@dataclass(frozen=True)
class InverseCloze:
    """The inverse cloze task (Lee et al., 2019): one sentence, and the text around it.

    Args:
        keep_sentence: Probability that the sentence stays in the text around it. Lee et al. use 0.1.
        window: What to use of a document that its views cannot hold: sentences from a ``"random"`` place on, those
            at its ``"head"``, or some ``"spread"`` over all of it.
    """

    keep_sentence: float = 0.1
    window: WindowMode = "random"

    def __post_init__(self) -> None:
        check_number("keep_sentence", self.keep_sentence, least=0.0, most=1.0)
        check_choice("window", self.window, get_args(WindowMode))

    def accepts(self, document: Outline) -> bool:
        """Accept two sentences or more: a lone sentence has no context."""
        return len(document.tokens) > 1

    def draw(self, document: Outline, budget: int | None, rng: Random) -> Sides:
        """Take one sentence of a window, and the window. See :meth:`simlte_st.data.views.View.draw`."""
        window = choose_window(document.tokens, budget, self.window, rng)
        sentence = rng.choice(window)
        kept = rng.random() < self.keep_sentence
        return whole([sentence]), whole([index for index in window if kept or index != sentence])
