"""Documents to passages: runs of whole sentences that the model reads without cutting."""

from __future__ import annotations

from collections.abc import Iterator

from simlte_st.data.document import Document, SegmentedDocument
from simlte_st.data.segmenters import Segmenter
from simlte_st.data.sentences import TokenCounter, segment_document


def passages_of(document: Document, segmenter: Segmenter, count: TokenCounter, budget: int | None) -> list[str]:
    """Cut a document into passages."""
    if budget is None or count([document.text])[0] <= budget:
        return []
    return list(_runs(segment_document(document, segmenter, count), budget))


def _runs(document: SegmentedDocument, budget: int) -> Iterator[str]:
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
