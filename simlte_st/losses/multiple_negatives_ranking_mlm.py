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

    1. The two views of a document should be closer than views of different documents of the batch. This term is
       :class:`~sentence_transformers.sentence_transformer.losses.MultipleNegativesRankingLoss`, with all its options.
    2. The encoder should still predict masked words from their context, and so keep its knowledge of language.
    3. The loss is ``contrastive + mlm_weight * mlm``; the Trainer logs the two terms by name.

    All views go through the model in one pass, unless their lengths differ so much that padding would cost more.

    With the default ``mlm_input="separate"`` the contrastive term sees the unchanged text, and the MLM term is a second
    pass over masked copies of the views, as in SimCSE and in the papers. With ``mlm_input="shared"`` one masked pass
    serves both terms, as in DeCLUTR, at half the cost.

    Args:
        model: The model to train.
        scale: The inverse of the temperature: ``scale=20.0`` is the papers' tau = 0.05.
        mlm_weight: Weight of the MLM term; the papers' is 0.1. With 0 there is no MLM head and no second pass: the loss
            is stock ``MultipleNegativesRankingLoss`` to the bit.
        mlm_probability: Share of tokens masked (80% mask token, 10% random, 10% kept; never special tokens, padding or
            prompts).
        mlm_input: ``"separate"`` or ``"shared"``, see above.
        mlm_head: ``"pretrained"``, the checkpoint's; ``"fresh"``, a new one; ``"auto"``, the checkpoint's if it has
            one; or an ``MLMHead``.
        mlm_chunk_size: Masked tokens whose logits are held at once, ``mlm_chunk_size * vocabulary`` numbers. It changes
            the result by rounding only.
        seed: Seed of a fresh head's weights and of the masks. These also depend on the number of the batch and on the
            text, but not on how many processes share a batch.
        **options: All options of ``MultipleNegativesRankingLoss``: ``gather_across_devices``, ``directions``, ...

    Raises:
        ConfigurationError: A setting is out of its range.
        ModelError: The model cannot train a masked language model.

    References:
        - DocSplit, section 4.1; SimLTE, sections 2.1 (Eq. 1) and 3.1
        - SimCSE (https://aclanthology.org/2021.emnlp-main.552) for the separate MLM pass
        - DeCLUTR (https://aclanthology.org/2021.acl-long.72) for the shared pass

    Requirements:
        An encoder with a mask token, unless ``mlm_weight=0``.

    Inputs:
        Columns of texts, (view A, view B), without labels; more columns are hard negatives.

    Recommendations:
        - Add :class:`simlte_st.training.LossStateCallback` to the Trainer: sentence-transformers does not save the
          parameters of a loss, and a resumed run would start with a new MLM head.
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
        """Average the gradients of the head, which is outside the DDP wrapper, over the processes."""
        for parameter in head.parameters():
            parameter.register_post_accumulate_grad_hook(average_gradient)

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Any) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
        shared = self.mlm_input == "shared"
        outputs = encode_columns(self.model, masked if shared else columns)
        contrastive = self.compute_loss_from_embeddings(split_embeddings(outputs, len(columns)), labels)
        if not shared:
            outputs = encode_columns(self.model, masked)
        # A sum over nothing is 0 with a gradient of 0 everywhere; a mean would be NaN. With the graph, the processes of
        # a distributed run also stay in step.
        total, count = self.summed_mlm_loss(outputs)
        return contrastive, self.mlm_weight / self.mean_count(count) * total

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Any) -> Tensor:
        """Return the contrastive term of embeddings, ``(batch, dim)`` a column, and update :attr:`metrics`."""
        if torch.is_grad_enabled():  # the Trainer evaluates with this loss too, and logs that apart
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss
