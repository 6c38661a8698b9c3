"""The views, by name: DocSplit, and the baselines that the papers compare it with.

A new view is a frozen dataclass that follows :class:`~simlte_st.data.drawing.View`, and one line in :data:`VIEWS`. Its
settings become options of ``simlte train``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Literal

from simlte_st.config import Config, setting
from simlte_st.data.document import SegmentedDocument
from simlte_st.data.drawing import (
    Span,
    View,
    ViewSpans,
    choose_window,
    has_two_words,
    spans_of_words,
    whole_sentences,
    words_of,
)
from simlte_st.errors import ConfigurationError, did_you_mean


@dataclass(frozen=True)
class DocSplit(Config):
    """DocSplit / SimLTE: random sentence split of a document into two views.

    Each sentence goes to the first view with probability ``p``, independently of the others, and to the second
    otherwise; the order is kept. The views are disjoint, and together they are the document, or a window of it if it is
    longer than the model reads. Neither is empty: a draw that leaves one empty is repeated. A single sentence is cut at
    its middle word.

    Raises:
        ConfigurationError: ``p`` is out of its range.

    References:
        DocSplit, section 2.2; SimLTE, section 2.2. Cropping is the special case of one contiguous block per view.
    """

    p: float = setting(
        0.5, "probability that a sentence goes to the first view; the papers' is 0.5", least=0.01, most=0.99
    )

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document of two words or more."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Split the sentences of the document's window. See :meth:`View.draw`."""
        if len(document.tokens) == 1:
            middle = document.words(0) // 2
            return [Span(0, 0, middle)], [Span(0, middle, document.words(0))]
        # The larger view holds the share max(p, 1 - p) of the window: that one must fit.
        room = None if budget is None else round(budget / max(self.p, 1 - self.p))
        window = choose_window(document.tokens, room, rng)
        while True:
            to_first = [rng.random() < self.p for _ in window]
            if any(to_first) and not all(to_first):
                break
        views: ViewSpans = ([], [])
        for sentence, first in zip(window, to_first, strict=True):
            views[0 if first else 1].append(Span(sentence))
        return views


@dataclass(frozen=True)
class Identity(Config):
    """SimCSE (Gao et al., 2021): the same text twice; only the encoder's dropout makes the two differ.

    Raises:
        ConfigurationError: An unknown unit.
    """

    unit: Literal["document", "sentence"] = setting(
        "document",
        "text that is both views: the document (SimCSE-long of the SimLTE paper), or one of its sentences, drawn anew "
        "each epoch (SimCSE)",
    )

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document that has a word."""
        return len(document.tokens) > 0

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Take the window, or a sentence, twice. See :meth:`simlte_st.data.drawing.View.draw`."""
        if self.unit == "sentence":
            sentence = [Span(rng.randrange(len(document.tokens)))]
            return sentence, sentence
        window = choose_window(document.tokens, budget, rng, at_least=1)
        return whole_sentences(window), whole_sentences(window)


@dataclass(frozen=True)
class Crop(Config):
    """Contriever's independent cropping (Izacard et al., 2021): two random spans of words, which may overlap.

    Raises:
        ConfigurationError: Not ``0 < least <= most <= 1``.
    """

    least: float = setting(
        0.05, "smallest length of a crop, as a share of the document's words; Contriever's is 0.05", least=1e-6, most=1
    )
    most: float = setting(0.5, "largest length of a crop, likewise; Contriever's is 0.5", above=0, most=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least > self.most:
            raise ConfigurationError(f"least={self.least}: must be at most most={self.most}.")

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document of two words or more."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Crop twice, independently. See :meth:`simlte_st.data.drawing.View.draw`."""
        words = words_of(document, range(len(document.tokens)))
        return self._crop(document, words, budget, rng), self._crop(document, words, budget, rng)

    def _crop(
        self, document: SegmentedDocument, words: Sequence[tuple[int, int]], budget: int | None, rng: Random
    ) -> list[Span]:
        length = max(1, round(len(words) * rng.uniform(self.least, self.most)))
        if budget is not None:
            # A crop of a long document is bounded by the words that fill the budget.
            length = min(length, max(1, budget * len(words) // max(1, sum(document.tokens))))
        start = rng.randint(0, len(words) - length)
        return spans_of_words(words[start : start + length])


@dataclass(frozen=True)
class InverseCloze(Config):
    """The inverse cloze task (Lee et al., 2019): one sentence, and the text around it."""

    keep_sentence: float = setting(
        0.1, "probability that the sentence stays in the text around it; Lee et al. use 0.1", least=0, most=1
    )

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept two sentences or more: a single sentence has no context."""
        return len(document.tokens) > 1

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Take one sentence of a window, and the window. See :meth:`simlte_st.data.drawing.View.draw`."""
        window = choose_window(document.tokens, budget, rng)
        sentence = rng.choice(window)
        kept = rng.random() < self.keep_sentence
        return whole_sentences([sentence]), whole_sentences([index for index in window if kept or index != sentence])


VIEWS: dict[str, type[Config]] = {
    "docsplit": DocSplit,
    "identity": Identity,
    "crop": Crop,
    "inverse-cloze": InverseCloze,
}


def make_view(name: str, **settings: object) -> View:
    """Make a view by name.

    Args:
        name: One of :data:`VIEWS`.
        **settings: Settings of that view; the others have their defaults.

    Raises:
        ConfigurationError: An unknown name, a setting that this view does not have, or one out of its range.
    """
    if name not in VIEWS:
        raise ConfigurationError(f"Unknown view {name!r}: use one of {', '.join(VIEWS)}.{did_you_mean(name, VIEWS)}")
    known = [field.name for field in fields(VIEWS[name])]
    for given in settings:
        if given not in known:
            raise ConfigurationError(
                f"The view {name!r} has no setting {given}=: it has {', '.join(f'{each}=' for each in known)}."
            )
    view: View = VIEWS[name](**settings)  # type: ignore[assignment]  # each follows the protocol
    return view
