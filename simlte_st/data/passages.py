"""Passages of long documents: runs of whole sentences that a model reads at once."""

from __future__ import annotations

from collections.abc import Iterator

from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import TokenCounter, segment_document

STATIC_PASSAGE = 256
"""Tokens of a passage where the model reads any number of them."""


def passages_of(document: Document, segmenter: Segmenter | None, count: TokenCounter, budget: int | None) -> list[str]:
    """Return runs of whole sentences, as many as a model reads at once; none where that is the whole document.

    Of a model without a bound they have :data:`STATIC_PASSAGE` tokens: the vector of a long document says little of
    each of its pages.

    Args:
        document: The document.
        segmenter: That of the index; None of an index without passages, which gets none.
        count: Counts tokens.
        budget: Tokens that the model reads; None for no bound.
    """
    budget = STATIC_PASSAGE if budget is None else budget
    if segmenter is None or count([document.text])[0] <= budget:
        return []
    return list(sentence_runs(segment_document(document, segmenter, count), budget))


def sentence_runs(document: SegmentedDocument, budget: int) -> Iterator[str]:
    """Return runs of whole sentences of up to so many tokens; a longer sentence is a run of its own."""
    beginnings = set(document.paragraphs)
    text, taken = "", 0
    for number, (sentence, tokens) in enumerate(zip(document.sentences, document.tokens, strict=True)):
        if text and taken + tokens > budget:
            yield text
            text, taken = "", 0
        separator = "\n\n" if number in beginnings else " "
        text, taken = f"{text}{separator}{sentence}" if text else sentence, taken + tokens
    if text:
        yield text
