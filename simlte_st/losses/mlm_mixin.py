"""The masked-language-model term that the plain and the cached loss share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.compat import encoder_of
from simlte_st.config import check_choice, check_count, check_number
from simlte_st.distributed import mean_over_processes
from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.losses.batch_metrics import BatchMetrics
from simlte_st.losses.columns import LABELS, Features
from simlte_st.losses.loss_state import LossStateMixin
from simlte_st.losses.masking import IGNORE, TokenMasker
from simlte_st.losses.mlm_head import HeadSource, MLMHead, make_mlm_head
from simlte_st.models.passes import right_padded

MLMInput = Literal["separate", "shared"]


class MLMLossMixin(LossStateMixin):
    """A mixin that adds an MLM term to a stock loss, which comes after it among the base classes.

    The keywords are those of ``MultipleNegativesRankingMLMLoss``; all other arguments are the stock loss's. A subclass
    defines how both terms are computed, :meth:`compute_terms`.
    """

    batches: Tensor

    def __init__(
        self,
        model: SentenceTransformer,
        *arguments: Any,
        mlm_weight: float = 0.1,
        mlm_probability: float = 0.15,
        mlm_input: MLMInput = "separate",
        mlm_head: HeadSource | MLMHead = "auto",
        mlm_chunk_size: int = 1024,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(model, *arguments, **options)
        check_number("mlm_weight", mlm_weight, least=0)
        check_choice("mlm_input", mlm_input, ("separate", "shared"))
        if not isinstance(mlm_head, MLMHead) and mlm_head not in ("auto", "pretrained", "fresh"):
            raise ConfigurationError(f"mlm_head={mlm_head!r}: use 'auto', 'pretrained', 'fresh' or an MLMHead.")
        check_count("mlm_chunk_size", mlm_chunk_size)
        self.mlm_weight = mlm_weight
        self.mlm_probability = mlm_probability
        self.mlm_input = mlm_input
        self.mlm_chunk_size = mlm_chunk_size
        self.metrics = BatchMetrics()  # LossMetricsCallback logs them
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if mlm_weight > 0:
            self.masker = TokenMasker(model.tokenizer, mlm_probability, seed)
            # Counts the training batches, for their masks; a buffer, so that a resumed run continues to count.
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
            made = mlm_head if isinstance(mlm_head, MLMHead) else make_mlm_head(model, mlm_head, seed)
            self.mlm_head = made.to(model.device)
            self.on_head_made(self.mlm_head)

    def on_head_made(self, head: MLMHead) -> None:
        """Prepare a head that was just made."""

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Any) -> dict[str, Tensor] | Tensor:
        """Compute the loss: the terms by name, or the stock loss where ``mlm_weight`` is 0."""
        columns: list[Features] = [right_padded(features) for features in sentence_features]
        if self.mlm_head is None:
            loss: Tensor = super().forward(columns, labels)
            return loss
        if len(columns) < 2:
            raise DataError(f"The loss needs the two views of a document as columns; this batch has {len(columns)}.")
        contrastive, mlm = self.compute_terms(columns, self.mask_columns(columns), labels)
        return {"contrastive": contrastive, "mlm": mlm}

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Any) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
        raise NotImplementedError

    def mask_columns(self, columns: list[Features]) -> list[Features]:
        """Return masked copies of columns, with labels; drawn anew for each training batch."""
        assert self.masker is not None
        number = 0
        if torch.is_grad_enabled():
            number = int(self.batches)
            self.batches += 1
        masked = []
        for column, features in enumerate(columns):
            ids, labels = self.masker(features, (number, column))
            masked.append({**features, "input_ids": ids, LABELS: labels})
        return masked

    def mean_count(self, count: int) -> float:
        """Return the number of masked tokens, averaged over the processes as gradients are, at least 1."""
        if torch.is_grad_enabled():
            return max(1.0, mean_over_processes(count, self.model.device))
        return max(1.0, count)

    def summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Return the summed cross-entropy of the masked tokens of some passes, and their number."""
        assert self.mlm_head is not None
        if "token_embeddings" not in outputs[0][0]:
            raise ModelError("The model returns no token embeddings, which the prediction of masked words needs.")
        pairs = [(out["token_embeddings"], labels) for out, labels in outputs if labels is not None]
        hidden = torch.cat([tokens[labels != IGNORE] for tokens, labels in pairs])
        targets = torch.cat([labels[labels != IGNORE] for _, labels in pairs])
        words = encoder_of(self.model).get_input_embeddings().weight
        assert isinstance(words, Tensor)
        return self.mlm_head.summed_loss(hidden, words, targets, self.mlm_chunk_size), len(targets)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
        stock: dict[str, Any] = super().get_config_dict()  # type: ignore[misc]  # the stock loss has it
        own = {name: getattr(self, name) for name in ("mlm_weight", "mlm_probability", "mlm_input")}
        head = None if self.mlm_head is None else "pretrained" if self.mlm_head.pretrained else "fresh"
        return {**stock, **own, "mlm_head": head}

    @property
    def citation(self) -> str:
        """BibTeX of this loss and of the stock loss."""
        stock: str = super().citation  # type: ignore[misc]
        return CITATION + stock.lstrip("\n")


CITATION = """
@misc{docsplit,
    title={DocSplit: Simple Contrastive Pretraining for Large Document Embeddings},
    note={First published as: SimLTE: Simple Contrastive Learning for Long Text Embeddings},
    year={2023},
}
@inproceedings{gao-etal-2021-simcse,
    title={{SimCSE}: Simple Contrastive Learning of Sentence Embeddings},
    author={Gao, Tianyu and Yao, Xingcheng and Chen, Danqi},
    booktitle={Proceedings of EMNLP 2021},
    pages={6894--6910},
    year={2021},
}
"""
