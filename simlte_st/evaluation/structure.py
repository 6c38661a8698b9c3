"""A measure without labels: does an embedding put both halves of a document in the same place among other documents?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import DataError
from simlte_st.evaluation.pair_scores import CosineScores, PairScores
from simlte_st.evaluation.split_half import HalvesEvaluator, check_documents
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.vectors import row_blocks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

NEIGHBOURS = 10
"""Nearest documents that are compared (``benchmarks/results/verdict.md``)."""


@dataclass(frozen=True, slots=True)
class StructureResult:
    """How far the two halves of a document agree on its nearest documents.

    Attributes:
        agreement: Mean share of the nearest documents that both halves have in common.
        low: Lower end of its 95 % bootstrap interval over documents.
        high: Upper end.
        documents: Number of documents N.
        scores: The share of each document ``[N]``, float64: for paired comparisons.
    """

    agreement: float
    low: float
    high: float
    documents: int
    scores: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False, compare=False)

    def metrics(self) -> dict[str, float]:
        """The numbers by name."""
        names = ("agreement", "low", "high", "documents")
        return {name: float(getattr(self, name)) for name in names}


def structure_agreement(
    first: ArrayLike, second: ArrayLike, *, neighbours: int = NEIGHBOURS, seed: int = 0
) -> StructureResult:
    """Compare the documents nearest to the first half of a document with those nearest to its second half.

    Each half looks among the halves of other documents on the other side. What both agree on, neither wording nor
    chance decides. Unlike split-half retrieval this is not what contrastive training trains: the two halves of a
    document never meet.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Of the second halves, in the same order.
        neighbours: How many; where there are few documents, no more than a third of the others.
        seed: Seed of the bootstrap.

    Raises:
        DataError: Fewer than three documents, shapes that differ, or a value that is not finite.
    """
    sides = [np.asarray(side) for side in (first, second)]
    if sides[0].shape != sides[1].shape:
        raise DataError(f"First and second halves need arrays of one shape, got {sides[0].shape} and {sides[1].shape}.")
    return agreement_of_scores(CosineScores(np.concatenate(sides)), neighbours=neighbours, seed=seed)


def agreement_of_scores(scores: PairScores, *, neighbours: int = NEIGHBOURS, seed: int = 0) -> StructureResult:
    """Compute :func:`structure_agreement` of scores of pairs of ``2 N`` texts: first halves, then second ones."""
    size = scores.size // 2
    check_documents(size)
    if size < 3:
        raise DataError("Two documents are each other's nearest: neighbours say something from 3 documents on.")
    count = max(1, min(neighbours, (size - 1) // 3))
    firsts, seconds = np.arange(size), np.arange(size, 2 * size)
    agreement = np.empty(size)
    for rows in row_blocks(size, size):
        near = [
            _nearest(scores.rows(queries[rows], others), rows.start, count)
            for queries, others in ((firsts, seconds), (seconds, firsts))
        ]
        agreement[rows] = [len(np.intersect1d(a, b)) / count for a, b in zip(*near, strict=True)]
    return summarise(agreement, seed)


def summarise(scores: NDArray[np.float64], seed: int = 0) -> StructureResult:
    """Average the agreement of documents ``[N]``, with the interval of the mean."""
    low, high = bootstrap_interval(scores, seed=seed)
    return StructureResult(float(scores.mean()), low, high, len(scores), scores)


def _nearest(scores: NDArray[Any], start: int, count: int) -> NDArray[np.int64]:
    """Find the highest scores of each row, without the row's own document; the first row is document ``start``."""
    others = np.array(scores, dtype=np.float64)
    rows = np.arange(len(others))
    others[rows, start + rows] = -np.inf
    return np.argsort(-others, axis=1, kind="stable")[:, :count]


class StructureEvaluator(HalvesEvaluator):
    """The agreement of :func:`structure_agreement` on held-out documents, which needs no labels.

    Returns ``agreement`` (primary), ``low`` and ``high``, the ends of its 95 % interval, and ``documents``. In the
    Trainer it chooses checkpoints (``metric_for_best_model="eval_NAME_agreement"``) and stops early. The full result of
    the latest call is in ``last_result``.

    Args:
        documents: For these, see :class:`~simlte_st.evaluation.HalvesEvaluator`.
        neighbours: Nearest documents that are compared.
        **settings: As ``documents``.

    Raises:
        DataError: Fewer than two documents can be split.

    Example:
        ::

            StructureEvaluator("held_out.jsonl", name="held_out")(model)
    """

    def __init__(self, documents: Any, *, neighbours: int = NEIGHBOURS, **settings: Any) -> None:
        super().__init__(documents, csv_prefix="structure", primary_metric="agreement", **settings)
        self.neighbours = neighbours
        self.last_result: StructureResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Draw and encode the halves, and compare their neighbours."""
        halves = self.embed_halves(model)
        self.last_result = structure_agreement(*halves, neighbours=self.neighbours, seed=self.seed)
        return self.last_result.metrics()

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"neighbours": self.neighbours, **super().get_config_dict()}
