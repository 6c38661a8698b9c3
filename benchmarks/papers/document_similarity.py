"""Document similarity: does a model find the same documents alike as people do?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from benchmarks.papers.link_pairs import check_pairs
from simlte_st.config import check_count
from simlte_st.errors import DataError
from simlte_st.evaluation.scores import PairScores
from simlte_st.files import read_json

LEE_DOCUMENTS, LEE_SIMILARITIES = "lee_documents.parquet", "lee_similarities_50x50.json"
"""Names of the files that :func:`load_lee` reads."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedPairs:
    """Documents, and what people said of pairs of them.

    Attributes:
        texts: The documents.
        pairs: Rows of ``texts``, shape ``[n, 2]``, int64.
        scores: Mean judged similarity of each pair, shape ``[n]``, float64; the higher, the more alike.
    """

    texts: list[str]
    pairs: NDArray[np.int64]
    scores: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SimilarityResult:
    """Correlation of a model's similarities with people's.

    Attributes:
        pearson: Pearson's r.
        pearson_low: Lower end of its 95 % bootstrap interval over documents.
        pearson_high: Upper end.
        spearman: Spearman's rho.
        spearman_low: Lower end of its 95 % bootstrap interval over documents.
        spearman_high: Upper end.
        pairs: Number of pairs.
    """

    pearson: float
    pearson_low: float
    pearson_high: float
    spearman: float
    spearman_low: float
    spearman_high: float
    pairs: int

    def metrics(self) -> dict[str, float]:
        """The numbers by name."""
        return {name: float(getattr(self, name)) for name in self.__slots__}


def load_lee(folder: str | os.PathLike[str]) -> JudgedPairs:
    """Read the Lee corpus: 50 short news texts and the judged similarity of each of their 1,225 pairs.

    Source: Lee, Pincombe & Welsh, "An empirical evaluation of models of text document similarity" (2005).
    """
    documents, similarities = Path(folder) / LEE_DOCUMENTS, Path(folder) / LEE_SIMILARITIES
    for path in (documents, similarities):
        if not path.is_file():
            raise DataError(f"{path} is not there: give the folder with {LEE_DOCUMENTS} and {LEE_SIMILARITIES}.")
    texts = pq.read_table(documents, columns=["text"]).column("text").to_pylist()
    matrix = np.array(read_json(similarities), dtype=np.float64)
    if matrix.shape != (len(texts), len(texts)):
        raise DataError(f"{similarities} has shape {matrix.shape}, but there are {len(texts)} documents.")
    first, second = np.triu_indices(len(texts), k=1)
    return JudgedPairs(texts, np.column_stack([first, second]).astype(np.int64), matrix[first, second])


def document_similarity(
    scores: PairScores, pairs: ArrayLike, judged: ArrayLike, *, resamples: int = 2000, seed: int = 0
) -> SimilarityResult:
    """Correlate a model's similarities with people's.

    Without intervals sentence-transformers' ``EmbeddingSimilarityEvaluator`` gives the same numbers, and works in the
    Trainer. The intervals are over documents, not over pairs: pairs share documents, and intervals that took them for
    independent would be too narrow. A resample draws documents with replacement and takes each pair as often as both
    of its documents were drawn.
    """
    check_count("resamples", resamples)
    data, people = check_pairs(pairs, scores.size), np.asarray(judged, dtype=np.float64)
    if people.shape != (len(data),) or not np.isfinite(people).all():
        raise DataError(f"{len(data)} pairs need as many finite judgements, got shape {people.shape}.")
    if np.ptp(people) == 0:
        raise DataError(f"All {len(people)} judgements are {people[0]}: nothing to correlate with.")
    model = (np.asarray(scores.pairs(data), dtype=np.float64) + scores.pairs(data[:, ::-1])) / 2.0
    if np.ptp(model) <= scores.tolerance:
        return SimilarityResult(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, len(data))
    generator = np.random.default_rng(seed)
    documents, rows = np.unique(data, return_inverse=True)
    first, second = rows.reshape(data.shape).T
    drawn = []
    for _ in range(resamples):
        times = np.bincount(generator.integers(0, len(documents), len(documents)), minlength=len(documents))
        chosen = np.repeat(np.arange(len(data)), times[first] * times[second])
        if len(chosen) and np.ptp(model[chosen]) > 0 and np.ptp(people[chosen]) > 0:
            drawn.append(_correlations(model[chosen], people[chosen]))
    if not drawn:
        raise DataError(f"{len(data)} pairs of {len(documents)} documents are too few for an interval.")
    (pearson_low, spearman_low), (pearson_high, spearman_high) = np.quantile(drawn, [0.025, 0.975], axis=0).tolist()
    pearson, spearman = _correlations(model, people)
    return SimilarityResult(pearson, pearson_low, pearson_high, spearman, spearman_low, spearman_high, pairs=len(data))


def _correlations(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Pearson's r and Spearman's rho, without the tests of significance that would take most of scipy's time."""
    return float(np.corrcoef(x, y)[0, 1]), float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
