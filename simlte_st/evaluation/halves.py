"""Measures without labels: do both halves of a document lie in the same place among other documents?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError
from simlte_st.evaluation.scores import CosineScores, PairScores, TfidfScores, bootstrap_interval
from simlte_st.models.vectors import row_blocks, unit_rows
from simlte_st.reading.document import SegmentedDocument
from simlte_st.reading.documents import list_documents
from simlte_st.views.views import DocSplit, draw_views
from simlte_st.words.languages import LanguageFinder
from simlte_st.words.sentences import Segmenter, make_segmenter, segment_documents

logger = logging.getLogger(__name__)

Halves = tuple[list[str], list[str]]
"""First and second halves of documents."""

Neighbours: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Nearest documents of the first and of the second halves: ``[N, count]`` each."""

EVALUATION_EPOCH = -1
"""Epoch of the evaluation views; no training run reaches it."""

NEIGHBOURS = 10
"""Number of nearest documents to compare; see ``benchmarks/results/verdict.md``."""

_VIEW = DocSplit()


def split_half_views(
    documents: Any, *, segmenter: str | Segmenter = "punkt", budget: int | None = None, seed: int = 0
) -> Halves:
    """Split each document at random into two halves (DocSplit).

    Args:
        documents: Documents that the models were not trained on: anything that ``read_documents`` takes or returns.
        segmenter: How to split texts into sentences: ``"punkt"`` or a callable.
        budget: Maximum length of a half in tokens, estimated from words to give the same texts for every tokenizer.
        seed: Random seed of the split.

    Returns:
        First and second halves. Documents that cannot be split are skipped with a warning.

    Raises:
        DataError: Fewer than two documents can be split.
    """
    return draw_halves(splittable(documents, segmenter), budget, seed)


def splittable(documents: Any, segmenter: str | Segmenter) -> list[SegmentedDocument]:
    """Read and segment documents, and return those that can be split."""
    documents = list_documents(documents)
    cut = make_segmenter(segmenter, lambda: (document.text for document in documents))
    usable = [document for document in segment_documents(documents, cut) if _VIEW.accepts(document)]
    if len(usable) < len(documents):
        logger.warning("%d of %d documents are too short to split.", len(documents) - len(usable), len(documents))
    check_documents(len(usable))
    return usable


def draw_halves(documents: Sequence[SegmentedDocument], budget: int | None, seed: int) -> Halves:
    """Draw halves of at most ``budget`` tokens."""
    drawn = (draw_views(document, _VIEW, seed=seed, epoch=EVALUATION_EPOCH, budget=budget) for document in documents)
    pairs = [pair for pair in drawn if pair is not None]
    return [pair.anchor for pair in pairs], [pair.positive for pair in pairs]


def check_documents(count: int) -> None:
    """Check that there are at least two documents."""
    if count < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents that can be split; there are {count}.")


@dataclass(frozen=True, slots=True)
class SplitHalfResult:
    """Result of split-half retrieval: one half of a document searches for its other half among all documents.

    Attributes:
        top1: Share of documents whose other half ranks first.
        top1_low: Lower end of its 95% bootstrap interval over documents.
        top1_high: Upper end.
        mrr: Mean reciprocal rank of the other half.
        mrr_low: Lower end of its 95% bootstrap interval over documents.
        mrr_high: Upper end.
        documents: Number of documents N.
        ranks: Rank of the other half for each document, from 1, shape ``[N]``, int64, for paired comparisons.
    """

    top1: float
    top1_low: float
    top1_high: float
    mrr: float
    mrr_low: float
    mrr_high: float
    documents: int
    ranks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        names = ("top1", "top1_low", "top1_high", "mrr", "mrr_low", "mrr_high", "documents")
        return {name: float(getattr(self, name)) for name in names}


def split_half_retrieval(a: ArrayLike, b: ArrayLike, seed: int = 0) -> SplitHalfResult:
    """Retrieve row i of ``b`` with row i of ``a`` by cosine similarity.

    Ties count as lost: the other half ranks behind all equally similar texts. A model that maps all texts to one point
    therefore has a top-1 of 0 and an MRR of 1 / N; so have duplicates.

    Args:
        a: Embeddings of the first halves, shape ``[N, dim]``, N >= 2, any float dtype.
        b: Embeddings of the second halves, same shape.
        seed: Random seed of the bootstrap.

    Raises:
        DataError: Shapes differ, N < 2, or a value is not finite.

    Example:
        ::

            first, second = split_half_views("held_out.jsonl")
            print(split_half_retrieval(model.encode(first), model.encode(second)).top1)
    """
    return result_from_ranks(ranks_of_halves(cosines_of_halves(a, b)), seed)


def cosines_of_halves(first: ArrayLike, second: ArrayLike) -> CosineScores:
    """Return cosine scores of the first halves followed by the second halves."""
    halves = np.asarray(first), np.asarray(second)
    if halves[0].shape != halves[1].shape:
        raise DataError(f"Both halves must have the same shape, got {halves[0].shape} and {halves[1].shape}.")
    return CosineScores(np.concatenate(halves))


def ranks_of_halves(scores: PairScores) -> NDArray[np.int64]:
    """Return the rank of each document's second half; the scores are of first halves followed by second halves."""
    count = scores.size // 2
    check_documents(count)
    texts, ranks = np.arange(2 * count), np.empty(count, dtype=np.int64)
    for rows in row_blocks(count, count):
        block = scores.rows(texts[rows], texts[count:])
        own = block[np.arange(len(block)), texts[rows]]
        # Matrix products round the same dot product differently in different positions: without the tolerance, half of
        # the ties would be won. The document's own half counts too, so ranks start from 1.
        ranks[rows] = (block >= own[:, None] - scores.tolerance).sum(axis=1)
    return ranks


def result_from_ranks(ranks: NDArray[np.int64], seed: int = 0) -> SplitHalfResult:
    """Summarise ranks ``[N]``, with 95% bootstrap intervals over documents."""
    hits, reciprocal = (ranks == 1).astype(np.float64), 1.0 / ranks
    top1, mrr = bootstrap_interval(hits, seed=seed), bootstrap_interval(reciprocal, seed=seed)
    return SplitHalfResult(float(hits.mean()), *top1, float(reciprocal.mean()), *mrr, documents=len(ranks), ranks=ranks)


@dataclass(frozen=True, slots=True)
class StructureResult:
    """Agreement of the two halves of documents on their nearest documents.

    Attributes:
        agreement: Mean share of nearest documents that both halves have in common.
        low: Lower end of its 95% bootstrap interval over documents.
        high: Upper end.
        documents: Number of documents N.
        scores: The share for each document, shape ``[N]``, float64, for paired comparisons.
    """

    agreement: float
    low: float
    high: float
    documents: int
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """Return the numbers by name."""
        names = ("agreement", "low", "high", "documents")
        return {name: float(getattr(self, name)) for name in names}


def structure_agreement(
    first: ArrayLike, second: ArrayLike, *, neighbours: int = NEIGHBOURS, seed: int = 0
) -> StructureResult:
    """Compare the nearest documents of the first half of a document with those of its second half.

    First halves are compared with second halves of other documents, and vice versa, so that shared wording cannot cause
    agreement. Contrastive training does not optimise this measure, unlike split-half retrieval: the two halves of a
    document are never compared.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Embeddings of the second halves, in the same order.
        neighbours: Number of nearest documents; at most a third of the other documents.
        seed: Random seed of the bootstrap.

    Raises:
        DataError: Fewer than three documents, different shapes, or a value that is not finite.

    Example:
        ::

            first, second = split_half_views("held_out.jsonl")
            print(structure_agreement(model.encode(first), model.encode(second)).agreement)
    """
    return agreement_of_scores(cosines_of_halves(first, second), neighbours=neighbours, seed=seed)


def agreement_of_scores(scores: PairScores, *, neighbours: int = NEIGHBOURS, seed: int = 0) -> StructureResult:
    """Return :func:`structure_agreement` for scores of ``2 N`` texts: first halves, then second halves."""
    count, firsts, seconds = _sides(scores.size // 2, neighbours)
    near = [_near(scores, *sides, count) for sides in ((firsts, seconds), (seconds, firsts))]
    return summarise(_shared(*near), seed)


def neighbours_by_words(first: Sequence[str], second: Sequence[str], *, neighbours: int = NEIGHBOURS) -> Neighbours:
    """Return the documents nearest to each half by words, among the halves of the same side.

    The cosine is that of TF-IDF vectors, over words that occur in at least two halves, without stop words. Missing
    neighbours, which share no word with the half, are -1.
    """
    count, firsts, seconds = _sides(len(first), neighbours)
    try:
        scores = TfidfScores([*first, *second], stop_words=LanguageFinder(first).languages, min_df=2)
    except DataError:  # no word occurs in two halves
        nothing = np.full((len(firsts), count), -1)
        return nothing, nothing
    return _near(scores, firsts, firsts, count), _near(scores, seconds, seconds, count)


def words_agreement(first: ArrayLike, second: ArrayLike, words: Neighbours, *, seed: int = 0) -> StructureResult:
    """Compare the nearest documents of one half with those of the other half by words.

    Halves that agree on neighbours for reasons other than the topic, such as style or length, do not agree on these.
    """
    scores = cosines_of_halves(first, second)
    count = words[0].shape[1]
    _, *sides = _sides(scores.size // 2, count)
    shares = [_shared(_near(scores, side, side, count), near) for side, near in zip(sides, words[::-1], strict=True)]
    return summarise(np.mean(shares, axis=0), seed)


def similarity_agreement(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> StructureResult:
    """Correlate the similarities of the first half to all documents with those of the second half.

    Similarities are cosines among the halves of one side. The mean of the side is subtracted first, because a shared
    mean would make all similarities agree. All documents count, not only the nearest, which shows whether groups stay
    together.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Embeddings of the second halves, in the same order.
        seed: Random seed of the bootstrap.

    Returns:
        The result, whose ``scores`` and ``agreement`` are Pearson correlations, -1 to 1.
    """
    _sides(cosines_of_halves(first, second).size // 2, 1)  # checks both
    sides = [np.asarray(rows, dtype=np.float64) for rows in (first, second)]
    sides = [unit_rows(rows - rows.mean(axis=0)) for rows in sides]
    places, agreement = np.arange(len(sides[0])), np.empty(len(sides[0]))
    for rows in row_blocks(len(places), len(places)):
        others = places[rows, None] != places
        tables = [(side[rows] @ side.T)[others].reshape(len(others), -1) for side in sides]
        tables = [table - table.mean(axis=1, keepdims=True) for table in tables]
        sizes = np.prod([np.linalg.norm(table, axis=1) for table in tables], axis=0)
        agreement[rows] = (tables[0] * tables[1]).sum(axis=1) / np.maximum(sizes, 1e-12)
    return summarise(agreement, seed)


def summarise(scores: NDArray[np.float64], seed: int = 0) -> StructureResult:
    """Return the mean of scores ``[N]`` with its interval."""
    low, high = bootstrap_interval(scores, seed=seed)
    return StructureResult(float(scores.mean()), low, high, len(scores), scores)


def _sides(size: int, neighbours: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of neighbours to compare, and the rows of first and of second halves."""
    check_documents(size)
    if size < 3:
        raise DataError("Comparing neighbours needs at least 3 documents.")
    return max(1, min(neighbours, (size - 1) // 3)), np.arange(size), np.arange(size, 2 * size)


def _near(scores: PairScores, queries: NDArray[np.int64], others: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the nearest other documents of each half; -1 for those that have nothing in common with it."""
    found: list[NDArray[Any]] = []
    for rows in row_blocks(len(queries), len(queries)):
        block = np.array(scores.rows(queries[rows], others), dtype=np.float64)
        own = np.arange(len(block))
        block[own, rows.start + own] = -np.inf
        best = np.argsort(-block, axis=1, kind="stable")[:, :count]
        found.append(np.where(np.take_along_axis(block, best, axis=1) > scores.unrelated, best, -1))
    return np.concatenate(found)


def _shared(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of neighbours that both have, row by row, without -1."""
    common = [len(np.intersect1d(a[a >= 0], b)) for a, b in zip(one, other, strict=True)]
    shares: NDArray[np.float64] = np.array(common)
    return shares / float(one.shape[1])
