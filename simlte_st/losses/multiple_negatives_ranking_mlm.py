"""DocSplit's training loss: in-batch negatives plus a masked-language-model term."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.arguments import Count, NotNegative, PositiveShare, Seed, check_arguments, check_value
from simlte_st.compat import Features, get_encoder
from simlte_st.distributed import mean_over_processes
from simlte_st.errors import DataError, ModelError
from simlte_st.losses import base
from simlte_st.losses.masked_language_model import HeadSource, MLMHead, TokenMasker, make_mlm_head
from simlte_st.models.passes import right_padded

MLMInput = Literal["separate", "shared"]


CITATION = """
@misc{docsplit,
    title={DocSplit: Simple Contrastive Pretraining for Large Document Embeddings},
    note={First published as: SimLTE: Simple Contrastive Learning for Long Text Embeddings},
    year={2023},
}
"""


class MLMLossMixin(base.LossStateMixin):
    """Mixin that adds an MLM term to a stock loss; list it before that loss in the base classes.

    The keywords are those of ``MultipleNegativesRankingMLMLoss``; other arguments go to the stock loss. Subclasses
    implement :meth:`compute_terms`.
    """

    batches: Tensor

    @check_arguments
    def __init__(
        self, model: SentenceTransformer, *arguments: Any, mlm_weight: NotNegative = 0.1,
        mlm_probability: PositiveShare = 0.15, mlm_input: MLMInput = "separate",
        mlm_head: HeadSource | MLMHead = "auto", mlm_chunk_size: Count = 1024, seed: Seed = 0, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(model, *arguments, **options)
        check_value("mini_batch_size", getattr(self, "mini_batch_size", None), Count | None)  # of the cached loss
        self.mlm_weight, self.mlm_probability, self.mlm_input = mlm_weight, mlm_probability, mlm_input
        self.mlm_chunk_size = mlm_chunk_size
        self.metrics = base.BatchMetrics()  # logged by LossMetricsCallback
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if mlm_weight > 0:
            self.masker = TokenMasker(model.tokenizer, mlm_probability, seed)
            # Number of training batches, which seeds their masks; a buffer, so that resumed runs continue counting.
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
            head = mlm_head if isinstance(mlm_head, MLMHead) else make_mlm_head(model, mlm_head, seed)
            self.mlm_head = head.to(model.device)
            self.register_head_hooks(self.mlm_head)

    def register_head_hooks(self, head: MLMHead) -> None:
        """Register hooks on the parameters of the head; none by default."""

    def forward(self, sentence_features: Iterable[Features], labels: Tensor) -> dict[str, Tensor] | Tensor:
        """Return the terms by name, or the stock loss if ``mlm_weight`` is 0."""
        columns = [right_padded(features) for features in sentence_features]
        if self.mlm_head is None:
            loss: Tensor = super().forward(columns, labels)
            return loss
        if len(columns) < 2:
            raise DataError(f"The loss needs two columns, the two views of a document; this batch has {len(columns)}.")
        contrastive, mlm = self.compute_terms(columns, self.mask_columns(columns), labels)
        return {"contrastive": contrastive, "mlm": mlm}

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
        raise NotImplementedError

    def mask_columns(self, columns: list[Features]) -> list[Features]:
        """Return masked copies of columns, with labels; each training batch gets new masks."""
        assert self.masker is not None
        number = 0
        if torch.is_grad_enabled():
            number = int(self.batches)
            self.batches += 1
        masked = []
        for column, features in enumerate(columns):
            ids, labels = self.masker(features, (number, column))
            masked.append({**features, "input_ids": ids, base.LABELS: labels})
        return masked

    def mean_count(self, count: int) -> float:
        """Return the mean number of masked tokens over the processes, at least 1."""
        if torch.is_grad_enabled():
            return max(1.0, mean_over_processes(count, self.model.device))
        return max(1.0, count)

    def summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Return the summed cross-entropy and the number of the masked tokens of some passes."""
        assert self.mlm_head is not None
        if "token_embeddings" not in outputs[0][0]:
            raise ModelError("The MLM term needs token embeddings, which the model does not return: use mlm_weight=0.")
        pairs = [(out["token_embeddings"], labels) for out, labels in outputs if labels is not None]
        hidden = torch.cat([tokens[labels != base.IGNORE] for tokens, labels in pairs])
        targets = torch.cat([labels[labels != base.IGNORE] for _, labels in pairs])
        words = get_encoder(self.model).get_input_embeddings().weight
        assert isinstance(words, Tensor)
        return self.mlm_head.summed_loss(hidden, words, targets, self.mlm_chunk_size), len(targets)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, for the model card."""
        stock: dict[str, Any] = super().get_config_dict()  # type: ignore[misc]  # defined by the stock loss
        settings = {name: getattr(self, name) for name in ("mlm_weight", "mlm_probability", "mlm_input")}
        head = None if self.mlm_head is None else "pretrained" if self.mlm_head.pretrained else "fresh"
        return {**stock, **settings, "mlm_head": head}

    @property
    def citation(self) -> str:
        """BibTeX of this loss and of the stock loss."""
        stock: str = super().citation  # type: ignore[misc]
        return CITATION + stock.lstrip("\n")


class MultipleNegativesRankingMLMLoss(MLMLossMixin, MultipleNegativesRankingLoss):  # type: ignore[misc]  # returns terms
    """Contrastive loss with in-batch negatives plus a masked-language-model (MLM) term.

    In plain terms:

    1. The two views of a document should be closer than views of different documents in the batch. This term is
       :class:`~sentence_transformers.sentence_transformer.losses.MultipleNegativesRankingLoss`, with all its options.
    2. The encoder should still predict masked words from their context, which preserves its knowledge of language.
    3. The loss is ``contrastive + mlm_weight * mlm``; the Trainer logs both terms by name.

    All views go through the model in one pass, unless their lengths differ so much that padding would cost more.

    By default (``mlm_input="separate"``) the contrastive term sees the original text, and the MLM term takes a second
    pass over masked copies of the views, as in SimCSE and DocSplit. With ``mlm_input="shared"`` one masked pass serves
    both terms, as in DeCLUTR, at half the cost.

    Args:
        model: The model to train.
        scale: Inverse temperature; ``scale=20.0`` is the papers' tau = 0.05.
        mlm_weight: Weight of the MLM term; the papers use 0.1. With 0 there is no MLM head and no second pass, which
            gives exactly ``MultipleNegativesRankingLoss``.
        mlm_probability: Share of tokens to mask (80% mask token, 10% random, 10% kept; never special tokens, padding or
            prompts).
        mlm_input: ``"separate"`` or ``"shared"``; see above.
        mlm_head: The checkpoint's head (``"pretrained"``), a new one (``"fresh"``), the checkpoint's if it has one
            (``"auto"``), or an ``MLMHead``.
        mlm_chunk_size: Number of masked tokens per chunk of logits, which takes ``mlm_chunk_size * vocabulary`` numbers
            of memory. It changes the result by rounding only.
        seed: Seed of a new head's weights and of the masks. The masks also depend on the batch number and the text, but
            not on how many processes share a batch.
        **options: Options of ``MultipleNegativesRankingLoss``: ``gather_across_devices``, ``directions``, ...

    Raises:
        ConfigurationError: A setting is out of range.
        ModelError: The model cannot train a masked language model.

    References:
        - DocSplit, section 4.1; SimLTE, sections 2.1 (Eq. 1) and 3.1
        - SimCSE (https://aclanthology.org/2021.emnlp-main.552) for the separate MLM pass
        - DeCLUTR (https://aclanthology.org/2021.acl-long.72) for the shared pass

    Requirements:
        An encoder with a mask token, unless ``mlm_weight=0``.

    Inputs:
        Two columns of texts, (view A, view B), without labels; further columns are hard negatives.

    Recommendations:
        Pass :func:`~simlte_st.trainer_callbacks` to the Trainer. They save the MLM head with checkpoints, which
        sentence-transformers does not, and log mean in-batch cosine, alignment and uniformity.

    Relations:
        - ``MultipleNegativesRankingLoss`` equals this loss with ``mlm_weight=0``.
        - :class:`~simlte_st.losses.CachedMultipleNegativesRankingMLMLoss` computes the same with the memory use of a
          mini-batch.

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

    def register_head_hooks(self, head: MLMHead) -> None:
        """Average the gradients of the head over the processes."""
        for parameter in head.parameters():
            parameter.register_post_accumulate_grad_hook(base.average_gradient)

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return the contrastive and the weighted MLM term, scalars."""
        shared = self.mlm_input == "shared"
        outputs = base.encode_columns(self.model, masked if shared else columns)
        contrastive = self.compute_loss_from_embeddings(base.split_embeddings(outputs, len(columns)), labels)
        if not shared:
            outputs = base.encode_columns(self.model, masked)
        # Without masked tokens the sum and its gradient are 0, while a mean would be NaN. Even then, distributed
        # processes need the graph, to stay in step.
        total, count = self.summed_mlm_loss(outputs)
        return contrastive, self.mlm_weight / self.mean_count(count) * total

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the contrastive term for embeddings, ``(batch, dim)`` per column, and update :attr:`metrics`."""
        if torch.is_grad_enabled():  # evaluation is logged separately
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss
