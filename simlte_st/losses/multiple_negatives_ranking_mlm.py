"""The papers' training loss: in-batch negatives and, beside them, a masked language model."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.losses.columns import Features, encode_columns, split_embeddings
from simlte_st.losses.loss_state import average_gradient
from simlte_st.losses.mlm_head import MLMHead
from simlte_st.losses.mlm_mixin import MLMLossMixin


class MultipleNegativesRankingMLMLoss(MLMLossMixin, MultipleNegativesRankingLoss):  # type: ignore[misc]  # returns terms
    """Contrastive loss with in-batch negatives plus a masked-language-model (MLM) term.

    In plain terms:

    1. The two views of a document should lie closer than the views of different documents of the batch: exactly
       :class:`~sentence_transformers.sentence_transformer.losses.MultipleNegativesRankingLoss`, with all its options.
    2. Meanwhile the encoder should still predict masked words from their context, so that it keeps what it knows
       about language.
    3. The loss is ``contrastive + mlm_weight * mlm``; the Trainer logs the two terms by name.

    All views go through the model in one pass, unless that would add much padding because they differ in length.

    With the default ``mlm_input="separate"`` the contrastive term sees the text as it is, and the MLM term is a second
    pass over masked copies of the views. This is what SimCSE and UCTopic do, which the papers follow. With
    ``mlm_input="shared"`` one masked pass serves both terms (DeCLUTR's way) at half the cost.

    Args:
        model: The model to train.
        scale: The inverse of the temperature: ``scale=20.0`` is the papers' tau = 0.05.
        mlm_weight: Weight of the MLM term; the papers' is 0.1. With 0 there is no MLM head and no second pass, and
            the loss is stock ``MultipleNegativesRankingLoss`` to the bit.
        mlm_probability: Share of tokens masked (80% mask token, 10% random, 10% kept; special tokens, padding and
            prompts never).
        mlm_input: ``"separate"`` or ``"shared"``, see above.
        mlm_head: ``"pretrained"``, ``"fresh"`` or ``"auto"``, see
            :func:`~simlte_st.losses.mlm_head.make_mlm_head`; or a head that was made already.
        mlm_share: Probability of a row of a column to be in the MLM pass, drawn anew for each batch; one row at least
            is. The term is a mean over tokens, so its weight stays. Below 1 only with ``mlm_input="separate"``.
        mlm_chunk_size: Masked tokens whose logits are held at once, ``mlm_chunk_size * vocabulary`` numbers. Changes
            the result by rounding only.
        seed: Seed of a fresh head's weights, and of the masks: they depend on it, on the number of the batch and on the
            text, and so not on how many processes share a batch.
        **options: All options of ``MultipleNegativesRankingLoss``: ``gather_across_devices``, ``directions``, ...

    Raises:
        ConfigurationError: A negative weight, a probability or share outside (0, 1], an unknown ``mlm_input`` or
            ``mlm_head``, an ``mlm_chunk_size`` below 1, or an ``mlm_share`` that the input forbids.
        ModelError: The model cannot train a masked language model.

    References:
        - DocSplit, section 4.1; SimLTE, sections 2.1 (Eq. 1) and 3.1
        - SimCSE (https://aclanthology.org/2021.emnlp-main.552) for the separate MLM pass
        - DeCLUTR (https://aclanthology.org/2021.acl-long.72) for the shared pass

    Requirements:
        1. Pairs of views; more columns are hard negatives, as in ``MultipleNegativesRankingLoss``
        2. An encoder with a mask token, unless ``mlm_weight=0``

    Inputs:
        +-------------------+--------+
        | Inputs            | Labels |
        +===================+========+
        | (view A, view B)  | none   |
        +-------------------+--------+

    Recommendations:
        - Add :class:`simlte_st.training.LossStateCallback` to the Trainer: sentence-transformers does not save the
          parameters of a loss, so that without it a resumed run starts with a new MLM head.
        - Add :class:`simlte_st.training.LossMetricsCallback` to log mean in-batch cosine, alignment and uniformity.

    Relations:
        - ``MultipleNegativesRankingLoss`` is this loss at ``mlm_weight=0``.
        - :class:`~simlte_st.losses.CachedMultipleNegativesRankingMLMLoss` is this loss in the memory of a mini-batch.

    Example:
        ::

            from datasets import Dataset
            from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

            from simlte_st import DocSplitTransform, MultipleNegativesRankingMLMLoss, trainer_callbacks

            model = SentenceTransformer("google-bert/bert-base-uncased")
            dataset = Dataset.from_dict({"text": ["A long document. It has sentences. ...", "Another one. ..."]})
            views = DocSplitTransform(model=model)
            loss = MultipleNegativesRankingMLMLoss(model)
            trainer = SentenceTransformerTrainer(
                model=model,
                train_dataset=views.attach(dataset),
                loss=loss,
                callbacks=trainer_callbacks(views, loss),
            )
            trainer.train()
    """

    def on_head_made(self, head: MLMHead) -> None:
        """Average the head's gradients over the processes as they come: it is outside the DDP wrapper."""
        for parameter in head.parameters():
            parameter.register_post_accumulate_grad_hook(average_gradient)

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Any) -> tuple[Tensor, Tensor]:
        """Compute the contrastive and the weighted MLM term, scalars."""
        shared = self.mlm_input == "shared"
        outputs = encode_columns(self.model, masked if shared else columns)
        contrastive = self.compute_loss_from_embeddings(split_embeddings(outputs, len(columns)), labels)
        if not shared:
            outputs = encode_columns(self.model, masked)
        # A sum over nothing is 0 with a gradient of 0 everywhere; a mean would be NaN. Keeping the graph also keeps
        # the processes of a distributed run in step.
        total, count = self.summed_mlm_loss(outputs)
        return contrastive, self.mlm_weight / self.mean_count(count) * total

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Any) -> Tensor:
        """Compute the contrastive term from embeddings, ``(batch, dim)`` a column; gathers :attr:`metrics` too."""
        if torch.is_grad_enabled():  # the Trainer evaluates with this loss too, and logs that apart
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss
