"""Recipes for static embeddings, trained on two views of whole documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from simlte_st.data import DocSplit, SegmentedDocument, View
from simlte_st.views.views import Span, draw_spans, render


@dataclass(frozen=True)
class StaticRecipe:
    """Settings for training static embeddings with Adam and linear decay.

    Attributes:
        view: How a whole document becomes two views.
        learning_rate: Learning rate of the first step.
        temperature: Temperature of the contrastive loss, which runs in both directions.
        batch: Documents in a step.
        steps: Optimizer steps.
        passes: Passes over the documents, in place of ``steps``.
    """

    view: View = field(default_factory=DocSplit)
    learning_rate: float = 1e-2
    temperature: float = 0.5
    batch: int = 128
    steps: int = 100
    passes: int | None = None


STATIC = StaticRecipe()
STATIC_RECIPES = {
    "static docsplit": STATIC,
    "static docsplit, temperature 1, 2e-2, 14 passes": replace(STATIC, temperature=1.0, learning_rate=2e-2, passes=14),
    "static docsplit, 3e-3": replace(STATIC, learning_rate=3e-3),
    "static docsplit, 6e-2": replace(STATIC, learning_rate=6e-2),
    "static docsplit, 0.3": replace(STATIC, learning_rate=0.3),
    "static docsplit, 20 steps": replace(STATIC, steps=20),
    "static docsplit, temperature 0.05": replace(STATIC, temperature=0.05),
    "static docsplit, temperature 0.1, 3e-3, 300 steps": StaticRecipe(temperature=0.1, learning_rate=3e-3, steps=300),
}
"""All static recipes by name: the preset's, and better or worse ones."""


def train_static(
    model: SentenceTransformer, recipe: StaticRecipe, documents: Sequence[SegmentedDocument], seed: int
) -> Iterator[int]:
    """Train static embeddings in place, yielding the number of finished steps."""
    views, weights = _TokenizedDocuments(model, documents), model[0].embedding.weight
    assert isinstance(weights, torch.Tensor)
    # Adam does not move vectors without gradients, so training only those of these documents is several times as fast.
    vectors = weights.detach()[views.tokens].requires_grad_()
    batch_size, generator = min(recipe.batch, len(documents)), np.random.default_rng(seed)
    optimizer = torch.optim.Adam([vectors], lr=recipe.learning_rate)
    steps = recipe.steps if recipe.passes is None else -(-recipe.passes * len(documents) // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    diagonal = torch.arange(batch_size)
    for step, (epoch, rows) in enumerate(islice(shuffled_batches(len(documents), batch_size, generator), steps), 1):
        pairs = [views.draw(row, recipe.view, seed, epoch) for row in rows]
        first, second = (_mean_embeddings(vectors, side) for side in zip(*pairs, strict=True))
        scores = first @ second.T / recipe.temperature
        loss = (functional.cross_entropy(scores, diagonal) + functional.cross_entropy(scores.T, diagonal)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            weights[views.tokens] = vectors
        yield step


def shuffled_batches(rows: int, batch_size: int, generator: np.random.Generator) -> Iterator[tuple[int, list[int]]]:
    """Yield epoch and row numbers of batches without end; drop the incomplete batch of each epoch."""
    for epoch in count():
        order = generator.permutation(rows).tolist()
        for start in range(0, rows - batch_size + 1, batch_size):
            yield epoch, order[start : start + batch_size]


class _TokenizedDocuments:
    """Documents, tokenized once; token ids are positions in ``tokens``, the vocabulary of these documents."""

    def __init__(self, model: SentenceTransformer, documents: Sequence[SegmentedDocument]) -> None:
        self.documents, self.tokenizer = documents, model[0].tokenizer
        sentences = [self._ids(document.sentences) for document in documents]
        self.tokens = torch.from_numpy(np.unique(np.concatenate(list(chain.from_iterable(sentences)))))
        self.sentences = [list(map(self._positions, document)) for document in sentences]

    def draw(self, row: int, view: View, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of two views of a document."""
        document = self.documents[row]
        spans = draw_spans(document, view, seed=seed, epoch=epoch)
        spans = spans or draw_spans(document, DocSplit(), seed=seed, epoch=epoch)
        assert spans is not None  # DocSplit accepts every document
        first, second = (np.concatenate([self._span(row, span) for span in side]) for side in spans)
        return first, second

    def _span(self, row: int, span: Span) -> np.ndarray:
        if span.stop is None:
            return self.sentences[row][span.sentence]
        return self._positions(self._ids([render(self.documents[row], [span])])[0])

    def _ids(self, texts: Sequence[str]) -> list[np.ndarray]:
        encodings = self.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]

    def _positions(self, ids: np.ndarray) -> np.ndarray:
        positions = np.searchsorted(self.tokens.numpy(), ids)
        return positions[np.isin(ids, self.tokens.numpy())]


def _mean_embeddings(vectors: torch.Tensor, tokens: Sequence[np.ndarray]) -> torch.Tensor:
    offsets = torch.from_numpy(np.cumsum([0, *(len(ids) for ids in tokens[:-1])]))
    means = functional.embedding_bag(torch.from_numpy(np.concatenate(tokens)), vectors, offsets, mode="mean")
    return functional.normalize(means, dim=-1)
