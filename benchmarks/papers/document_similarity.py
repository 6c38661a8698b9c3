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
from simlte_st.evaluation.scores import PairScores
from simlte_st.files import read_json

LEE_DOCUMENTS, LEE_SIMILARITIES = "lee_documents.parquet", "lee_similarities_50x50.json"


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


def load_lee(folder: str | os.PathLike[str]) -> JudgedPairs:
    """Read the Lee corpus: 50 short news texts and the judged similarity of each of their 1,225 pairs.

    Source: Lee, Pincombe & Welsh, "An empirical evaluation of models of text document similarity" (2005).
    """
    texts = pq.read_table(Path(folder) / LEE_DOCUMENTS, columns=["text"]).column("text").to_pylist()
    matrix = np.array(read_json(Path(folder) / LEE_SIMILARITIES), dtype=np.float64)
    first, second = np.triu_indices(len(texts), k=1)
    return JudgedPairs(texts, np.column_stack([first, second]).astype(np.int64), matrix[first, second])


def document_similarity(
    scores: PairScores, pairs: ArrayLike, judged: ArrayLike, *, resamples: int = 2000, seed: int = 0
) -> dict[str, float]:
    """Correlate a model's similarities with people's: Pearson's r and Spearman's rho with their 95 % intervals.

    Without intervals sentence-transformers' ``EmbeddingSimilarityEvaluator`` gives the same numbers, and works in the
    Trainer. The intervals are over documents, not over pairs: pairs share documents, and intervals that took them for
    independent would be too narrow. A resample draws documents with replacement and takes each pair as often as both
    of its documents were drawn.
    """
    data, people = check_pairs(pairs, scores.size), np.asarray(judged, dtype=np.float64)
    model = (np.asarray(scores.pairs(data), dtype=np.float64) + scores.pairs(data[:, ::-1])) / 2.0
    names = ("pearson", "spearman")
    if np.ptp(model) <= scores.tolerance:  # a model that maps all documents to one point
        return {f"{name}{end}": 0.0 for name in names for end in ("", "_low", "_high")} | {"pairs": float(len(data))}
    generator = np.random.default_rng(seed)
    documents, rows = np.unique(data, return_inverse=True)
    first, second = rows.reshape(data.shape).T
    drawn = []
    for _ in range(resamples):
        times = np.bincount(generator.integers(0, len(documents), len(documents)), minlength=len(documents))
        chosen = np.repeat(np.arange(len(data)), times[first] * times[second])
        if len(chosen) and np.ptp(model[chosen]) > 0 and np.ptp(people[chosen]) > 0:
            drawn.append(_correlations(model[chosen], people[chosen]))
    ends = np.quantile(drawn, [0.025, 0.975], axis=0)
    found: dict[str, float] = {}
    for name, value, low, high in zip(names, _correlations(model, people), *ends.tolist(), strict=True):
        found |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return found | {"pairs": float(len(data))}


def _correlations(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Pearson's r and Spearman's rho, without the tests of significance that would take most of scipy's time."""
    return float(np.corrcoef(x, y)[0, 1]), float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])
