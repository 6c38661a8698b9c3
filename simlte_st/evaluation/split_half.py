"""A measure without labels: can one half of a document find its other half among those of other documents?"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
from simlte_st.evaluation.pair_scores import CosineScores, PairScores
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, uniformity
from simlte_st.models.vectors import row_blocks, unit_rows

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
        uniformity: Mean of the uniformity of the A views and of the B views, as in the code of Wang & Isola (2020);
            None for a ranking without embeddings.
        ranks: Rank of the own B view for each document, from 1, shape ``[N]``, int64: for paired comparisons.
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
        """The numbers by name; the two that a ranking without embeddings lacks are left out where they are None."""
        names = ("top1", "top1_low", "top1_high", "mrr", "mrr_low", "mrr_high", "alignment", "uniformity", "documents")
        values = {name: getattr(self, name) for name in names}
        return {name: float(value) for name, value in values.items() if value is not None}


def split_half_retrieval(a: ArrayLike, b: ArrayLike, seed: int = 0) -> SplitHalfResult:
    """Retrieve row i of ``b`` with row i of ``a`` by cosine similarity.

    A tie counts as lost: the own B view ranks behind every other one that is as similar. A model that maps all texts
    to one point therefore scores 0 and 1 / N, not 1; so do documents of which the corpus holds copies.

    Args:
        a: Embeddings of the A views, shape ``[N, dim]``, N >= 2, any float dtype.
        b: Embeddings of the B views, same shape.
        seed: Seed of the bootstrap and of the sample :func:`uniformity` may take.

    Returns:
        The result, with alignment and uniformity.

    Raises:
        DataError: Shapes differ, N < 2, or a value is not finite.
    """
    # float64, so that the tolerance for ties can be far below any difference that float32 embeddings express.
    first, second = unit_rows(a), unit_rows(b)
    if first.shape != second.shape:
        raise DataError(f"The two views need arrays of one shape, got {first.shape} and {second.shape}.")
    found = split_half_of_scores(CosineScores(np.concatenate([first, second])), seed=seed)
    spread = (uniformity(first, seed=seed) + uniformity(second, seed=seed)) / 2.0
    return replace(found, alignment=alignment(first, second), uniformity=spread)


def check_documents(count: int) -> None:
    """Raise :class:`DataError` where there is no other document to confuse one with."""
    if count < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents that can be split; there are {count}.")


def split_half_of_scores(scores: PairScores, *, seed: int = 0) -> SplitHalfResult:
    """Compute :func:`split_half_retrieval` of scores of pairs of ``2 N`` texts: A views, then B views."""
    count = scores.size // 2
    check_documents(count)
    texts, ranks = np.arange(2 * count), np.empty(count, dtype=np.int64)
    for rows in row_blocks(count, count):
        block = scores.rows(texts[rows], texts[count:])
        own = block[np.arange(len(block)), texts[rows]]
        # Matrix products round the same dot product differently at different places: without the tolerance half of all
        # ties would be won. The own B view makes it start from 1.
        ranks[rows] = (block >= own[:, None] - scores.tolerance).sum(axis=1)
    return result_from_ranks(ranks, seed=seed)


def result_from_ranks(ranks: NDArray[np.int64], *, seed: int = 0) -> SplitHalfResult:
    """Summarise ranks ``[N]`` with 95 % bootstrap intervals over documents."""
    hits, reciprocal = (ranks == 1).astype(np.float64), 1.0 / ranks
    top1_low, top1_high = bootstrap_interval(hits, seed=seed)
    mrr_low, mrr_high = bootstrap_interval(reciprocal, seed=seed)
    return SplitHalfResult(
        top1=float(hits.mean()),
        top1_low=top1_low,
        top1_high=top1_high,
        mrr=float(reciprocal.mean()),
        mrr_low=mrr_low,
        mrr_high=mrr_high,
        documents=len(ranks),
        ranks=ranks,
    )


def split_half_views(
    documents: Any,
    *,
    view: View | None = None,
    segmenter: str | Segmenter = "punkt",
    budget: int | None = None,
    seed: int = 0,
) -> Halves:
    """Draw the two halves of each document, for split-half retrieval.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; documents none of which a compared model should
            have been trained on.
        view: How to split; the papers' DocSplit where not given.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        budget: Tokens a half may hold, estimated from words so that the texts are the same for every tokenizer.
        seed: Decides the split.

    Returns:
        ``(anchors, positives)``; documents that cannot be split are left out, and the log says how many.

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
    """Base of the evaluators that look at the two halves of each held-out document.

    The halves fit what the model reads (``max_seq_length``). Models that read the same are measured on the same halves;
    to compare others, use :func:`~simlte_st.evaluation.compare_halves`.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; documents that the model is not trained on.
        view: How to split; the papers' DocSplit where not given.
        segmenter: ``"punkt"``, ``"nupunkt"`` or a callable.
        **settings: Those of every evaluator: :class:`~simlte_st.evaluation.EvaluatorSettings`. ``seed`` decides the
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
        """Draw the halves, and encode the first and the second ones: ``[N, dim]`` each."""
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
    """Split-half retrieval on held-out documents, which needs no labels.

    It is what contrastive training trains, on new documents: it tells that training works, not that the embedding gets
    better; for that, see :class:`~simlte_st.evaluation.StructureEvaluator`.

    Returns ``mrr`` (primary) and ``top1``, each with the ends of its 95 % interval (``mrr_low``, ...), ``alignment``,
    ``uniformity`` and ``documents``. The full result of the latest call, ranks included, is in ``last_result``.

    Args:
        documents: For these, see :class:`HalvesEvaluator`.
        **settings: Likewise.

    Raises:
        DataError: Fewer than two documents can be split.

    Example:
        ::

            SplitHalfEvaluator("held_out.jsonl", name="held_out")(model)
    """

    def __init__(self, documents: Any, **settings: Any) -> None:
        super().__init__(documents, csv_prefix="split_half", primary_metric="mrr", **settings)
        self.last_result: SplitHalfResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Draw and encode the halves, and retrieve."""
        self.last_result = split_half_retrieval(*self.embed_halves(model), seed=self.seed)
        return self.last_result.metrics()
