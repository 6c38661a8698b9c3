"""A measure without labels: can one half of a document find its other half among those of other documents?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.data.document import SegmentedDocument
from simlte_st.data.documents import list_documents
from simlte_st.data.sentences import Segmenter, make_segmenter, segment_documents
from simlte_st.data.views import DocSplit, draw_views
from simlte_st.errors import DataError
from simlte_st.evaluation.scores import CosineScores, PairScores
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, uniformity
from simlte_st.models.vectors import row_blocks

logger = logging.getLogger(__name__)

Halves = tuple[list[str], list[str]]
"""The first and the second half of each document."""

EVALUATION_EPOCH = -1
"""Epoch of evaluation views: one that no training run has."""

_VIEW = DocSplit()


@dataclass(frozen=True, slots=True)
class SplitHalfResult:
    """How well view A of a document finds view B of the same document among the B views of all documents.

    Attributes:
        top1: Share of documents whose own B view comes first.
        top1_low: Lower end of its 95 % bootstrap interval over documents.
        top1_high: Upper end.
        mrr: Mean of 1 / rank of the own B view.
        mrr_low: Lower end of its 95 % bootstrap interval over documents.
        mrr_high: Upper end.
        documents: Number of documents N.
        alignment: Mean squared distance of the pairs (Wang & Isola, 2020); None for a ranking without embeddings.
        uniformity: Mean of the uniformity of the A views and of the B views (Wang & Isola, 2020); None likewise.
        ranks: Rank of the own B view for each document, from 1, shape ``[N]``, int64, for paired comparisons.
    """

    top1: float
    top1_low: float
    top1_high: float
    mrr: float
    mrr_low: float
    mrr_high: float
    documents: int
    alignment: float | None = None
    uniformity: float | None = None
    ranks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name, without those that are None."""
        names = ("top1", "top1_low", "top1_high", "mrr", "mrr_low", "mrr_high", "alignment", "uniformity", "documents")
        values = {name: getattr(self, name) for name in names}
        return {name: float(value) for name, value in values.items() if value is not None}


def split_half_retrieval(a: ArrayLike, b: ArrayLike, seed: int = 0) -> SplitHalfResult:
    """Retrieve row i of ``b`` with row i of ``a`` by cosine similarity.

    A tie counts as lost: the own B view ranks behind every other one that is as similar. A model that maps all texts
    to one point therefore scores 0 and 1 / N, not 1; so do documents with duplicates.

    Args:
        a: Embeddings of the A views, shape ``[N, dim]``, N >= 2, any float dtype.
        b: Embeddings of the B views, same shape.
        seed: Seed of the bootstrap and of the sample :func:`uniformity` may take.

    Raises:
        DataError: Shapes differ, N < 2, or a value is not finite.
    """
    ranks = ranks_of_halves(cosines_of_halves(a, b))
    spread = (uniformity(a, seed=seed) + uniformity(b, seed=seed)) / 2.0
    return result_from_ranks(ranks, seed=seed, alignment=alignment(a, b), uniformity=spread)


def cosines_of_halves(first: ArrayLike, second: ArrayLike) -> CosineScores:
    """Return the cosines between the halves of documents: first ones, then second ones."""
    halves = np.asarray(first), np.asarray(second)
    if halves[0].shape != halves[1].shape:
        raise DataError(f"Two halves need arrays of one shape, got {halves[0].shape} and {halves[1].shape}.")
    return CosineScores(np.concatenate(halves))


def check_documents(count: int) -> None:
    """Raise :class:`DataError` where there is no other document to confuse one with."""
    if count < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents that can be split; there are {count}.")


def ranks_of_halves(scores: PairScores) -> NDArray[np.int64]:
    """Return the rank of the own B view for each document, from scores of ``2 N`` texts: A views, then B views."""
    count = scores.size // 2
    check_documents(count)
    texts, ranks = np.arange(2 * count), np.empty(count, dtype=np.int64)
    for rows in row_blocks(count, count):
        block = scores.rows(texts[rows], texts[count:])
        own = block[np.arange(len(block)), texts[rows]]
        # Matrix products round the same dot product differently at different places: without the tolerance half of all
        # ties would be won. The own B view makes it start from 1.
        ranks[rows] = (block >= own[:, None] - scores.tolerance).sum(axis=1)
    return ranks


def result_from_ranks(ranks: NDArray[np.int64], *, seed: int = 0, **others: float) -> SplitHalfResult:
    """Return the summary of ranks ``[N]`` with 95 % bootstrap intervals over documents."""
    hits, reciprocal = (ranks == 1).astype(np.float64), 1.0 / ranks
    top1, mrr = bootstrap_interval(hits, seed=seed), bootstrap_interval(reciprocal, seed=seed)
    return SplitHalfResult(
        float(hits.mean()), *top1, float(reciprocal.mean()), *mrr, documents=len(ranks), ranks=ranks, **others
    )


def split_half_views(
    documents: Any,
    *,
    segmenter: str | Segmenter = "punkt",
    budget: int | None = None,
    seed: int = 0,
) -> Halves:
    """Draw the two halves of each document, by DocSplit.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; no model to be measured should have been trained
            on them.
        segmenter: ``"punkt"`` or a callable.
        budget: Most tokens of a half, estimated from words so that the texts are the same for every tokenizer.
        seed: Decides the split.

    Returns:
        First and second halves. Documents that cannot be split are skipped, with a warning.

    Raises:
        DataError: Fewer than two documents can be split.
    """
    return draw_halves(splittable(documents, segmenter), budget, seed)


def splittable(documents: Any, segmenter: str | Segmenter) -> list[SegmentedDocument]:
    """Return the documents that can be split, with their sentences."""
    read = list_documents(documents)
    cut = make_segmenter(segmenter, lambda: (document.text for document in read))
    usable = [document for document in segment_documents(read, cut) if _VIEW.accepts(document)]
    if len(usable) < len(read):
        logger.warning("%d of %d documents are too short to be split.", len(read) - len(usable), len(read))
    check_documents(len(usable))
    return usable


def draw_halves(documents: Sequence[SegmentedDocument], budget: int | None, seed: int) -> Halves:
    """Draw the halves of documents, of ``budget`` tokens at most."""
    drawn = (draw_views(document, _VIEW, seed=seed, epoch=EVALUATION_EPOCH, budget=budget) for document in documents)
    pairs = [pair for pair in drawn if pair is not None]
    return [pair.anchor for pair in pairs], [pair.positive for pair in pairs]
