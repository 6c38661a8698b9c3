"""Measure without labels whether both halves of a document have the same place among other documents."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError
from simlte_st.evaluation.scores import CosineScores, PairScores, TfidfScores, bootstrap_interval
from simlte_st.models.vectors import Ints, row_blocks, unit_rows
from simlte_st.reading.document import DocumentSource, SegmentedDocument
from simlte_st.reading.documents import list_documents
from simlte_st.views.views import DocSplit, ViewPair, draw_views
from simlte_st.words.languages import LanguageFinder
from simlte_st.words.sentences import Segmenter, make_segmenter, segment_documents

logger = logging.getLogger(__name__)

Neighbours: TypeAlias = tuple[Ints, Ints]
"""Nearest documents of the first halves and of the second halves, each of shape ``[N, count]``."""

EVALUATION_EPOCH = -1
"""Epoch that seeds the evaluation views; no training run uses it."""

NEIGHBOURS = 10
"""Number of nearest documents to compare; chosen in ``benchmarks/results/verdict.md``."""

_VIEW = DocSplit()


def split_half_views(
    documents: DocumentSource, *, segmenter: str | Segmenter = "punkt", budget: int | None = None, seed: int = 0
) -> tuple[list[str], list[str]]:
    """Split each document's sentences at random into two halves (DocSplit).

    Args:
        documents: Documents that the models were not trained on: anything that ``read_documents`` takes or returns.
        segmenter: Sentence splitter: ``"punkt"`` or a callable.
        budget: Maximum length of a half in tokens, estimated from words to get the same texts for any tokenizer.
        seed: Random seed of the splits.

    Returns:
        The first halves and the second halves. Documents that cannot be split are skipped with a warning.

    Raises:
        DataError: Fewer than two documents can be split.
    """
    pairs = draw_halves(load_splittable(documents, segmenter), budget, seed)
    return [pair.anchor for pair in pairs], [pair.positive for pair in pairs]


def load_splittable(source: DocumentSource, segmenter: str | Segmenter) -> list[SegmentedDocument]:
    """Read and segment documents, and return those that can be split into halves."""
    documents = list_documents(source)
    segmenter = make_segmenter(segmenter, lambda: (document.text for document in documents))
    usable = [document for document in segment_documents(documents, segmenter) if _VIEW.accepts(document)]
    if len(usable) < len(documents):
        logger.warning("%d of %d documents are too short to split.", len(documents) - len(usable), len(documents))
    check_count(len(usable))
    return usable


def draw_halves(documents: Iterable[SegmentedDocument], budget: int | None, seed: int) -> list[ViewPair]:
    """Split documents into halves of at most ``budget`` tokens, skipping those that cannot be split."""
    pairs = (draw_views(document, _VIEW, seed=seed, epoch=EVALUATION_EPOCH, budget=budget) for document in documents)
    return [pair for pair in pairs if pair is not None]


def check_count(count: int) -> None:
    """Check that there are enough documents for split-half retrieval."""
    if count < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents that can be split, got {count}.")


@dataclass(frozen=True, slots=True)
class SplitHalfResult:
    """Result of split-half retrieval, where the first half of each document is the query for its second half.

    Attributes:
        top1: Fraction of documents whose second half ranks first.
        top1_low: Lower end of the 95% bootstrap interval of ``top1`` over documents.
        top1_high: Upper end of that interval.
        mrr: Mean reciprocal rank of the second half.
        mrr_low: Lower end of the 95% bootstrap interval of ``mrr`` over documents.
        mrr_high: Upper end of that interval.
        documents: Number of documents N.
        ranks: Rank of each document's second half, starting at 1 (shape ``[N]``, int64), for paired comparisons.
    """

    top1: float
    top1_low: float
    top1_high: float
    mrr: float
    mrr_low: float
    mrr_high: float
    documents: int
    ranks: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """Return the scores by metric name."""
        return {number.name: float(getattr(self, number.name)) for number in fields(self) if number.compare}


def split_half_retrieval(a: ArrayLike, b: ArrayLike, seed: int = 0) -> SplitHalfResult:
    """Retrieve row i of ``b`` by its cosine similarity to row i of ``a``, for every i.

    Ties count as misses: the second half ranks behind all equally similar texts. A model that maps all texts to the
    same vector therefore scores a top-1 of 0 and an MRR of 1 / N, and so does any model on a corpus of duplicates.

    Args:
        a: Embeddings of the first halves, shape ``[N, dim]``, N >= 2, any float dtype.
        b: Embeddings of the second halves, same shape.
        seed: Random seed of the bootstrap.

    Raises:
        DataError: The shapes differ, N is less than 2, or a value is not finite.

    Example:
        ::

            first, second = split_half_views("held_out.jsonl")
            print(split_half_retrieval(model.encode(first), model.encode(second)).top1)
    """
    return result_from_ranks(ranks_of_halves(cosines_of_halves(a, b)), seed)


def cosines_of_halves(first: ArrayLike, second: ArrayLike) -> CosineScores:
    """Return cosine scores for the first halves followed by the second halves."""
    halves = np.asarray(first), np.asarray(second)
    if halves[0].shape != halves[1].shape:
        raise DataError(f"Both halves must have the same shape, got {halves[0].shape} and {halves[1].shape}.")
    return CosineScores(np.concatenate(halves))


def ranks_of_halves(scores: PairScores) -> Ints:
    """Return the rank of each document's second half, from scores of first halves followed by second halves."""
    count = scores.size // 2
    check_count(count)
    texts, ranks = np.arange(2 * count), np.empty(count, dtype=np.int64)
    for rows in row_blocks(count, count):
        block = scores.rows(texts[rows], texts[count:])
        # Matrix products round equal dot products differently depending on their position, so without the tolerance
        # about half of the ties would count as hits. The sum includes the second half itself, so ranks start at 1.
        ranks[rows] = (block >= block.diagonal(rows.start)[:, None] - scores.tolerance).sum(axis=1)
    return ranks


def result_from_ranks(ranks: Ints, seed: int = 0) -> SplitHalfResult:
    """Compute top-1 and MRR from ranks ``[N]``, with 95% bootstrap intervals over documents."""
    hits, reciprocal = (ranks == 1).astype(np.float64), 1.0 / ranks
    top1, mrr = bootstrap_interval(hits, seed=seed), bootstrap_interval(reciprocal, seed=seed)
    return SplitHalfResult(float(hits.mean()), *top1, float(reciprocal.mean()), *mrr, documents=len(ranks), ranks=ranks)


@dataclass(frozen=True, slots=True)
class StructureResult:
    """Agreement between the two halves of each document on their nearest documents.

    Attributes:
        agreement: Mean fraction of nearest documents that both halves have in common.
        low: Lower end of the 95% bootstrap interval of ``agreement`` over documents.
        high: Upper end of that interval.
        documents: Number of documents N.
        scores: Agreement for each document (shape ``[N]``, float64), for paired comparisons.
    """

    agreement: float
    low: float
    high: float
    documents: int
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """Return the scores by metric name."""
        return {number.name: float(getattr(self, number.name)) for number in fields(self) if number.compare}


def structure_agreement(
    first: ArrayLike, second: ArrayLike, *, neighbours: int = NEIGHBOURS, seed: int = 0
) -> StructureResult:
    """Measure how many nearest documents the two halves of each document have in common.

    First halves search among the second halves of other documents, and vice versa, so that shared wording cannot cause
    agreement. Unlike split-half retrieval, this measure is not optimised by contrastive training, because the two
    halves of a document are never compared with each other.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Embeddings of the second halves, in the same order and of the same shape.
        neighbours: Number of nearest documents to compare, limited to a third of the other documents.
        seed: Random seed of the bootstrap.

    Raises:
        DataError: There are fewer than three documents, the shapes differ, or a value is not finite.

    Example:
        ::

            first, second = split_half_views("held_out.jsonl")
            print(structure_agreement(model.encode(first), model.encode(second)).agreement)
    """
    return agreement_of_scores(cosines_of_halves(first, second), neighbours=neighbours, seed=seed)


def agreement_of_scores(scores: PairScores, *, neighbours: int = NEIGHBOURS, seed: int = 0) -> StructureResult:
    """Return the :func:`structure_agreement` for scores of ``2 N`` texts: first halves, then second halves."""
    count, firsts, seconds = _half_rows(scores.size // 2, neighbours)
    return summarise(_overlap(_nearest(scores, firsts, seconds, count), _nearest(scores, seconds, firsts, count)), seed)


def neighbours_by_words(first: Sequence[str], second: Sequence[str], *, neighbours: int = NEIGHBOURS) -> Neighbours:
    """Return the nearest documents of each half by words, searching only among halves of the same side.

    Similarity is the cosine of TF-IDF vectors over the words that occur in at least two halves, without stop words. If
    a half shares words with too few documents, the missing neighbours are -1.
    """
    count, firsts, seconds = _half_rows(len(first), neighbours)
    try:
        scores = TfidfScores([*first, *second], stop_words=LanguageFinder(first).languages, min_df=2)
    except DataError:  # no word occurs in two halves
        return np.full((len(firsts), count), -1), np.full((len(firsts), count), -1)
    return _nearest(scores, firsts, firsts, count), _nearest(scores, seconds, seconds, count)


def words_agreement(first: ArrayLike, second: ArrayLike, words: Neighbours, *, seed: int = 0) -> StructureResult:
    """Measure how far the nearest documents of one half by embedding match those of the other half by words.

    A model whose neighbours reflect style or length rather than topic scores low here.
    """
    scores, count = cosines_of_halves(first, second), words[0].shape[1]
    _, *sides = _half_rows(scores.size // 2, count)
    shares = [
        _overlap(_nearest(scores, rows, rows, count), by_words)
        for rows, by_words in zip(sides, words[::-1], strict=True)
    ]
    return summarise(np.mean(shares, axis=0), seed)


def similarity_agreement(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> StructureResult:
    """Correlate the similarities of a document's first half to other documents with those of its second half.

    First halves are compared with first halves and second halves with second halves, by cosine. The mean vector of each
    side is subtracted first, because a shared mean would make all similarities agree. All documents count, not only the
    nearest ones, so the correlation also shows whether groups of documents stay together.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Embeddings of the second halves, in the same order and of the same shape.
        seed: Random seed of the bootstrap.

    Returns:
        The result; its ``scores`` and ``agreement`` are Pearson correlations, from -1 to 1.
    """
    size = cosines_of_halves(first, second).size // 2  # checks both arrays
    _half_rows(size, 1)
    sides = [np.asarray(half, dtype=np.float64) for half in (first, second)]
    sides = [unit_rows(side - side.mean(axis=0)) for side in sides]
    columns, agreement = np.arange(size), np.empty(size)
    for rows in row_blocks(size, size):
        is_other = columns[rows, None] != columns
        tables = [(side[rows] @ side.T)[is_other].reshape(len(is_other), -1) for side in sides]
        tables = [table - table.mean(axis=1, keepdims=True) for table in tables]
        norms = np.prod([np.linalg.norm(table, axis=1) for table in tables], axis=0)
        agreement[rows] = (tables[0] * tables[1]).sum(axis=1) / np.maximum(norms, 1e-12)
    return summarise(agreement, seed)


def summarise(scores: NDArray[np.float64], seed: int = 0) -> StructureResult:
    """Return the mean of scores ``[N]`` and its 95% interval."""
    return StructureResult(float(scores.mean()), *bootstrap_interval(scores, seed=seed), len(scores), scores)


def _half_rows(size: int, neighbours: int) -> tuple[int, Ints, Ints]:
    """Return the number of neighbours to compare, the rows of first halves and the rows of second halves."""
    check_count(size)
    if size < 3:
        raise DataError("Comparing neighbours needs at least 3 documents.")
    return max(1, min(neighbours, (size - 1) // 3)), np.arange(size), np.arange(size, 2 * size)


def _nearest(scores: PairScores, queries: Ints, candidates: Ints, count: int) -> Ints:
    """Return the nearest other documents of each half, filled up with -1 if it has something in common with too few."""
    blocks = []
    for rows in row_blocks(len(queries), len(queries)):
        block = np.array(scores.rows(queries[rows], candidates), dtype=np.float64)
        np.fill_diagonal(block[:, rows.start :], -np.inf)  # the document itself
        nearest = np.argsort(-block, axis=1, kind="stable")[:, :count]
        blocks.append(np.where(np.take_along_axis(block, nearest, axis=1) > scores.unrelated, nearest, -1))
    return np.concatenate(blocks)


def _overlap(first: Ints, second: Ints) -> NDArray[np.float64]:
    """Return the fraction of neighbours that both sides have in common, per document, ignoring -1."""
    counts = [len(np.intersect1d(a[a >= 0], b)) for a, b in zip(first, second, strict=True)]
    return np.array(counts) / float(first.shape[1])
