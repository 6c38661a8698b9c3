"""Documents whose words encode their position, and repeated views of a document."""

from __future__ import annotations

from simlte_st.reading.document import SegmentedDocument
from simlte_st.views.views import View, ViewPair, draw_views


def make(tokens: list[int], paragraphs: tuple[int, ...] = (0,), name: str = "doc") -> SegmentedDocument:
    """Make a document whose sentences contain their number (``s3w0 s3w1 ...``), with one token per word."""
    sentences = tuple(" ".join(f"s{i}w{word}" for word in range(count)) for i, count in enumerate(tokens))
    return SegmentedDocument(name, sentences, paragraphs, tuple(tokens))


def draws(document: SegmentedDocument, view: View, count: int, budget: int | None = None) -> list[ViewPair]:
    """Draw the views of several epochs."""
    pairs = [draw_views(document, view, seed=4, epoch=epoch, budget=budget) for epoch in range(count)]
    assert all(pair is not None for pair in pairs)
    return [pair for pair in pairs if pair is not None]
