"""A measure without labels: can one half of a document find its other half among those of other documents?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.errors import ConfigurationError, DataError
from simlte_st.evaluation.reporting import ReportingEvaluator
from simlte_st.evaluation.statistics import alignment, bootstrap_interval, uniformity, unit_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


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


def split_half_retrieval(a: ArrayLike, b: ArrayLike, seed: int = 0, chunk: int = 1024) -> SplitHalfResult:
    """Retrieve row i of ``b`` with row i of ``a`` by cosine similarity.

    A tie counts as lost: the own B view ranks behind every other one that is as similar. A model that maps all texts
    to one point therefore scores 0 and 1 / N, not 1; so do documents of which the corpus holds copies.

    Args:
        a: Embeddings of the A views, shape ``[N, dim]``, N >= 2, any float dtype.
        b: Embeddings of the B views, same shape.
        seed: Seed of the bootstrap and of the sample :func:`uniformity` may take.
        chunk: Rows of ``a`` compared at once; ``chunk * N`` float64 values are held.

    Returns:
        The result, with alignment and uniformity.

    Raises:
        DataError: Shapes differ, N < 2, or a value is not finite.
        ConfigurationError: ``chunk`` is below 1.
    """
    # float64, so that the tolerance for ties can be far below any difference that float32 embeddings express.
    first, second = unit_rows(a), unit_rows(b)
    if first.shape != second.shape:
        raise DataError(f"The two views need arrays of one shape, got {first.shape} and {second.shape}.")
    check_documents(len(first))
    ranks = diagonal_ranks(lambda rows: first[rows] @ second.T, len(first), chunk=chunk, tolerance=1e-9)
    spread = (uniformity(first, seed=seed) + uniformity(second, seed=seed)) / 2.0
    return result_from_ranks(ranks, seed=seed, alignment=alignment(first, second), uniformity=spread)


def check_documents(count: int) -> None:
    """Raise :class:`DataError` where there is no other document to confuse one with."""
    if count < 2:
        raise DataError(f"Split-half retrieval needs at least 2 documents, got {count}.")


def diagonal_ranks(
    scores: Callable[[slice], NDArray[Any]], count: int, *, chunk: int, tolerance: float
) -> NDArray[np.int64]:
    """Rank of candidate i for query i, a tie counting as lost.

    Args:
        scores: Gives for a slice of queries their scores against all candidates, shape ``[rows, count]``.
        count: Number of queries and of candidates.
        chunk: Queries scored at once.
        tolerance: A candidate ties where its score falls behind by no more than this. Matrix products round the same
            dot product differently at different places, which would turn half of all ties into wins.

    Returns:
        Ranks from 1, shape ``[count]``, int64.

    Raises:
        ConfigurationError: ``chunk`` is below 1.
    """
    if chunk < 1:
        raise ConfigurationError(f"chunk must be at least 1, got {chunk}.")
    ranks = np.empty(count, dtype=np.int64)
    for start in range(0, count, chunk):
        rows = slice(start, min(start + chunk, count))
        block = scores(rows)
        own = block[np.arange(len(block)), np.arange(rows.start, rows.stop)]
        ranks[rows] = (block >= own[:, None] - tolerance).sum(axis=1)  # the own candidate makes it start from 1
    return ranks


def result_from_ranks(
    ranks: NDArray[np.int64], *, seed: int = 0, alignment: float | None = None, uniformity: float | None = None
) -> SplitHalfResult:
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
        alignment=alignment,
        uniformity=uniformity,
        ranks=ranks,
    )


class SplitHalfEvaluator(ReportingEvaluator):
    """Split-half retrieval on held-out documents, which needs no labels.

    Returns ``mrr`` (primary) and ``top1``, each with the ends of its 95 % interval (``mrr_low``, ...), ``alignment``,
    ``uniformity`` and ``documents``. The full result of the latest call, ranks included, is in ``last_result``.

    Args:
        anchors: View A of each document.
        positives: View B of each document, in the same order.
        batch_size: Texts encoded at once.
        name: Prefix of the metrics.
        max_seq_length: Tokens read of each text, or as many as the model can read where that is less; the model's own
            setting is put back afterwards. None keeps the model's own setting.
        seed: Seed of the bootstrap and of the sample that uniformity may take.
        show_progress_bar: Whether encoding shows a progress bar.
        write_csv: Whether results are appended to a CSV file.
        truncate_dim: Leading dimensions of the embedding to use; None for the model's own setting.

    Raises:
        DataError: The two lists differ in length, or hold fewer than two documents.
    """

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[str],
        *,
        batch_size: int = 32,
        name: str = "",
        max_seq_length: int | None = None,
        seed: int = 0,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        super().__init__(
            name=name,
            csv_prefix="split_half",
            primary_metric="mrr",
            write_csv=write_csv,
            encode_batch_size=batch_size,
            max_seq_length=max_seq_length,
            show_progress_bar=show_progress_bar,
            truncate_dim=truncate_dim,
        )
        if len(anchors) != len(positives):
            raise DataError(f"There are {len(anchors)} anchors but {len(positives)} positives.")
        check_documents(len(anchors))
        self.anchors = list(anchors)
        self.positives = list(positives)
        self.seed = seed
        self.last_result: SplitHalfResult | None = None

    def __call__(  # type: ignore[override]  # a SentenceTransformer, as in every evaluator of sentence-transformers
        self, model: SentenceTransformer, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode both views and retrieve. Arguments and result as in :class:`BaseEvaluator`."""
        embeddings = self.embed(model, self.anchors + self.positives)
        count = len(self.anchors)
        self.last_result = split_half_retrieval(embeddings[:count], embeddings[count:], seed=self.seed)
        return self.report(model, self.last_result.metrics(), output_path, epoch, steps)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"documents": len(self.anchors), **super().get_config_dict(), "seed": self.seed}
