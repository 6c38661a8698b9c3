"""The masked-language-model term that the plain and the cached loss have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.checks import check_choice, check_count, check_number
from simlte_st.compat import encoder_of
from simlte_st.distributed import mean_over_processes
from simlte_st.errors import ConfigurationError, DataError, ModelError
from simlte_st.losses.batch_metrics import BatchMetrics
from simlte_st.losses.columns import LABELS, Features, take_rows
from simlte_st.losses.loss_state import LossStateMixin
from simlte_st.losses.masking import IGNORE, TokenMasker
from simlte_st.losses.mlm_head import HeadSource, MLMHead, make_mlm_head

MLMInput = Literal["separate", "shared"]


class MLMLossMixin(LossStateMixin):
    """A mixin that adds an MLM term to a stock loss, as in ``MultipleNegativesRankingMLMLoss``.

    It is to be inherited from before the stock loss. The keywords are explained there; all other arguments are the
    stock loss's. What is left for a loss to say is how both terms are computed, :meth:`compute_terms`.

    Attributes:
        mlm_head: The head; None at ``mlm_weight=0``.
        metrics: What :class:`~simlte_st.training.LossMetricsCallback` logs.
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
        mlm_share: float = 1.0,
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
        check_number("mlm_share", mlm_share, above=0, most=1)
        if mlm_share < 1 and mlm_input == "shared":
            raise ConfigurationError(
                f"mlm_share={mlm_share} with mlm_input='shared': there the contrastive term needs the pass over all "
                "rows, so that nothing would be saved. Use mlm_input='separate'."
            )
        self.mlm_weight = mlm_weight
        self.mlm_probability = mlm_probability
        self.mlm_input = mlm_input
        self.mlm_share = mlm_share
        self.mlm_chunk_size = mlm_chunk_size
        self.metrics = BatchMetrics()
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if mlm_weight > 0:
            self.masker = TokenMasker(model.tokenizer, mlm_probability, seed)
            # Counts the training batches, for their masks; a buffer, so that a run that resumes goes on counting.
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
            made = mlm_head if isinstance(mlm_head, MLMHead) else make_mlm_head(model, mlm_head, seed)
            self.mlm_head = made.to(model.device)
            self.on_head_made(self.mlm_head)

    def on_head_made(self, head: MLMHead) -> None:
        """Prepare what a loss needs of a head that was just made; nothing here."""

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Any) -> dict[str, Tensor] | Tensor:
        """Compute the loss. Of the cached loss most work is done in the backward pass, which can be done once."""
        columns: list[Features] = list(sentence_features)
        if self.mlm_head is None:
            loss: Tensor = super().forward(columns, labels)
            return loss
        if len(columns) < 2:
            raise DataError(f"The loss needs the views of a document as two columns; this batch has {len(columns)}.")
        contrastive, mlm = self.compute_terms(columns, self.mask_columns(columns), labels)
        return {"contrastive": contrastive, "mlm": mlm}

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Any) -> tuple[Tensor, Tensor]:
        """Compute the contrastive and the weighted MLM term, scalars."""
        raise NotImplementedError

    def mask_columns(self, columns: list[Features]) -> list[Features]:
        """Draw rows and masks: masked copies of columns, with labels; others for each batch of a training."""
        assert self.masker is not None
        number = 0
        if torch.is_grad_enabled():
            number = int(self.batches)
            self.batches += 1
        masked = []
        for column, features in enumerate(columns):
            draw = number, column
            if self.mlm_share < 1:
                features = take_rows(features, self.masker.choose_rows(features, draw, self.mlm_share))
            ids, labels = self.masker(features, draw)
            masked.append({**features, "input_ids": ids, LABELS: labels})
        return masked

    def mean_count(self, count: int) -> float:
        """Average the number of masked tokens over the processes, at least 1.

        Gradients are averaged too: a sum over the tokens of a process, divided by this, is the mean over all tokens.
        """
        if torch.is_grad_enabled():
            return max(1.0, mean_over_processes(count, self.model.device))
        return max(1.0, count)

    def summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Cross-entropy of the masked tokens of some passes, and their number; logits at those positions only."""
        assert self.mlm_head is not None
        if "token_embeddings" not in outputs[0][0]:
            raise ModelError("The model gives no token embeddings, so there is nothing to predict masked words from.")
        pairs = [(out["token_embeddings"], labels) for out, labels in outputs if labels is not None]
        hidden = torch.cat([tokens[labels != IGNORE] for tokens, labels in pairs])
        targets = torch.cat([labels[labels != IGNORE] for _, labels in pairs])
        words = encoder_of(self.model).get_input_embeddings().weight
        assert isinstance(words, Tensor)
        return self.mlm_head.summed_loss(hidden, words, targets, self.mlm_chunk_size), len(targets)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
        stock: dict[str, Any] = super().get_config_dict()  # type: ignore[misc]  # the stock loss has it
        return {
            **stock,
            "mlm_weight": self.mlm_weight,
            "mlm_probability": self.mlm_probability,
            "mlm_input": self.mlm_input,
            "mlm_head": None if self.mlm_head is None else "pretrained" if self.mlm_head.pretrained else "fresh",
            "mlm_share": self.mlm_share,
        }

    @property
    def citation(self) -> str:
        """BibTeX of what this loss implements, that of the stock loss included."""
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
"""BibTeX of the two terms and of the separate MLM pass."""
