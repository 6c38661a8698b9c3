"""The papers' training loss for batches of any size: GradCache."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import CachedMultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.config import check_count
from simlte_st.losses.columns import Features
from simlte_st.losses.gradient_cache import ContrastivePass, MLMPass, joined_terms
from simlte_st.losses.loss_state import average_gradient
from simlte_st.losses.mlm_mixin import MLMLossMixin


class CachedMultipleNegativesRankingMLMLoss(  # type: ignore[misc]  # returns terms
    MLMLossMixin, CachedMultipleNegativesRankingLoss
):
    """:class:`~simlte_st.losses.MultipleNegativesRankingMLMLoss` in the memory of a mini-batch.

    More in-batch negatives are better, and take more memory. This loss has the same value and gradients, but keeps the
    activations of only one mini-batch at a time:

    1. All texts are embedded without a graph, mini-batch by mini-batch.
    2. The contrastive loss of the whole batch gives the gradient with respect to each embedding.
    3. In the backward pass the texts are embedded again, with the same dropout and with a graph, which those gradients
       enter.
    4. The MLM term is a sum over masked tokens and needs no such cache: with ``mlm_input="separate"`` each masked
       mini-batch is passed once, forward and backward, and its gradient accumulated; with ``"shared"`` it is part of
       1 and 3. In both the mean is over the masked tokens of the whole batch.

    With a forward pass as 1 unit of work and a backward pass as 2, this takes 7 units where the plain loss takes 6;
    with ``mlm_input="shared"`` 4 and 3.

    Args:
        model: The model to train.
        mlm_weight: Weight of the MLM term; with 0 the loss is stock ``CachedMultipleNegativesRankingLoss`` to the bit.
        mini_batch_size: Number of texts, of all columns together, in a pass through the model.
        mini_batch_num_tokens: Number of tokens in a pass through the model, padding not counted, instead of a number of
            texts; a longer text is passed alone. ``mini_batch_size`` then applies to the scores only.
        **options: All other options of ``MultipleNegativesRankingMLMLoss`` and of
            ``CachedMultipleNegativesRankingLoss``.

    Raises:
        ConfigurationError: As ``MultipleNegativesRankingMLMLoss``, and for a size of mini-batches below 1.
        ModelError: The model cannot train a masked language model.

    References:
        GradCache (https://aclanthology.org/2021.repl4nlp-1.31), and those of ``MultipleNegativesRankingMLMLoss``.

    Requirements:
        1. Those of ``MultipleNegativesRankingMLMLoss``
        2. A large ``per_device_train_batch_size`` and a mini-batch that fits into memory
        3. One process, or several with DDP; sharded gradients (FSDP, DeepSpeed) cannot be cached
        4. Gradient checkpointing only with ``use_reentrant=False``, transformers' default

    Inputs:
        Columns of texts, (view A, view B), without labels.

    Example:
        ::

            loss = CachedMultipleNegativesRankingMLMLoss(model, mini_batch_size=32)
            arguments = SentenceTransformerTrainingArguments(per_device_train_batch_size=1024)
            SentenceTransformerTrainer(model, arguments, train_dataset=views.attach(dataset), loss=loss)
    """

    def __init__(
        self,
        *arguments: Any,
        mini_batch_size: int = 32,
        mini_batch_num_tokens: int | None = None,
        **options: Any,
    ) -> None:
        check_count("mini_batch_size", mini_batch_size)
        if mini_batch_num_tokens is not None:
            check_count("mini_batch_num_tokens", mini_batch_num_tokens)
        super().__init__(
            *arguments, mini_batch_size=mini_batch_size, mini_batch_num_tokens=mini_batch_num_tokens, **options
        )

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Any) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
        shared = self.mlm_input == "shared"
        embedded = ContrastivePass(self, masked if shared else columns)
        contrastive = embedded.run(labels)
        predicted = embedded if shared else MLMPass(self, masked)
        slope = self.mlm_weight / self.mean_count(predicted.mlm_count)
        mlm = slope * predicted.mlm_sum
        if torch.is_grad_enabled():
            contrastive.register_hook(self._average_head_gradient)  # after the engine's own hook
            contrastive, mlm = joined_terms(contrastive, mlm, lambda grad: predicted.back_propagate(slope * grad))
        return contrastive, mlm

    def _average_head_gradient(self, _: Tensor) -> None:
        """Average once for all mini-batches, in every process, whatever was masked there."""
        assert self.mlm_head is not None
        for parameter in self.mlm_head.parameters():
            if parameter.requires_grad:
                average_gradient(parameter)
