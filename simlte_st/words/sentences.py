"""Split documents into sentences and passages.

Documents are split into paragraphs, and a segmenter splits each paragraph into sentences. The segmenter is NLTK's Punkt
or any callable. It may drop or normalize white space, but must keep all other characters in order; this is checked.
Punkt recognizes sentence ends in the Latin, Greek and Cyrillic scripts. The full stops of other scripts always end a
sentence, as do spaces in Thai and Lao, which have no full stop. Sentences longer than ``max_words`` words, common in
tables and code, are split at line ends, then into pieces of at most ``max_words`` words.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from simlte_st.arguments import Count, check_arguments
from simlte_st.errors import ConfigurationError, DataError
from simlte_st.reading.document import SAMPLE_CHARACTERS, Document, SegmentedDocument, count_words, peek, word_spans
from simlte_st.words.tokens import count_tokens, in_batches, split_long_text

if TYPE_CHECKING:  # NLTK takes a second to import
    from nltk.tokenize.punkt import PunktParameters

    from simlte_st.words.tokens import AnyTokenizer

logger = logging.getLogger(__name__)

MAX_WORDS = 64
"""Maximum number of words in a sentence: about 85 tokens, so that views of 128 tokens hold several sentences."""

TOKENS_PER_WORD = 1.3
"""Tokens per word, assumed when there is no tokenizer; BERT produces 1.2 to 1.5 on English prose."""

STATIC_PASSAGE = 256
"""Maximum number of tokens in a passage, for models without a length limit."""

Segmenter = Callable[[str], Sequence[str]]
"""Splits one paragraph into sentences, in order, keeping all characters except white space."""

TokenCounter = Callable[[Sequence[str]], Sequence[int]]
"""Counts the tokens in each text, without special tokens."""


_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_LINE = re.compile(r"\n+")
# Full stops: Chinese, Japanese, Arabic, Urdu, Indic scripts, Armenian, Ethiopic, Burmese, Khmer, Tibetan, Mongolian.
_STOP = re.compile(
    "(?:[。！？｡؟۔।॥։።፧፨။។៕༎།᠃᠉]|．(?![0-9０-９]))+[\"'”’»」』）)】》〉]*"
    # a space in Thai or Lao, except beside a repetition mark
    "|(?<=[\u0e00-\u0e45\u0e47-\u0ec5\u0ec7-\u0eff]) +(?=[\u0e00-\u0e45\u0e47-\u0ec5\u0ec7-\u0eff])"
)
_SEMICOLON = re.compile("(?<=；)")
_HARD_WRAP = 120  # characters; a text without blank lines or longer lines is hard-wrapped: its lines are not paragraphs
_PIECE = 20_000  # characters per call of the segmenter, which bounds the cost of pathological texts
_MAX_LEARNED = 100_000  # characters that Punkt learns from per text, so that no document dominates


class PunktSegmenter:
    """NLTK's Punkt (Kiss & Strunk, 2006), with learned parameters.

    Args:
        parameters: Abbreviations, collocations, frequent sentence starters and the orthographic context of words.
            By default, there are none, and Punkt splits after every full stop.
    """

    def __init__(self, parameters: PunktParameters | None = None) -> None:
        from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

        self.parameters = parameters if parameters is not None else PunktParameters()
        self._tokenizer = PunktSentenceTokenizer(self.parameters)

    def __call__(self, text: str, /) -> list[str]:
        """Split a text at the start of each Punkt sentence, so that no text between sentences is lost."""
        try:
            starts = [start for start, _ in self._tokenizer.span_tokenize(text)]
        except TimeoutError:
            # NLTK gives each regular expression a few seconds; only adversarial text exceeds them.
            logger.warning("Punkt timed out on a text starting with %r; splitting it by lines and length.", text[:40])
            return [text]
        return [text[start:stop].strip() for start, stop in itertools.pairwise([0, *starts[1:], len(text)])]

    @classmethod
    def learn(cls, texts: Iterable[str], max_characters: int = SAMPLE_CHARACTERS) -> PunktSegmenter:
        """Learn parameters, without labels, from the first ``max_characters`` characters of ``texts``."""
        from nltk.tokenize.punkt import PunktTrainer

        trainer, remaining = PunktTrainer(), max_characters
        for text in texts:
            if remaining <= 0:
                break
            try:
                trainer.train(text[: min(remaining, _MAX_LEARNED)], finalize=False)
            except TimeoutError:
                logger.warning("Punkt timed out while learning from a text starting with %r.", text[:40])
            remaining -= len(text)
        if remaining == max_characters:
            return cls()
        trainer.finalize_training()
        return cls(trainer.get_params())

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as sorted JSON values, so that the same corpus gives the same bytes."""
        return {
            "abbreviations": sorted(self.parameters.abbrev_types),
            "collocations": sorted(list(pair) for pair in self.parameters.collocations),
            "sentence_starters": sorted(self.parameters.sent_starters),
            "orthographic_context": dict(sorted(self.parameters.ortho_context.items())),
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PunktSegmenter:
        """Create a segmenter from the output of :meth:`to_dict`."""
        from nltk.tokenize.punkt import PunktParameters

        parameters = PunktParameters()
        parameters.abbrev_types = set(values["abbreviations"])
        parameters.collocations = {(first, second) for first, second in values["collocations"]}
        parameters.sent_starters = set(values["sentence_starters"])
        parameters.ortho_context.update(Counter(values["orthographic_context"]))
        return cls(parameters)


def make_segmenter(segmenter: str | Segmenter, sample: Callable[[], Iterable[str]]) -> Segmenter:
    """Return a segmenter by name: Punkt, which learns from the sample, or a callable."""
    if callable(segmenter):
        return segmenter
    if segmenter != "punkt":
        raise ConfigurationError(f"Unknown segmenter {segmenter!r}: use 'punkt' or a callable.")
    return PunktSegmenter.learn(sample())


def split_paragraphs(text: str) -> list[str]:
    """Split a text into paragraphs at blank lines.

    In a text without blank lines, each line is a paragraph, unless all lines are short enough to look hard-wrapped.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = _BLANK_LINES.split(text)
    if len(blocks) == 1 and max(map(len, lines := text.split("\n"))) > _HARD_WRAP:
        blocks = lines
    return [block.strip() for block in blocks if block.strip()]


def cut_sentences(paragraph: str, segmenter: Segmenter, max_words: int = MAX_WORDS) -> list[str]:
    """Split one paragraph into sentences of at most ``max_words`` words."""
    sentences: list[str] = []
    for piece in split_long_text(paragraph, _PIECE):
        segments = segmenter(piece)
        if "".join("".join(segments).split()) != "".join(piece.split()):
            problem = f"The segmenter {segmenter!r} changed the text {piece[:80]!r} to {str(segments)[:80]!r}."
            raise DataError(f"{problem} A segmenter may change nothing but white space.")
        for sentence in itertools.chain.from_iterable(map(_at_stops, segments)):
            sentences += _split_long_sentence(sentence.strip(), max_words)
    return sentences


def _at_stops(text: str) -> Iterator[str]:
    ends = [] if text.isascii() else [match.end() for match in _STOP.finditer(text)]
    return (text[start:end] for start, end in itertools.pairwise([0, *ends, len(text)]))


def _split_long_sentence(text: str, max_words: int) -> list[str]:
    if count_words(text) <= max_words:
        return [text] if text else []
    for separator in (_LINE, _SEMICOLON):
        parts = [part.strip() for part in separator.split(text) if part.strip()]
        if len(parts) > 1:
            return [sentence for part in parts for sentence in _split_long_sentence(part, max_words)]
    spans = word_spans(text)
    # Pieces of equal length, so that the last piece is not left with only a word or two.
    pieces = -(-len(spans) // max_words)
    bounds = [round(index * len(spans) / pieces) for index in range(pieces + 1)]
    return [text[spans[start][0] : spans[stop - 1][1]] for start, stop in itertools.pairwise(bounds)]


def tokenizer_counter(tokenizer: AnyTokenizer) -> TokenCounter:
    """Return a token counter for a transformers tokenizer or a static embedding's tokenizer."""
    return functools.partial(count_tokens, tokenizer)


def estimate_tokens(texts: Sequence[str]) -> list[int]:
    """Estimate token counts as word counts times :data:`TOKENS_PER_WORD`."""
    return [max(1, round(TOKENS_PER_WORD * count_words(text))) for text in texts]


@check_arguments
def segment_document(
    document: Document, segmenter: Segmenter, count_tokens: TokenCounter = estimate_tokens, max_words: Count = MAX_WORDS
) -> SegmentedDocument:
    """Split one document into sentences.

    Args:
        document: The document.
        segmenter: Splits each paragraph.
        count_tokens: Counts the tokens of each sentence.
        max_words: Maximum number of words in a sentence; longer ones are split.

    Returns:
        The segmented document, which has no sentences if the text is only white space.

    Raises:
        DataError: The segmenter changed the text.
        ConfigurationError: ``max_words`` is less than 1.
    """
    paragraphs = [cut_sentences(paragraph, segmenter, max_words) for paragraph in split_paragraphs(document.text)]
    sentences = list(itertools.chain.from_iterable(paragraphs))
    starts = [0, *itertools.accumulate(map(len, paragraphs))][:-1]
    return SegmentedDocument(document.id, tuple(sentences), tuple(starts), tuple(count_tokens(sentences)))


def segment_stream(
    documents: Iterable[Document], segmenter: str | Segmenter, count_tokens: TokenCounter = estimate_tokens
) -> tuple[Segmenter, Iterator[SegmentedDocument]]:
    """Return the segmenter, which may learn from the first documents, and a stream of segmented documents."""
    first, stream = peek(documents, lambda document: len(document.text))
    cut = make_segmenter(segmenter, lambda: (document.text for document in first))
    return cut, segment_documents(stream, cut, count_tokens)


def segment_documents(
    documents: Iterable[Document], segmenter: Segmenter, count_tokens: TokenCounter = estimate_tokens
) -> Iterator[SegmentedDocument]:
    """Split documents into sentences, lazily."""
    return (segment_document(document, segmenter, count_tokens) for document in documents)


def split_passages(
    document: Document, segmenter: Segmenter | None, count: TokenCounter, budget: int | None
) -> list[str]:
    """Split a document into passages: runs of whole sentences that fit the model; none if the whole document fits.

    For a model without a length limit, passages have up to :data:`STATIC_PASSAGE` tokens, because a long document's
    vector says little about any one page.

    Args:
        document: The document.
        segmenter: The index's segmenter; None for an index without passages.
        count: Counts the tokens of each text.
        budget: Maximum number of tokens that the model reads; None for no limit.
    """
    budget = STATIC_PASSAGE if budget is None else budget
    if segmenter is None or count([document.text])[0] <= budget:
        return []
    return list(sentence_runs(segment_document(document, segmenter, count), budget))


def sentence_runs(document: SegmentedDocument, budget: int) -> Iterator[str]:
    """Yield runs of whole sentences with up to ``budget`` tokens; a longer sentence forms its own run."""
    paragraphs = set(document.paragraphs)
    for first, *following in in_batches(range(len(document.sentences)), document.tokens.__getitem__, budget):
        additions = (("\n\n" if index in paragraphs else " ") + document.sentences[index] for index in following)
        yield "".join([document.sentences[first], *additions])
