"""Draw two views of a document.

Views are drawn as :class:`Span` objects, whose lengths can be computed without building the texts. To add a view, write
a frozen dataclass that implements :class:`View` and list it in :data:`VIEWS`. The fields of the dataclass become
options of ``simlte train``.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Literal, NamedTuple, Protocol, runtime_checkable

from annotated_types import Interval

from simlte_st.arguments import PositiveShare, check_arguments, check_fields
from simlte_st.errors import ConfigurationError, did_you_mean
from simlte_st.reading.document import SegmentedDocument, word_spans


class Span(NamedTuple):
    """Words ``start`` to ``stop`` (exclusive) of a sentence; the whole sentence if ``stop`` is None."""

    sentence: int
    start: int = 0
    stop: int | None = None


ViewSpans = tuple[list[Span], list[Span]]
"""The spans of two views, each in document order."""


@runtime_checkable
class View(Protocol):
    """Method of drawing two views of a document: a frozen dataclass whose ``repr`` shows its settings."""

    def accepts(self, document: SegmentedDocument) -> bool:
        """Return whether two views can always be drawn from a document."""
        ...

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw the two views.

        Args:
            document: Document for which :meth:`accepts` returns True.
            budget: Maximum number of tokens in *each* view, excluding special tokens; None for no limit.
            rng: Random generator, the only source of randomness.
        """
        ...


class ViewPair(NamedTuple):
    """The texts of two views of a document.

    Attributes:
        id: Id of the document.
        anchor: Text of the first view.
        positive: Text of the second view.
    """

    id: str
    anchor: str
    positive: str


def view_rng(seed: int, epoch: int, document_id: str) -> Random:
    """Return the random generator for one document in one epoch.

    The generator does not depend on the order of the documents, the batch or the number of workers.
    """
    key = f"{seed}\x00{epoch}\x00{document_id}".encode("utf-8", "surrogatepass")
    return Random(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "big"))


@check_arguments
def draw_views(
    document: SegmentedDocument, view: View, *, seed: int = 0, epoch: int = 0, budget: int | None = None
) -> ViewPair | None:
    """Draw the two views of a document for an epoch.

    Args:
        document: Segmented document.
        view: How to draw the views.
        seed: Random seed.
        epoch: Epoch, starting at 0; each epoch has different views.
        budget: Maximum number of tokens in a view, excluding special tokens; None for no limit.

    Returns:
        The pair of views, or None if the view does not accept the document.
    """
    views = draw_spans(document, view, seed=seed, epoch=epoch, budget=budget)
    return None if views is None else ViewPair(document.id, *(render(document, spans) for spans in views))


def draw_spans(
    document: SegmentedDocument, view: View, *, seed: int = 0, epoch: int = 0, budget: int | None = None
) -> ViewSpans | None:
    """Draw the two views of a document as spans; see :func:`draw_views`."""
    return view.draw(document, budget, view_rng(seed, epoch, document.id)) if view.accepts(document) else None


def render(document: SegmentedDocument, spans: Sequence[Span]) -> str:
    """Join the texts of spans with spaces."""
    texts = []
    for sentence, start, stop in spans:
        text = document.sentences[sentence]
        if stop is not None:
            words = word_spans(text)
            text = text[words[start][0] : words[stop - 1][1]]
        texts.append(text)
    return " ".join(texts)


def choose_window(sizes: Sequence[int], budget: int | None, rng: Random, at_least: int = 2) -> list[int]:
    """Choose a window of consecutive sentences at a random position in a document.

    The window is chosen before its sentences are split into views. If the views were truncated instead, the model would
    see only the beginning of a long document, never the rest.
    """
    if budget is None or sum(sizes) <= budget:
        return list(range(len(sizes)))
    tokens, last_start = 0, len(sizes)
    # All sentences from the last possible start to the end fit.
    while last_start > 0 and (tokens + sizes[last_start - 1] <= budget or len(sizes) - last_start < at_least):
        last_start -= 1
        tokens += sizes[last_start]
    window: list[int] = []
    tokens = 0
    for index in range(rng.randint(0, last_start), len(sizes)):
        # Stop at the first sentence that does not fit; skipping such sentences would favour short fragments.
        if tokens + sizes[index] > budget and len(window) >= at_least:
            break
        window.append(index)
        tokens += sizes[index]
    return window


def whole_sentences(sentences: Sequence[int]) -> list[Span]:
    """Return the spans of whole sentences."""
    return [Span(sentence) for sentence in sentences]


def has_two_words(document: SegmentedDocument) -> bool:
    """Return whether a document has at least two words, enough for two different views."""
    return len(document.tokens) > 1 or (len(document.tokens) == 1 and document.words(0) > 1)


@dataclass(frozen=True)
class DocSplit:
    """Random sentence split of a document into two views, from the DocSplit and SimLTE papers.

    Each sentence goes independently to the first view with probability ``p``, and to the second otherwise, in document
    order. The views are disjoint; together they make up the document, or a window of it if the document is longer than
    the model can read. If a view is empty, both are drawn again. A single-sentence document is split at its middle
    word.

    Attributes:
        p: Probability that a sentence goes to the first view; the papers use 0.5.

    Raises:
        ConfigurationError: ``p`` is out of range.

    Example:
        ::

            views = DocSplitTransform(DocSplit(p=0.5), model=model)

    References:
        DocSplit, section 2.2; SimLTE, section 2.2.
    """

    p: Annotated[float, Interval(ge=0.01, le=0.99)] = 0.5

    def __post_init__(self) -> None:
        check_fields(self)

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document with at least two words."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Split the sentences of the document's window. See :meth:`View.draw`."""
        if len(document.tokens) == 1:
            middle = document.words(0) // 2
            return [Span(0, 0, middle)], [Span(0, middle, document.words(0))]
        # The larger view gets about max(p, 1 - p) of the window and must fit the budget.
        room = None if budget is None else round(budget / max(self.p, 1 - self.p))
        window = choose_window(document.tokens, room, rng)
        in_first: list[bool] = []
        while len({*in_first}) < 2:  # repeat while a view is empty
            in_first = [rng.random() < self.p for _ in window]
        views: ViewSpans = ([], [])
        for sentence, first in zip(window, in_first, strict=True):
            views[0 if first else 1].append(Span(sentence))
        return views


@dataclass(frozen=True)
class Identity:
    """SimCSE (Gao et al., 2021): both views are the same text, and only dropout makes their embeddings differ.

    Attributes:
        unit: Text of both views: the ``document`` (SimCSE-long in the SimLTE paper), or a ``sentence`` drawn anew in
            each epoch (SimCSE).

    Raises:
        ConfigurationError: ``unit`` is unknown.
    """

    unit: Literal["document", "sentence"] = "document"

    def __post_init__(self) -> None:
        check_fields(self)

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document with at least one sentence."""
        return len(document.tokens) > 0

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Return the same window or sentence twice. See :meth:`View.draw`."""
        if self.unit == "sentence":
            window = [rng.randrange(len(document.tokens))]
        else:
            window = choose_window(document.tokens, budget, rng, at_least=1)
        return whole_sentences(window), whole_sentences(window)


@dataclass(frozen=True)
class Crop:
    """Contriever's independent cropping (Izacard et al., 2021): two random spans of words, which may overlap.

    Attributes:
        least: Minimum length of a crop, as a fraction of the document's words; Contriever uses 0.05.
        most: Maximum length of a crop, as a fraction of the document's words; Contriever uses 0.5.

    Raises:
        ConfigurationError: ``least`` and ``most`` do not satisfy ``0 < least <= most <= 1``.
    """

    least: PositiveShare = 0.05
    most: PositiveShare = 0.5

    def __post_init__(self) -> None:
        check_fields(self)
        if self.least > self.most:
            raise ConfigurationError(f"least={self.least} must not exceed most={self.most}.")

    def accepts(self, document: SegmentedDocument) -> bool:
        """Accept any document with at least two words."""
        return has_two_words(document)

    def draw(self, document: SegmentedDocument, budget: int | None, rng: Random) -> ViewSpans:
        """Draw two independent crops. See :meth:`View.draw`."""
        ends = list(itertools.accumulate(map(document.words, range(len(document.tokens)))))
        # In words, estimated from the tokens per word of this document.
        longest = ends[-1] if budget is None else budget * ends[-1] // max(1, sum(document.tokens))
        crops: ViewSpans = ([], [])
        for crop in crops:
            length = max(1, min(longest, round(ends[-1] * rng.uniform(self.least, self.most))))
            start = rng.randint(0, ends[-1] - length)
            for sentence, (begin, end) in enumerate(itertools.pairwise([0, *ends])):
                if begin < start + length and start < end:
                    crop.append(Span(sentence, max(start, begin) - begin, min(start + length, end) - begin))
        return crops


VIEWS: dict[str, type[View]] = {"docsplit": DocSplit, "identity": Identity, "crop": Crop}
"""View classes by their name in ``simlte train --view``."""


@check_arguments
def make_view(name: str, **settings: object) -> View:
    """Create a view by name.

    Args:
        name: Name of the view, a key of :data:`VIEWS`.
        **settings: Fields of the view; omitted fields keep their defaults.

    Raises:
        ConfigurationError: The name or a setting is unknown, or a setting is out of range.
    """
    if name not in VIEWS:
        raise ConfigurationError(f"Unknown view {name!r}: choose one of {', '.join(VIEWS)}.{did_you_mean(name, VIEWS)}")
    view_class: Callable[..., View] = VIEWS[name]
    fields = inspect.signature(view_class).parameters
    if unknown := [setting for setting in settings if setting not in fields]:
        options = ", ".join(f"{field}=" for field in fields)
        raise ConfigurationError(f"The view {name!r} has no setting {unknown[0]}=. Its settings: {options}.")
    return view_class(**settings)
