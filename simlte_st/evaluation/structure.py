"""A measure without labels: does an embedding put both halves of a document in the same place among other documents?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from simlte_st.compat import view_budget
from simlte_st.data.languages import LanguageFinder
from simlte_st.errors import DataError
from simlte_st.evaluation.evaluator import EmbeddingEvaluator, EvaluatorSettings, reading_at_most
from simlte_st.evaluation.scores import PairScores, TfidfScores
from simlte_st.evaluation.split_half import check_documents, cosines_of_halves, draw_halves, splittable
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.models.vectors import row_blocks, unit_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from typing_extensions import Unpack

NEIGHBOURS = 10
"""Nearest documents that are compared; chosen in ``benchmarks/results/verdict.md``."""


@dataclass(frozen=True, slots=True)
class StructureResult:
    """How far the two halves of a document agree on its nearest documents.

    Attributes:
        agreement: Mean share of the nearest documents that both halves have in common.
        low: Lower end of its 95 % bootstrap interval over documents.
        high: Upper end.
        documents: Number of documents N.
        scores: The share of each document, shape ``[N]``, float64, for paired comparisons.
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

    def in_percent(self) -> str:
        """Return the agreement with its interval as a text."""
        return f"{100 * self.agreement:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def structure_agreement(
    first: ArrayLike, second: ArrayLike, *, neighbours: int = NEIGHBOURS, seed: int = 0
) -> StructureResult:
    """Compare the documents nearest to the first half of a document with those nearest to its second half.

    Each half is compared with the other halves of other documents, so that neither wording nor chance makes both agree.
    Unlike split-half retrieval this is not what contrastive training optimises: the two halves of a document are never
    compared.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Of the second halves, in the same order.
        neighbours: Number of nearest documents; at most a third of the others, where there are few.
        seed: Seed of the bootstrap.

    Raises:
        DataError: Fewer than three documents, shapes that differ, or a value that is not finite.
    """
    return agreement_of_scores(cosines_of_halves(first, second), neighbours=neighbours, seed=seed)


Neighbours: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The nearest documents of the first half of each document, and of its second half: ``[N, count]`` each."""


def neighbours_by_words(first: Sequence[str], second: Sequence[str], *, neighbours: int = NEIGHBOURS) -> Neighbours:
    """Return the documents nearest to each half by words alone, among the first or among the second halves.

    By the cosine of TF-IDF vectors of words that at least two halves have, without the stop words of their languages.
    Where fewer share a word with a half, its other neighbours are -1.
    """
    count, firsts, seconds = _sides(len(first), neighbours)
    try:
        scores = TfidfScores([*first, *second], stop_words=LanguageFinder(first).languages, min_df=2)
    except DataError:  # no word is in two halves
        nothing = np.full((len(firsts), count), -1)
        return nothing, nothing
    return _near(scores, firsts, count), _near(scores, seconds, count)


def words_agreement(first: ArrayLike, second: ArrayLike, words: Neighbours, *, seed: int = 0) -> StructureResult:
    """Compare the documents nearest to one half of a document with those nearest to its other half by words.

    Halves that share their neighbours for another reason than the topic, such as style or length, do not share these.
    """
    scores = cosines_of_halves(first, second)
    count = words[0].shape[1]
    _, firsts, seconds = _sides(scores.size // 2, count)
    shares = [
        _shared(_near(scores, firsts, count), words[1]),
        _shared(_near(scores, seconds, count), words[0]),
    ]
    return summarise(np.mean(shares, axis=0), seed)


def similarity_agreement(first: ArrayLike, second: ArrayLike, *, seed: int = 0) -> StructureResult:
    """Correlate the similarities of the first half of a document to others with those of its second half.

    Similarities are cosines among halves of the same side, after the mean of the side was subtracted: what all
    documents have in common would agree in any embedding. All documents, and not the nearest alone, show whether groups
    of them stay together.

    Args:
        first: Embeddings of the first halves, shape ``[N, dim]``, N >= 3, any float dtype.
        second: Of the second halves, in the same order.
        seed: Seed of the bootstrap.

    Returns:
        ``scores`` and ``agreement`` are Pearson correlations, -1 to 1.
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


def agreement_of_scores(scores: PairScores, *, neighbours: int = NEIGHBOURS, seed: int = 0) -> StructureResult:
    """Return :func:`structure_agreement` for scores of ``2 N`` texts: first halves, then second ones."""
    count, firsts, seconds = _sides(scores.size // 2, neighbours)
    agreement = np.empty(len(firsts))
    for rows in row_blocks(len(firsts), len(firsts)):
        near = [
            _nearest(scores.rows(queries[rows], others), rows.start, count, scores.unrelated)
            for queries, others in ((firsts, seconds), (seconds, firsts))
        ]
        agreement[rows] = _shared(*near)
    return summarise(agreement, seed)


def summarise(scores: NDArray[np.float64], seed: int = 0) -> StructureResult:
    """Return the mean agreement of documents ``[N]`` with its interval."""
    low, high = bootstrap_interval(scores, seed=seed)
    return StructureResult(float(scores.mean()), low, high, len(scores), scores)


def _sides(size: int, neighbours: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of neighbours that are compared, and the rows of first and of second halves."""
    check_documents(size)
    if size < 3:
        raise DataError("Two documents are each other's nearest: neighbours say something from 3 documents on.")
    return max(1, min(neighbours, (size - 1) // 3)), np.arange(size), np.arange(size, 2 * size)


def _near(scores: PairScores, side: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Return the nearest documents of each text among those of its own side."""
    blocks = row_blocks(len(side), len(side))
    found = [_nearest(scores.rows(side[rows], side), rows.start, count, scores.unrelated) for rows in blocks]
    return np.concatenate(found)


def _shared(one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of neighbours that two rows have in common; -1 is none."""
    common = [len(np.intersect1d(a[a >= 0], b)) for a, b in zip(one, other, strict=True)]
    shares: NDArray[np.float64] = np.array(common)
    return shares / float(one.shape[1])


def _nearest(scores: NDArray[Any], start: int, count: int, unrelated: float) -> NDArray[np.int64]:
    """Return the best columns of each row, without the row's own document; the first row is document ``start``.

    Columns whose score says that they have nothing in common are -1.
    """
    others = np.array(scores, dtype=np.float64)
    rows = np.arange(len(others))
    others[rows, start + rows] = -np.inf
    best = np.argsort(-others, axis=1, kind="stable")[:, :count]
    return np.where(np.take_along_axis(others, best, axis=1) > unrelated, best, -1)


class StructureEvaluator(EmbeddingEvaluator):
    """The agreement of :func:`structure_agreement` on held-out documents, without labels.

    Returns ``agreement`` (primary), ``low`` and ``high``, the ends of its 95 % interval, and ``documents``. In the
    Trainer it chooses checkpoints (``metric_for_best_model="eval_NAME_agreement"``) and stops early. The full result of
    the latest call is in ``last_result``.

    The halves fit what the model reads (``max_seq_length``); to compare models that read different numbers of tokens,
    use :func:`~simlte_st.evaluation.compare_halves`.

    Args:
        documents: What :func:`~simlte_st.data.read_documents` takes; the model should not have been trained on them.
        neighbours: Nearest documents that are compared.
        **settings: Those of every evaluator, see :class:`~simlte_st.evaluation.EvaluatorSettings`. ``seed`` decides the
            split, too.

    Raises:
        DataError: Fewer than two documents can be split.

    Example:
        ::

            StructureEvaluator("held_out.jsonl", name="held_out")(model)
    """

    def __init__(
        self,
        documents: Any,
        *,
        neighbours: int = NEIGHBOURS,
        **settings: Unpack[EvaluatorSettings],
    ) -> None:
        super().__init__(csv_prefix="structure", primary_metric="agreement", **settings)
        self.documents = splittable(documents, "punkt")
        self.neighbours = neighbours
        self.last_result: StructureResult | None = None

    def measure(self, model: SentenceTransformer) -> dict[str, float]:
        """Compare the neighbours of the halves of the documents."""
        prompt = model.prompts.get(self.prompt_name or "") if self.prompt is None else self.prompt
        with reading_at_most(model, self.max_seq_length):
            budget = view_budget(model, prompt)
        anchors, positives = draw_halves(self.documents, budget, self.seed)
        halves = np.split(self.embed_inputs(model, anchors + positives), 2)
        self.last_result = structure_agreement(*halves, neighbours=self.neighbours, seed=self.seed)
        return self.last_result.metrics()

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"documents": len(self.documents), "neighbours": self.neighbours, **super().get_config_dict()}
