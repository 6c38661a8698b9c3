"""The frozen base as a teacher of whole documents, for recipes of the bank.

Two views of a document learn the base's embedding of the whole document (distillation: Hinton et al., 2015;
EmbedDistill: Kim et al., 2023), smoothed once over the graph of nearest neighbours (SGC: Wu et al., 2019). Embeddings
and words together decide which neighbours are nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch import Tensor
from torch.nn import functional

from simlte_st.evaluation.scores import fit_tfidf
from simlte_st.models.vectors import unit_rows

NEIGHBOURS = 5
"""Number of nearest documents that smooth a document's target embedding."""

MAX_TOKENS = 1024
"""Maximum number of tokens that the teacher reads from a document, in chunks."""

Vectors = NDArray[np.float32]


def nearest_documents(
    vectors: Vectors, texts: Sequence[str], *, count: int = NEIGHBOURS, lexical: float = 0.5
) -> NDArray[np.int64]:
    """Find the nearest neighbours of each document by embedding and by words.

    Similarity is a weighted mean of two cosines, of embeddings and of TF-IDF vectors (without English stop words), each
    standardised over pairs of documents. ``lexical`` is the weight of the words.
    """
    similarities = [(1 - lexical) * _standardise(vectors @ vectors.T)]
    if lexical > 0:
        words = fit_tfidf(texts, stop_words=["en"], min_df=2).transform(texts)
        similarities.append(lexical * _standardise(np.asarray((words @ words.T).todense())))
    similarity = sum(similarities)
    np.fill_diagonal(similarity, -np.inf)
    return np.argsort(-similarity, axis=1, kind="stable")[:, : min(count, len(vectors) - 1)]


def _standardise(similarities: Vectors) -> Vectors:
    """Standardise similarities over pairs of different documents."""
    pairs = similarities[~np.eye(len(similarities), dtype=bool)]
    return (similarities - pairs.mean()) / (pairs.std() or 1.0)


def smooth_vectors(vectors: Vectors, neighbours: NDArray[np.int64], weight: float) -> Vectors:
    """Move each vector towards the mean of its neighbours and normalise it."""
    mean = np.zeros_like(vectors)
    for column in neighbours.T:
        mean += vectors[column] / neighbours.shape[1]
    return unit_rows((1 - weight) * vectors + weight * mean).astype(np.float32)


class TeacherLoss(EmbedDistillLoss):
    """sentence-transformers' ``EmbedDistillLoss`` plus a term for the similarities within a batch.

    The first term is the cosine distance between the student's and the teacher's embedding of a text. A short text says
    little about a long document, so this term alone makes all of the student's embeddings drift together. The second
    term is the cross-entropy between two softmaxes over the teacher's embeddings in the batch: one of the student's
    similarities to them, one of the teacher's (relational distillation: Park et al., 2019).

    Inputs:
        Any number of text columns, and a column ``label`` with the teacher's embeddings, which need not be normalised:
        shape ``[B, dim]`` for all columns together, or ``[B, columns, dim]``.
    """

    def __init__(self, model: SentenceTransformer, relation_weight: float = 0.3, scale: float = 20.0) -> None:
        super().__init__(model, distance_metric="cosine")
        self.relation_weight = relation_weight
        self.scale = scale

    def compute_loss_from_embeddings(  # type: ignore[override]  # the Trainer sums and logs the terms of a dictionary
        self, embeddings: list[Tensor], teacher_embeddings: list[Tensor]
    ) -> dict[str, Tensor]:
        """Compute both terms, averaged over the columns."""
        terms = {"distance": super().compute_loss_from_embeddings(embeddings, teacher_embeddings)}
        if self.relation_weight > 0:
            pairs = zip(embeddings, teacher_embeddings, strict=True)
            terms["relation"] = self.relation_weight * torch.stack([self._relation(*pair) for pair in pairs]).mean()
        return terms

    def _relation(self, student: Tensor, teacher: Tensor) -> Tensor:
        targets = functional.normalize(teacher.to(student.device, torch.float32), dim=-1)
        teacher_shares = functional.softmax(self.scale * targets @ targets.T, dim=-1)
        scores = self.scale * functional.normalize(student.float(), dim=-1) @ targets.T
        return functional.cross_entropy(scores, teacher_shares)
