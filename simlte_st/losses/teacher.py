"""Distillation of a teacher's embeddings that keeps apart what the teacher keeps apart."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import EmbedDistillLoss
from torch import Tensor
from torch.nn import functional

from simlte_st.errors import ConfigurationError


class TeacherLoss(EmbedDistillLoss):
    """sentence-transformers' ``EmbedDistillLoss`` with a term for the similarities within a batch beside it.

    The first term is the cosine distance of each text's embedding to its teacher's. A short text tells little of a long
    document, and this term alone makes a student blur what it cannot tell: all embeddings move together. The second
    term is the cross-entropy between two softmaxes over the teacher's embeddings of the batch: of a text's similarities
    to them, and of the similarities that the teacher has there (relational distillation: Park et al., 2019).

    Args:
        model: The model to train.
        relation_weight: Weight of the second term; 0 leaves it out (``benchmarks/results/recipe.md``).
        scale: Inverse temperature of both softmaxes.

    Inputs:
        Any number of columns of texts, and a column ``label`` of the teacher's embeddings, shape ``[B, dim]`` for all
        columns or ``[B, columns, dim]``, any length.

    Raises:
        ConfigurationError: A weight below 0, or a scale that is not above 0.
    """

    def __init__(self, model: SentenceTransformer, relation_weight: float = 0.3, scale: float = 20.0) -> None:
        super().__init__(model, distance_metric="cosine")
        if relation_weight < 0:
            raise ConfigurationError(f"relation_weight={relation_weight}: must not be negative.")
        if scale <= 0:
            raise ConfigurationError(f"scale={scale}: must be greater than 0.")
        self.relation_weight = relation_weight
        self.scale = scale

    def compute_loss_from_embeddings(  # type: ignore[override]  # a dictionary, whose terms the Trainer sums and logs
        self, embeddings: list[Tensor], teacher_embeddings: list[Tensor]
    ) -> dict[str, Tensor]:
        """Compute both terms, each a mean over the columns.

        Args:
            embeddings: The student's, ``[B, dim]`` a column.
            teacher_embeddings: The teacher's, likewise.
        """
        terms = {"distance": super().compute_loss_from_embeddings(embeddings, teacher_embeddings)}
        if self.relation_weight > 0:
            pairs = zip(embeddings, teacher_embeddings, strict=True)
            terms["relation"] = self.relation_weight * torch.stack([self._relation(*pair) for pair in pairs]).mean()
        return terms

    def _relation(self, student: Tensor, teacher: Tensor) -> Tensor:
        shown = functional.normalize(teacher.to(student.device, torch.float32), dim=-1)
        wanted = functional.softmax(self.scale * shown @ shown.T, dim=-1)
        scores = self.scale * functional.normalize(student.float(), dim=-1) @ shown.T
        return functional.cross_entropy(scores, wanted)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"relation_weight": self.relation_weight, "scale": self.scale}
