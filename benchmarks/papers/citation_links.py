"""Citation link classification: does one paper cite the other, judged by their two embeddings?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator

from benchmarks.papers.link_pairs import LinkPairs, check_pairs
from benchmarks.papers.mlp import fit_mlp
from simlte_st.evaluation.probe import Fit, fit_probe
from simlte_st.evaluation.scores import PairScores
from simlte_st.evaluation.statistics import bootstrap_interval
from simlte_st.models.vectors import check_embeddings

LRA_HIDDEN = (512, 256)
"""Widths of the head's hidden layers in the Long Range Arena's document retrieval task."""

LRA_HEAD: Fit = partial(fit_mlp, hidden=LRA_HIDDEN)


@dataclass(frozen=True, slots=True)
class LinkResult:
    """Share of test pairs that were rightly classified as linked or not.

    Attributes:
        accuracy: The share.
        low: Lower end of its 95 % bootstrap interval over test pairs.
        high: Upper end.
        pairs: Number of test pairs.
    """

    accuracy: float
    low: float
    high: float
    pairs: int


def citation_link_probe(
    embeddings: ArrayLike,
    train: LinkPairs,
    test: LinkPairs,
    *,
    fit: Fit | None = LRA_HEAD,
    seed: int = 0,
) -> LinkResult:
    """Train a head on pairs of frozen embeddings and score it on other pairs.

    DocSplit (2023, Section 4.4) predicts "whether two papers have a citation link given only their embeddings" and
    otherwise refers to the Long Range Arena (Tay et al., 2020). Hence the arena's head on what its two towers give,
    ``[a, b, a * b, a - b]``: hidden layers of 512 and 256, ReLU. Hence too frozen embeddings, and learning rate, batch
    size and the rest as in the paper's classification, see :func:`~benchmarks.papers.mlp.fit_mlp`. With ``fit=None``
    the head is a logistic regression.

    All embeddings are first multiplied by one number, such that the mean square of a component is 1 over the training
    papers. Products of components would otherwise be far smaller than the components where embeddings have length 1,
    and the head would hardly see them. The features of all pairs are held at once, 16 * dim bytes a pair.
    """
    data = check_embeddings(embeddings, np.float32)
    for part in (train, test):
        check_pairs(part.pairs, len(data))
    scale = np.sqrt(np.square(data[np.unique(train.pairs)], dtype=np.float64).mean())
    if scale > 0:  # a model that maps everything to 0 is left to the head, which then scores at chance
        data = np.divide(data, np.float32(scale))
    result = fit_probe(
        link_features(data, train.pairs),
        train.labels.tolist(),
        link_features(data, test.pairs),
        test.labels.tolist(),
        seed=seed,
        fit=fit,
    )
    # The order of the values does not matter to the bootstrap.
    return _result(np.arange(len(test.labels)) < round(result.accuracy * len(test.labels)), seed)


def link_features(embeddings: NDArray[np.float32], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Make the head's input of pairs ``[n, 2]`` of embeddings ``[papers, dim]``: ``[a, b, a * b, a - b]``."""
    a, b = embeddings[pairs[:, 0]], embeddings[pairs[:, 1]]
    return np.concatenate([a, b, a * b, a - b], axis=1)


def citation_link_threshold(scores: PairScores, train: LinkPairs, test: LinkPairs, seed: int = 0) -> LinkResult:
    """Classify links by their score alone: those above the threshold that is best for the training pairs.

    What a bag of words can do, and what an embedding's cosine says without a head.
    """
    for part in (train, test):
        check_pairs(part.pairs, scores.size)
    _, threshold = BinaryClassificationEvaluator.find_best_acc_and_threshold(
        scores.pairs(train.pairs), train.labels, high_score_more_similar=True
    )
    return _result((scores.pairs(test.pairs) >= threshold) == (test.labels == 1), seed)


def _result(correct: NDArray[np.bool_], seed: int) -> LinkResult:
    low, high = bootstrap_interval(correct, seed=seed)
    return LinkResult(accuracy=float(correct.mean()), low=low, high=high, pairs=len(correct))
