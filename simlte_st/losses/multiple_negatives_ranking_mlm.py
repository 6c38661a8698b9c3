"""The papers' training loss: in-batch negatives and, beside them, a masked language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim
from torch import Tensor

from simlte_st.losses.columns import Features, encode_columns, split_embeddings
from simlte_st.losses.mlm_head import HeadSource, MLMHead
from simlte_st.losses.mlm_term import CITATION, MLMInput, MLMTerm, average_gradient


class MultipleNegativesRankingMLMLoss(MLMTerm, MultipleNegativesRankingLoss):
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
        seed: Seed of a fresh head's weights.
        mlm_every: The MLM term is there in every ``mlm_every``-th training batch only, from the first one on, and
            weighs ``mlm_every`` times as much there: so the expected gradient stays that of ``mlm_weight``, and
            the mean that the Trainer logs too. The price is a noisier gradient. Batches are counted, not optimizer
            steps, in every process alike; evaluation always has the term, at its own weight. With
            ``mlm_input="shared"`` the text is masked in every batch, and only the head's work is saved.
        mlm_share: Share of the rows of each column that the MLM pass sees, drawn anew for each batch from torch's
            global generator, one row at least. The term is a mean over tokens, so its weight stays. Below 1 only with
            ``mlm_input="separate"``.
        mlm_chunk_size: Masked tokens whose logits are held at once, ``mlm_chunk_size * vocabulary`` numbers. Changes
            the result by rounding only.
        **options: All options of ``MultipleNegativesRankingLoss``: ``gather_across_devices``, ``directions``, ...

    Raises:
        ConfigurationError: A negative weight, a probability or share outside (0, 1], an unknown ``mlm_input`` or
            ``mlm_head``, an ``mlm_every`` or ``mlm_chunk_size`` below 1, or an ``mlm_share`` that the input forbids.
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
          parameters of a loss, so that without it a resumed run starts with a new MLM head, and ``mlm_every`` counts
          from 0 again.
        - Add :class:`simlte_st.training.LossMetricsCallback` to log mean in-batch cosine, alignment and uniformity.

    Relations:
        - ``MultipleNegativesRankingLoss`` is this loss at ``mlm_weight=0``.
        - :class:`~simlte_st.losses.CachedMultipleNegativesRankingMLMLoss` is this loss in the memory of a mini-batch.

    Example:
        ::

            from datasets import Dataset
            from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer

            from simlte_st.data import DocSplitTransform
            from simlte_st.losses import MultipleNegativesRankingMLMLoss
            from simlte_st.training import LossStateCallback

            model = SentenceTransformer("google-bert/bert-base-uncased")
            dataset = Dataset.from_dict({"text": ["A long document. It has sentences. ...", "Another one. ..."]})
            views = DocSplitTransform(model=model)
            loss = MultipleNegativesRankingMLMLoss(model)
            trainer = SentenceTransformerTrainer(
                model=model,
                train_dataset=views.attach(dataset),
                loss=loss,
                callbacks=[views.callback, LossStateCallback(loss)],
            )
            trainer.train()
    """

    def __init__(
        self,
        model: SentenceTransformer,
        scale: float = 20.0,
        mlm_weight: float = 0.1,
        mlm_probability: float = 0.15,
        mlm_input: MLMInput = "separate",
        mlm_head: HeadSource | MLMHead = "auto",
        similarity_fct: Callable[[Tensor, Tensor], Tensor] = cos_sim,
        seed: int = 0,
        mlm_every: int = 1,
        mlm_share: float = 1.0,
        mlm_chunk_size: int = 1024,
        **options: Any,
    ) -> None:
        super().__init__(model, scale=scale, similarity_fct=similarity_fct, **options)
        self._set_up_mlm(
            model,
            weight=mlm_weight,
            probability=mlm_probability,
            mlm_input=mlm_input,
            head=mlm_head,
            seed=seed,
            every=mlm_every,
            share=mlm_share,
            chunk_size=mlm_chunk_size,
        )
        if self.mlm_head is not None:
            for parameter in self.mlm_head.parameters():
                parameter.register_post_accumulate_grad_hook(average_gradient)

    def forward(  # type: ignore[override]  # the stock losses that return several terms have the same signature
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Any
    ) -> dict[str, Tensor] | Tensor:
        """Compute the loss.

        Args:
            sentence_features: One dict of model inputs a column; not changed, unless ``mlm_weight=0``.
            labels: Not used.

        Returns:
            ``{"contrastive": ..., "mlm": ...}`` whose sum is the loss, the MLM term weighted already; at
            ``mlm_weight=0`` the contrastive loss alone, a scalar, as the stock loss returns it.
        """
        columns: list[Features] = list(sentence_features)
        if self.mlm_head is None:
            loss: Tensor = super().forward(columns, labels)
            return loss
        weight = self._next_mlm_weight()
        masked = self._mask(columns) if weight or self.mlm_input == "shared" else []
        outputs = encode_columns(self.model, masked if self.mlm_input == "shared" else columns)
        contrastive = self.compute_loss_from_embeddings(split_embeddings(outputs, len(columns)), labels)
        if not weight:
            return {"contrastive": contrastive, "mlm": torch.zeros_like(contrastive)}
        if self.mlm_input == "separate":
            outputs = encode_columns(self.model, masked)
        # A sum over nothing is 0 with a gradient of 0 everywhere; a mean would be NaN. Keeping the graph also keeps
        # the processes of a distributed run in step.
        total, count = self._summed_mlm_loss(outputs)
        return {"contrastive": contrastive, "mlm": weight / max(1, count) * total}

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Any) -> Tensor:
        """Compute the contrastive term from embeddings, ``(batch, dim)`` a column; gathers :attr:`metrics` too."""
        if torch.is_grad_enabled():  # the Trainer evaluates with this loss too, and logs that apart
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for the model card."""
        return {**super().get_config_dict(), **self._mlm_config()}

    @property
    def citation(self) -> str:
        """BibTeX of what this loss implements."""
        return CITATION
