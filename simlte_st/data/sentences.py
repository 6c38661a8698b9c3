"""Documents to sentences: paragraphs first, then a segmenter, then a bound on the length of sentences.

Segmenters know the full stops of Latin, Greek and Cyrillic. The full stops of other scripts always end a sentence, and
so do spaces in Thai and Lao, which have no other sign. Text without sentence ends (tables, code) must still give usable
units, so what is longer than ``max_words`` is cut at line ends, then into pieces of at most ``max_words`` words. No
character except white space is ever lost, which is checked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.config import check_count
from simlte_st.data.document import Document, SegmentedDocument, count_words, word_spans
from simlte_st.data.documents import read_documents
from simlte_st.data.segmenters import PunktSegmenter, Segmenter, make_segmenter, peek
from simlte_st.data.tokens import TOKENIZED_CHARACTERS, count_tokens, in_batches
from simlte_st.errors import DataError

if TYPE_CHECKING:
    from simlte_st.data.tokens import AnyTokenizer

MAX_WORDS = 64
"""Words of the longest sentence that stays whole: about 85 tokens, so that views of 128 tokens hold several."""

TOKENS_PER_WORD = 1.3
"""Estimate without a tokenizer; BERT's vocabulary gives 1.2 to 1.5 on English prose."""

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"\n+")
# Chinese and Japanese, Arabic and Urdu, Indic scripts, Armenian, Ethiopic, Burmese, Khmer, Tibetan, Mongolian.
_STOP = re.compile(
    "(?:[。！？｡؟۔।॥։።፧፨။។៕༎།᠃᠉]|．(?![0-9０-９]))+[\"'”’»」』）)】》〉]*"
    # a space in Thai or Lao, but not beside their signs of repetition
    "|(?<=[\u0e00-\u0e45\u0e47-\u0ec5\u0ec7-\u0eff]) +(?=[\u0e00-\u0e45\u0e47-\u0ec5\u0ec7-\u0eff])"
)
_SEMICOLON = re.compile("(?<=；)")
_HARD_WRAP = 120  # lines all shorter than this, in a text without blank lines, are wrapped lines, not paragraphs
_PIECE = 20_000  # characters that a segmenter gets at once, which bounds the cost of a pathological text
TokenCounter = Callable[[Sequence[str]], Sequence[int]]
"""Counts the tokens of each of several texts, without special tokens."""


def paragraphs_of(text: str) -> list[str]:
    """Cut a text into paragraphs at blank lines.

    In a text without blank lines each line is a paragraph, unless all lines are so short that they look hard-wrapped.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = _BLANK_LINES.split(text)
    if len(blocks) == 1:
        lines = text.split("\n")
        if any(len(line) > _HARD_WRAP for line in lines):
            blocks = lines
    return [block.strip() for block in blocks if block.strip()]


def cut_sentences(paragraph: str, segmenter: Segmenter, max_words: int = MAX_WORDS) -> list[str]:
    """Cut one paragraph into sentences of at most ``max_words`` words."""
    sentences: list[str] = []
    for piece in _pieces(paragraph):
        segments = segmenter(piece)
        if "".join("".join(segments).split()) != "".join(piece.split()):
            raise DataError(
                f"The segmenter {segmenter!r} changed the text {_shorten(piece)!r} into {_shorten(str(segments))!r}. "
                "A segmenter may drop white space only."
            )
        for segment in segments:
            for sentence in _at_stops(segment):
                sentences.extend(_bounded(sentence.strip(), max_words))
    return sentences


def _pieces(paragraph: str) -> Iterator[str]:
    begin = 0
    while len(paragraph) - begin > _PIECE:
        # at white space where there is any, so that no word is cut in two
        stop = max(paragraph.rfind(space, begin, begin + _PIECE) for space in " \n\t") + 1
        stop = stop if stop > begin else begin + _PIECE
        yield paragraph[begin:stop]
        begin = stop
    yield paragraph[begin:]


def _at_stops(text: str) -> Iterator[str]:
    begin = 0
    for match in _STOP.finditer(text) if not text.isascii() else ():
        yield text[begin : match.end()]
        begin = match.end()
    yield text[begin:]


def _bounded(text: str, max_words: int) -> Iterator[str]:
    if not text:
        return
    if count_words(text) <= max_words:
        yield text
        return
    for separator in (_LINE, _SEMICOLON):
        parts = [part.strip() for part in separator.split(text) if part.strip()]
        if len(parts) > 1:
            for part in parts:
                yield from _bounded(part, max_words)
            return
    spans = word_spans(text)
    # Equal pieces, so that no rest of two words becomes a unit of its own.
    pieces = -(-len(spans) // max_words)
    bounds = [round(index * len(spans) / pieces) for index in range(pieces + 1)]
    for first, last in itertools.pairwise(bounds):
        yield text[spans[first][0] : spans[last - 1][1]]


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def tokenizer_counter(tokenizer: AnyTokenizer) -> TokenCounter:
    """Return a counter of the tokens of a tokenizer, transformers' or the one of a static embedding."""

    def count(texts: Sequence[str]) -> list[int]:
        batches = in_batches(texts, len, TOKENIZED_CHARACTERS)
        return [number for batch in batches for number in count_tokens(tokenizer, batch)]

    return count


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate token counts from word counts (:data:`TOKENS_PER_WORD`)."""
    return [max(1, round(TOKENS_PER_WORD * count_words(text))) for text in texts]


def segment_document(
    document: Document,
    segmenter: Segmenter,
    count_tokens: TokenCounter = estimate_tokens,
    max_words: int = MAX_WORDS,
) -> SegmentedDocument:
    """Cut one document into sentences.

    Args:
        document: The document.
        segmenter: Cuts each paragraph; Punkt by the language of the document, where it knows several.
        count_tokens: Counts the model's tokens of each sentence.
        max_words: Words of the longest sentence that stays whole.

    Returns:
        The segmented document; it has no sentences if the text is only white space.

    Raises:
        DataError: The segmenter changed the text.
        ConfigurationError: ``max_words`` is less than 1.
    """
    check_count("max_words", max_words)
    cut = segmenter.of(document.text) if isinstance(segmenter, PunktSegmenter) else segmenter
    sentences: list[str] = []
    starts: list[int] = []
    for paragraph in paragraphs_of(document.text):
        starts.append(len(sentences))
        sentences.extend(cut_sentences(paragraph, cut, max_words))
    return SegmentedDocument(
        id=document.id,
        sentences=tuple(sentences),
        paragraphs=tuple(starts),
        tokens=tuple(count_tokens(sentences)),
    )


def segment_stream(
    documents: Iterable[Document], segmenter: str | Segmenter, count_tokens: TokenCounter = estimate_tokens
) -> tuple[Segmenter, Iterator[SegmentedDocument]]:
    """Return a segmenter by name, which learns from the first documents if it must, and the segmented documents."""
    first, stream = peek(documents, lambda document: len(document.text))
    cut = make_segmenter(segmenter, lambda: (document.text for document in first))
    return cut, (segment_document(document, cut, count_tokens) for document in stream)


def segment_documents(
    documents: Any,
    segmenter: Segmenter,
    count_tokens: TokenCounter = estimate_tokens,
    max_words: int = MAX_WORDS,
) -> Iterator[SegmentedDocument]:
    """Cut the documents of a source, lazily."""
    for document in read_documents(documents):
        yield segment_document(document, segmenter, count_tokens, max_words)
