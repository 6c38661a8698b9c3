"""DocSplit's training loss: in-batch negatives plus a masked-language-model term."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from torch import Tensor

from simlte_st.arguments import Count, NotNegative, PositiveShare, Seed, check_arguments, check_value
from simlte_st.compat import Features, find_loss_wrapper, get_encoder
from simlte_st.distributed import mean_over_processes
from simlte_st.errors import ConfigurationError, DataError, ModelError
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

    It takes the keywords of ``MultipleNegativesRankingMLMLoss`` and passes other arguments to the stock loss.
    Subclasses implement :meth:`compute_terms`.
    """

    batches: Tensor

    @check_arguments
    def __init__(
        self, model: SentenceTransformer, *arguments: Any, mlm_weight: NotNegative = 0.1,
        mlm_probability: PositiveShare = 0.15, mlm_input: MLMInput = "separate",
        mlm_head: HeadSource | MLMHead = "auto", mlm_chunk_size: Count = 1024, seed: Seed = 0, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(model, *arguments, **options)
        check_value("mini_batch_size", getattr(self, "mini_batch_size", None), Count | None)  # set by the cached loss
        self.mlm_weight, self.mlm_probability, self.mlm_input = mlm_weight, mlm_probability, mlm_input
        self.mlm_chunk_size = mlm_chunk_size
        self.metrics = base.BatchMetrics()  # logged by LossMetricsCallback
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if mlm_weight > 0:
            self.masker = TokenMasker(model.tokenizer, mlm_probability, seed)
            # Number of training batches so far, which seeds the masks; a buffer, so that a resumed run keeps it.
            self.register_buffer("batches", torch.zeros((), dtype=torch.int64))
            head = mlm_head if isinstance(mlm_head, MLMHead) else make_mlm_head(model, mlm_head, seed)
            self.mlm_head = head.to(model.device)
            for parameter in () if hasattr(self, "mini_batch_size") else self.mlm_head.parameters():
                parameter.register_post_accumulate_grad_hook(base.average_gradient)  # the cached loss averages later

    def forward(self, sentence_features: Iterable[Features], labels: Tensor) -> dict[str, Tensor] | Tensor:
        """Return the terms by name, or the stock loss if ``mlm_weight`` is 0."""
        originals, wrapper = list(sentence_features), find_loss_wrapper(self.model)
        columns = [right_padded(features) for features in originals]
        if self.mlm_head is None:
            loss: Tensor = super().forward(originals if wrapper else columns, labels)
            return loss
        if len(columns) < 2:
            raise DataError(f"The loss needs two columns, the views of a document, but this batch has {len(columns)}.")
        if wrapper is not None:
            if self.mlm_input == "shared" or hasattr(self, "mini_batch_size"):
                raise ConfigurationError(
                    f"{type(self).__name__}(mlm_input={self.mlm_input!r}) does not work inside {wrapper.name}: use "
                    "MultipleNegativesRankingMLMLoss with mlm_input='separate', or mlm_weight=0."
                )
            contrastive = super().forward(originals, labels)  # the wrapper passes states in these dictionaries
            mlm = torch.zeros_like(contrastive)
            if wrapper.first_pass:  # of several over a batch
                with wrapper.without_wrapper():
                    mlm = self.mlm_term(base.encode_columns(self.model, self.mask_columns(columns)))
            return base.LossTerms(contrastive=contrastive, mlm=mlm)
        contrastive, mlm = self.compute_terms(columns, self.mask_columns(columns), labels)
        return {"contrastive": contrastive, "mlm": mlm}

    def mlm_term(self, outputs: list[tuple[Features, Tensor | None]]) -> Tensor:
        """Return the weighted MLM term for the model's outputs, a scalar."""
        # A sum, because a mean over no masked tokens would be NaN. Even a sum of 0 needs its graph: otherwise,
        # distributed processes would wait for each other.
        total, count = self.summed_mlm_loss(outputs)
        return self.mlm_weight / self.mean_count(count) * total

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return two scalars: the contrastive term and the weighted MLM term."""
        raise NotImplementedError

    def mask_columns(self, columns: list[Features]) -> list[Features]:
        """Return masked copies of the columns, with labels. Each training batch gets new masks."""
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
        """Return the number of masked tokens, averaged over processes and at least 1."""
        return max(1.0, mean_over_processes(count, self.model.device) if torch.is_grad_enabled() else count)

    def summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Return the summed cross-entropy and the number of masked tokens over several passes."""
        assert self.mlm_head is not None
        if "token_embeddings" not in outputs[0][0]:
            raise ModelError("The MLM term needs token embeddings, but the model returns none: use mlm_weight=0.")
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
        """BibTeX entries of this loss and the stock loss."""
        stock: str = super().citation  # type: ignore[misc]
        return CITATION + stock.lstrip("\n")


class MultipleNegativesRankingMLMLoss(MLMLossMixin, MultipleNegativesRankingLoss):  # type: ignore[misc]  # returns terms
    """Contrastive loss with in-batch negatives plus a masked-language-model (MLM) term.

    In plain terms:

    1. The two views of a document should be closer than views of different documents in the batch. This term is
       :class:`~sentence_transformers.sentence_transformer.losses.MultipleNegativesRankingLoss` with all its options.
    2. The encoder should still predict masked words from their context, which preserves what it learned in pretraining.
    3. The loss is ``contrastive + mlm_weight * mlm``; the Trainer logs both terms by name.

    Inside ``MatryoshkaLoss`` and ``AdaptiveLayerLoss``, the contrastive term is computed for each dimension or layer,
    and the MLM term once. This needs ``mlm_input="separate"``.

    All views go through the model in one pass, unless their lengths differ so much that separate passes are faster.

    By default (``mlm_input="separate"``), the contrastive term sees the original text, and the MLM term takes a second
    pass over masked copies of the views, as in SimCSE and DocSplit. With ``mlm_input="shared"``, both terms use one
    masked pass, as in DeCLUTR, at half the cost.

    Args:
        model: The model to train.
        scale: Inverse temperature; ``scale=20.0`` is the papers' tau = 0.05.
        mlm_weight: Weight of the MLM term; the papers use 0.1. 0 removes the MLM head and the second pass, leaving
            exactly ``MultipleNegativesRankingLoss``.
        mlm_probability: Fraction of tokens to mask: 80% become the mask token, 10% a random token, and 10% stay
            unchanged. Special tokens, padding and prompts are never masked.
        mlm_input: ``"separate"`` or ``"shared"``; see above.
        mlm_head: The checkpoint's head (``"pretrained"``), a new head (``"fresh"``), the checkpoint's head if it has
            one and otherwise a new one (``"auto"``), or an ``MLMHead``.
        mlm_chunk_size: Number of masked tokens per chunk of logits; a chunk holds ``mlm_chunk_size * vocabulary``
            numbers. It affects the result only through rounding.
        seed: Seed for the weights of a new head and for the masks. The masks also depend on the batch number and the
            text, but not on the number of processes that share a batch.
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
        Two text columns, (view A, view B), without labels. Any further columns are hard negatives.

    Recommendations:
        Pass :func:`~simlte_st.trainer_callbacks` to the Trainer. These callbacks save the MLM head with each
        checkpoint, which sentence-transformers does not, and log the mean in-batch cosine, alignment and uniformity.

    Relations:
        - ``MultipleNegativesRankingLoss`` is this loss with ``mlm_weight=0``.
        - :class:`~simlte_st.losses.CachedMultipleNegativesRankingMLMLoss` computes the same loss in the memory of a
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

    def compute_terms(self, columns: list[Features], masked: list[Features], labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return two scalars: the contrastive term and the weighted MLM term."""
        shared = self.mlm_input == "shared"
        outputs = base.encode_columns(self.model, masked if shared else columns)
        contrastive = self.compute_loss_from_embeddings(base.split_embeddings(outputs, len(columns)), labels)
        if not shared:
            outputs = base.encode_columns(self.model, masked)
        return contrastive, self.mlm_term(outputs)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Return the contrastive term for each column's embeddings, ``(batch, dim)``, and update :attr:`metrics`."""
        if torch.is_grad_enabled():  # training only; evaluation has its own log
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss
