"""Citation link classification: predict from two embeddings whether one paper cites the other."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator

from benchmarks.papers.link_pairs import LinkPairs
from benchmarks.papers.mlp import fit_mlp
from simlte_st.evaluation import PairScores, fit_probe
from simlte_st.evaluation.probe import Fit

LRA_HEAD: Fit = partial(fit_mlp, hidden=(512, 256))
"""The head of the Long Range Arena's document retrieval task."""


def citation_link_probe(
    embeddings: ArrayLike, train: LinkPairs, test: LinkPairs, *, fit: Fit | None = LRA_HEAD, seed: int = 0
) -> float:
    """Train a head on pairs of frozen embeddings and return its accuracy on other pairs.

    DocSplit (2023, Section 4.4) predicts "whether two papers have a citation link given only their embeddings" and
    otherwise refers to the Long Range Arena (Tay et al., 2020). The default head is therefore the arena's: ReLU layers
    of 512 and 256 units on ``[a, b, a * b, a - b]``. Learning rate, batch size and all other settings are those of the
    paper's classification; see :func:`~benchmarks.papers.mlp.fit_mlp`. With ``fit=None`` the head is a logistic
    regression.

    Embeddings are first scaled to a mean square of 1 per component over the training papers. For unit vectors, products
    of components would otherwise be far smaller than the components, and the head would hardly use them. The features
    of all pairs are in memory at once: 16 * dim bytes per pair.
    """
    data = np.asarray(embeddings, dtype=np.float32)
    scale = np.sqrt(np.square(data[np.unique(train.pairs)], dtype=np.float64).mean())
    if scale > 0:  # embeddings of zeros remain zeros, and the head performs at chance
        data = np.divide(data, np.float32(scale))
    parts = ((link_features(data, part.pairs), part.labels.tolist()) for part in (train, test))
    (train_features, train_labels), (test_features, test_labels) = parts
    return fit_probe(train_features, train_labels, test_features, test_labels, fit=fit, seed=seed).accuracy


def link_features(embeddings: NDArray[np.float32], pairs: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the head's input ``[a, b, a * b, a - b]`` for pairs ``[n, 2]`` of embeddings ``[papers, dim]``."""
    a, b = embeddings[pairs[:, 0]], embeddings[pairs[:, 1]]
    return np.concatenate([a, b, a * b, a - b], axis=1)


def citation_link_threshold(scores: PairScores, train: LinkPairs, test: LinkPairs) -> float:
    """Classify links by their score, with the best threshold on the training pairs, and return the accuracy.

    This is for bags of words, and for cosines without a head.
    """
    _, threshold = BinaryClassificationEvaluator.find_best_acc_and_threshold(
        scores.pairs(train.pairs), train.labels, high_score_more_similar=True
    )
    return float(((scores.pairs(test.pairs) >= threshold) == (test.labels == 1)).mean())
