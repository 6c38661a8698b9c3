"""A document as token ids, and views of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from simlte_st.data.tokens import Ints, SentenceTokenizer
from simlte_st.data.views import Piece


@dataclass(frozen=True, eq=False)
class TokenizedDocument:
    """A document as token ids: an :class:`~simlte_st.data.document.Outline` that views can be drawn from.

    The arrays are int32, and mapped from a file where the document comes from a corpus: nothing is read but what is
    used.

    Attributes:
        id: The document's id.
        ids: Its token ids, sentence after sentence, each as it stands after a space; no special tokens.
        sizes: Tokens of each sentence.
        paragraph_starts: Index of the first sentence of each paragraph.
        word_counts: Words of each sentence.
        word_starts: Index in ``ids`` of the first token of each word of the document.
        head_ids: Tokens with which sentences begin where they open a text, if otherwise; see
            :class:`~simlte_st.data.tokens.TokenizedSentences`.
        head_sizes: How many of them each sentence has; empty where no sentence differs.
        head_replaces: How many of its first tokens they stand for; empty likewise.
    """

    id: str
    ids: Ints
    sizes: Ints
    paragraph_starts: Ints
    word_counts: Ints
    word_starts: Ints
    head_ids: Ints
    head_sizes: Ints
    head_replaces: Ints

    @cached_property
    def tokens(self) -> list[int]:
        """Number of tokens of each sentence."""
        sizes: list[int] = self.sizes.tolist()
        return sizes

    @cached_property
    def paragraphs(self) -> list[int]:
        """Index of the first sentence of each paragraph."""
        starts: list[int] = self.paragraph_starts.tolist()
        return starts

    def words(self, sentence: int) -> int:
        """Count the words of a sentence."""
        return int(self.word_counts[sentence])

    @cached_property
    def _bounds(self) -> list[int]:
        return list(accumulate(self.tokens, initial=0))

    @cached_property
    def _first_words(self) -> list[int]:
        return list(accumulate(self.word_counts.tolist(), initial=0))

    @cached_property
    def _first_heads(self) -> list[int]:
        return list(accumulate(self.head_sizes.tolist(), initial=0))

    def span(self, piece: Piece) -> tuple[int, int]:
        """Find the tokens of a piece: begin and end (exclusive) in :attr:`ids`."""
        sentence, start, stop = piece
        begin, end = self._bounds[sentence], self._bounds[sentence + 1]
        if stop is None:
            return begin, end
        first = self._first_words[sentence]
        if start > 0:
            begin = int(self.word_starts[first + start]) if start < self.words(sentence) else end
        if stop < self.words(sentence):
            end = int(self.word_starts[first + stop])
        return begin, end

    def head(self, sentence: int) -> tuple[Ints, int]:
        """Find how a sentence begins where it opens a text: tokens, and how many of its first tokens they replace."""
        if not len(self.head_sizes):
            return self.head_ids, 0
        heads = self._first_heads
        return self.head_ids[heads[sentence] : heads[sentence + 1]], int(self.head_replaces[sentence])


class TokenView(NamedTuple):
    """One view of a document, as pieces.

    Attributes:
        document: The document.
        pieces: What the view is made of, in the document's order.
    """

    document: TokenizedDocument
    pieces: Sequence[Piece]

    def ids(self, opening: bool = True) -> Ints:
        """Put the token ids together: those of the text that :func:`~simlte_st.data.views.render` makes.

        Exactly those, for whole sentences. Where a view cuts inside a sentence, they can differ from the text's in two
        ways: tokens are not made anew where a cut falls inside what the tokenizer takes for one word (a run of 25
        characters or more, a script written without spaces, white space that it drops); and the first word of a piece
        keeps the white space before it, for tokenizers that make white space part of words (byte-level BPE).

        Args:
            opening: Whether the view opens the text; False where a prompt and a space stand before it.
        """
        document = self.document
        parts = [document.ids[:0]]
        for number, piece in enumerate(self.pieces):
            begin, end = document.span(piece)
            if opening and number == 0 and piece.start == 0:
                head, replaces = document.head(piece.sentence)
                if begin + replaces <= end:
                    parts.append(head)
                    begin += replaces
            parts.append(document.ids[begin:end])
        return np.concatenate(parts)


class TokenPair(NamedTuple):
    """Two views of one document, as token ids.

    Attributes:
        anchor: The first view.
        positive: The second view.
    """

    anchor: TokenView
    positive: TokenView


def tokenize_document(
    name: str, sentences: Sequence[str], paragraphs: Sequence[int], tokenizer: SentenceTokenizer
) -> TokenizedDocument:
    """Tokenize the sentences of one document.

    Args:
        name: The document's id.
        sentences: Its sentences.
        paragraphs: Index of the first sentence of each paragraph.
        tokenizer: Tokenizes.
    """
    made = tokenizer(sentences)
    return TokenizedDocument(
        id=name,
        ids=made.ids,
        sizes=made.sizes,
        paragraph_starts=np.asarray(paragraphs, dtype=np.int32),
        word_counts=made.words,
        word_starts=made.word_starts,
        head_ids=made.head_ids,
        head_sizes=made.head_sizes,
        head_replaces=made.head_replaces,
    )
