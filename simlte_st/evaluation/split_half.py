"""A measure without labels: can one half of a document find its other half among those of other documents?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.compat import view_budget
from simlte_st.data.document import SegmentedDocument
from simlte_st.data.documents import list_documents
from simlte_st.data.drawing import View, draw_views
from simlte_st.data.segmenters import Segmenter, make_segmenter
from simlte_st.data.sentences import segment_documents
from simlte_st.data.views import DocSplit
from simlte_st.errors import DataError
from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings, reading_at_most
from simlte_st.evaluation.scores import CosineScores, PairScores
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, uniformity
from simlte_st.models.vectors import row_blocks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)

Halves = tuple[list[str], list[str]]
"""The first and the second half of each document."""

EVALUATION_EPOCH = -1
"""Epoch of evaluation views: one that no training run has."""


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
    view: View | None = None,
    segmenter: str | Segmenter = "punkt",
    budget: int | None = None,
    seed: int = 0,
) -> Halves:
    """Draw the two halves of each document.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; no model to be measured should have been trained
            on them.
        view: How to split; DocSplit by default.
        segmenter: ``"punkt"`` or a callable.
        budget: Most tokens of a half, estimated from words so that the texts are the same for every tokenizer.
        seed: Decides the split.

    Returns:
        First and second halves. Documents that cannot be split are skipped, with a warning.

    Raises:
        DataError: Fewer than two documents can be split.
    """
    chosen = DocSplit() if view is None else view
    return _halves(_splittable(documents, chosen, segmenter), chosen, budget, seed)


def _splittable(documents: Any, view: View, segmenter: str | Segmenter) -> list[SegmentedDocument]:
    read = list_documents(documents)
    cut = make_segmenter(segmenter, lambda: (document.text for document in read))
    usable = [document for document in segment_documents(read, cut) if view.accepts(document)]
    if len(usable) < len(read):
        logger.warning("%d of %d documents are too short to be split.", len(read) - len(usable), len(read))
    check_documents(len(usable))
    return usable


def _halves(documents: Sequence[SegmentedDocument], view: View, budget: int | None, seed: int) -> Halves:
    drawn = (draw_views(document, view, seed=seed, epoch=EVALUATION_EPOCH, budget=budget) for document in documents)
    pairs = [pair for pair in drawn if pair is not None]
    return [pair.anchor for pair in pairs], [pair.positive for pair in pairs]


class HalvesEvaluator(EmbeddingEvaluator):
    """Base of the evaluators that measure on the two halves of each held-out document.

    The halves fit what the model reads (``max_seq_length``); to compare models that read different numbers of tokens,
    use :func:`~simlte_st.evaluation.compare_halves`.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; the model should not have been trained on them.
        view: How to split; DocSplit by default.
        segmenter: ``"punkt"`` or a callable.
        **settings: Those of every evaluator, see :class:`~simlte_st.evaluation.EvaluatorSettings`. ``seed`` decides the
            split, too.

    Raises:
        DataError: Fewer than two documents can be split.
    """

    def __init__(
        self,
        documents: Any,
        *,
        csv_prefix: str,
        primary_metric: str,
        view: View | None = None,
        segmenter: str | Segmenter = "punkt",
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        super().__init__(csv_prefix=csv_prefix, primary_metric=primary_metric, **settings)
        self.view: View = DocSplit() if view is None else view
        self.documents = _splittable(documents, self.view, segmenter)

    def embed_halves(self, model: SentenceTransformer) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the embeddings of first and second halves, ``[N, dim]`` each."""
        prompt = model.prompts.get(self.prompt_name or "") if self.prompt is None else self.prompt
        with reading_at_most(model, self.max_seq_length):
            budget = view_budget(model, prompt)
        anchors, positives = _halves(self.documents, self.view, budget, self.seed)
        embeddings = self.embed_inputs(model, anchors + positives)
        return embeddings[: len(anchors)], embeddings[len(anchors) :]

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"documents": len(self.documents), "view": repr(self.view), **super().get_config_dict()}


class SplitHalfEvaluator(HalvesEvaluator):
    """Split-half retrieval on held-out documents, without labels.

    Contrastive training optimises just this, so it shows that training works, not that the embeddings get better; for
    that, see :class:`~simlte_st.evaluation.StructureEvaluator`.

    Returns ``mrr`` (primary) and ``top1``, each with the ends of its 95 % interval (``mrr_low``, ...), ``alignment``,
    ``uniformity`` and ``documents``. The full result of the latest call is in ``last_result``. For the arguments, see
    :class:`HalvesEvaluator`.

    Example:
        ::

            SplitHalfEvaluator("held_out.jsonl", name="held_out")(model)
    """

    def __init__(self, documents: Any, **settings: Any) -> None:
        super().__init__(documents, csv_prefix="split_half", primary_metric="mrr", **settings)
        self.last_result: SplitHalfResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Retrieve the halves of the documents."""
        self.last_result = split_half_retrieval(*self.embed_halves(model), seed=self.seed)
        return self.last_result.metrics()
