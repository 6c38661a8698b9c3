"""How many tokens views have, and how many of a batch's are padding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from simlte_st.data.document import SegmentedDocument
from simlte_st.data.pairs import PairDrawer, from_row
from simlte_st.data.views import Piece, view_rng
from simlte_st.data.words import count_words

Lengths = NDArray[np.int64]

_ROWS = 512


class ViewLengths:
    """The tokens of both views of each document, in any epoch.

    The views are drawn as the collator will draw them: how long they are is as much a matter of chance as what is in
    them (a view of a short document has anything between a tenth and nine tenths of it), so that half the document's
    length would be off by up to two. Nothing is rendered or tokenized: about 0.1 ms a document.

    Args:
        corpus: Rows of :func:`~simlte_st.data.corpus.write_corpus`.
        drawer: What the collator draws with.
        special_tokens: Tokens that the tokenizer adds to a view.
    """

    def __init__(self, corpus: Dataset, drawer: PairDrawer, special_tokens: int = 2) -> None:
        self.corpus = corpus
        self.drawer = drawer
        self.special_tokens = special_tokens
        self._last: tuple[int, Lengths] | None = None

    def __call__(self, epoch: int) -> Lengths:
        """Draw an epoch's views and count.

        Returns:
            Tokens, special tokens included, shape (documents, 2). They add up what the sentences have by themselves;
            a cut sentence counts by its share of words.
        """
        if self._last is None or self._last[0] != epoch:
            rows = self.corpus.with_format(None)
            lengths = np.empty((len(rows), 2), dtype=np.int64)
            for start in range(0, len(rows), _ROWS):
                part = rows[start : start + _ROWS]
                for offset, values in enumerate(zip(*part.values(), strict=True)):
                    document = from_row(dict(zip(part, values, strict=True)))
                    lengths[start + offset] = self._both(document, epoch)
            self._last = epoch, lengths
        return self._last[1]

    def _both(self, document: SegmentedDocument, epoch: int) -> list[int]:
        drawer = self.drawer
        sides = drawer.view.draw(document, drawer.budget, view_rng(drawer.seed, epoch, document.id))
        counts = (math.ceil(sum(_tokens(document, piece) for piece in pieces) - 1e-6) for pieces in sides)
        return [
            self.special_tokens + (count if drawer.budget is None else min(count, drawer.budget)) for count in counts
        ]


def _tokens(document: SegmentedDocument, piece: Piece) -> float:
    tokens = document.tokens[piece.sentence]
    if piece.stop is None:
        return tokens
    words = max(1, count_words(document.sentences[piece.sentence]))
    return tokens * (piece.stop - piece.start) / words


@dataclass(frozen=True, slots=True)
class Padding:
    """What batches cost in tokens.

    Attributes:
        batches: Number of batches.
        documents: Documents in them.
        real: Tokens of their views.
        padded: Tokens after all views of a batch are padded to its longest; with packing as many as are real.
        largest: The most padded tokens of a batch.
    """

    batches: int
    documents: int
    real: int
    padded: int
    largest: int

    @property
    def share(self) -> float:
        """Share of the tokens that are padding, 0 to 1."""
        return 1 - self.real / self.padded if self.padded else 0.0


def measure_padding(
    batches: Iterable[Sequence[int] | NDArray[np.int64]], lengths: Lengths, packed: bool = False
) -> Padding:
    """Count the tokens and the padding of batches.

    Args:
        batches: Row numbers.
        lengths: Tokens of each view of each document, shape (documents, views).
        packed: Nothing is padded.
    """
    documents = []
    real = []
    padded = []
    for batch in batches:
        tokens = lengths[np.asarray(batch, dtype=np.int64)]
        documents.append(len(tokens))
        real.append(int(tokens.sum()))
        padded.append(real[-1] if packed else int(tokens.max(initial=0)) * tokens.size)
    return Padding(len(documents), sum(documents), sum(real), sum(padded), max(padded, default=0))
