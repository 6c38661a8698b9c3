"""The documents of a corpus of token ids, as those who decide about batches need them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from simlte_st.data.duplicates import Duplicates, find_duplicates
from simlte_st.data.pairs import PairDrawer
from simlte_st.data.token_corpus import TokenCorpus
from simlte_st.data.token_inputs import TokenPreprocessor
from simlte_st.data.tokenized_document import TokenizedDocument, TokenView
from simlte_st.data.views import draw_sides, whole
from simlte_st.training.batching.lengths import Lengths

_CHUNK = 2_048  # documents that are sorted by length together


@dataclass(frozen=True)
class TokenRows:
    """Documents of a corpus.

    Attributes:
        corpus: The corpus.
        rows: Which of its documents, int64.
    """

    corpus: TokenCorpus
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    def documents(self, start: int = 0, stop: int | None = None) -> Iterator[TokenizedDocument]:
        """Give some of the documents, in order."""
        for row in self.rows[start:stop]:
            yield self.corpus[row]

    def embed(self, model: SentenceTransformer, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Embed the beginnings of the documents, as many tokens as the model reads.

        Args:
            model: The encoder, in the mode that it shall be used in.
            batch_size: Documents in a forward pass.

        Yields:
            Embeddings of the next documents in order, float32, shape (documents, dimensions).
        """
        preprocess = TokenPreprocessor(model)
        limit = model.max_seq_length
        for start in range(0, len(self), _CHUNK):
            views = [_beginning(document, limit) for document in self.documents(start, start + _CHUNK)]
            sizes = [sum(view.document.tokens[piece.sentence] for piece in view.pieces) for view in views]
            order = np.argsort(sizes, kind="stable")[::-1]
            found: list[NDArray[np.float32] | None] = [None] * len(views)
            for first in range(0, len(order), batch_size):
                chosen = order[first : first + batch_size].tolist()
                features = preprocess([views[number] for number in chosen])
                placed = {
                    name: value.to(model.device) if isinstance(value, torch.Tensor) else value
                    for name, value in features.items()
                }
                with torch.inference_mode():
                    vectors = model(placed)["sentence_embedding"].float().cpu().numpy()
                for number, vector in zip(chosen, vectors, strict=True):
                    found[number] = vector
            yield np.stack([vector for vector in found if vector is not None])

    def duplicates(self, near: bool, seed: int = 0) -> Duplicates:
        """Find copies among the documents; see :func:`~simlte_st.data.duplicates.find_duplicates`.

        Args:
            near: Whether to look for near copies too.
            seed: Seed of that.
        """
        # Token ids as words: whatever the tokenizer takes for the same is the same.
        texts = (" ".join(map(str, document.ids.tolist())) for document in self.documents())
        return find_duplicates(texts, near=near, seed=seed)


def sentences_to_fill(tokens: Sequence[int], limit: int | None) -> int:
    """Count the first sentences that it takes to fill a limit of tokens: more of a long document is not read."""
    return len(tokens) if limit is None else int(np.searchsorted(np.cumsum(tokens), limit)) + 1


def _beginning(document: TokenizedDocument, limit: int | None) -> TokenView:
    sentences = min(len(document.tokens), sentences_to_fill(document.tokens, limit))
    return TokenView(document, whole(range(sentences)))


class TokenViewLengths:
    """The tokens of both views of each document, in any epoch: drawn as the collator will draw them.

    Args:
        rows: The documents.
        drawer: What the collator draws with.
        special_tokens: Tokens that the tokenizer adds to a view.
    """

    def __init__(self, rows: TokenRows, drawer: PairDrawer, special_tokens: int = 2) -> None:
        self.rows = rows
        self.drawer = drawer
        self.special_tokens = special_tokens
        self._last: tuple[int, Lengths] | None = None

    def __call__(self, epoch: int) -> Lengths:
        """Draw an epoch's views and count.

        Returns:
            Tokens, special tokens included, shape (documents, 2), int64.
        """
        if self._last is None or self._last[0] != epoch:
            drawer = self.drawer
            most = np.iinfo(np.int64).max if drawer.budget is None else drawer.budget
            lengths = np.empty((len(self.rows), 2), dtype=np.int64)
            for number, document in enumerate(self.rows.documents()):
                sides = draw_sides(document, drawer.view, seed=drawer.seed, epoch=epoch, budget=drawer.budget)
                assert sides is not None  # rows are of documents that the view accepts
                lengths[number] = [min(most, len(TokenView(document, side).ids())) for side in sides]
            self._last = epoch, lengths + self.special_tokens
        return self._last[1]
