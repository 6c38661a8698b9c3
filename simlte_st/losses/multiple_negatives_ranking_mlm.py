"""The papers' training loss: in-batch negatives and, beside them, a masked language model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim
from torch import Tensor, nn
from torch.nn import functional

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses.batch_metrics import BatchMetrics
from simlte_st.losses.masking import IGNORE, TokenMasker
from simlte_st.losses.mlm_head import HeadSource, MLMHead, encoder_of, make_mlm_head

_MODEL_PREFIX = "model."


class MultipleNegativesRankingMLMLoss(MultipleNegativesRankingLoss):
    """Contrastive loss with in-batch negatives plus a masked-language-model (MLM) term.

    In plain terms:

    1. The two views of a document should lie closer than the views of different documents of the batch: exactly
       :class:`~sentence_transformers.sentence_transformer.losses.MultipleNegativesRankingLoss`, with all its options.
    2. Meanwhile the encoder should still predict masked words from their context, so that it keeps what it knows
       about language.
    3. The loss is ``contrastive + mlm_weight * mlm``; the Trainer logs the two terms by name.

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
        mlm_head: ``"pretrained"``, ``"fresh"`` or ``"auto"``; see
            :func:`~simlte_st.losses.mlm_head.make_mlm_head`.
        seed: Seed of a fresh head's weights.
        **options: All options of ``MultipleNegativesRankingLoss``: ``gather_across_devices``, ``directions``, ...

    Raises:
        ConfigurationError: A negative weight, a probability outside (0, 1], or an unknown ``mlm_input`` or
            ``mlm_head``.
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
        mlm_input: Literal["separate", "shared"] = "separate",
        mlm_head: HeadSource = "auto",
        similarity_fct: Callable[[Tensor, Tensor], Tensor] = cos_sim,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(model, scale=scale, similarity_fct=similarity_fct, **options)
        if mlm_weight < 0:
            raise ConfigurationError(f"mlm_weight={mlm_weight}: must not be negative.")
        if mlm_input not in ("separate", "shared"):
            raise ConfigurationError(f"mlm_input={mlm_input!r}: use 'separate' or 'shared'.")
        if mlm_head not in ("auto", "pretrained", "fresh"):
            raise ConfigurationError(f"mlm_head={mlm_head!r}: use 'auto', 'pretrained' or 'fresh'.")
        self.mlm_weight = mlm_weight
        self.mlm_probability = mlm_probability
        self.mlm_input = mlm_input
        self.metrics = BatchMetrics()
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if mlm_weight > 0:
            self.masker = TokenMasker(model.tokenizer, mlm_probability)
            self.mlm_head = make_mlm_head(model, mlm_head, seed)
            for parameter in self.mlm_head.parameters():
                parameter.register_post_accumulate_grad_hook(_average_gradient)

    def forward(  # type: ignore[override]  # the stock losses that return several terms have the same signature
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Any
    ) -> dict[str, Tensor] | Tensor:
        """Compute the loss.

        Args:
            sentence_features: One dict of model inputs a column; not changed in ``"shared"`` mode nor by the MLM pass.
            labels: Not used.

        Returns:
            ``{"contrastive": ..., "mlm": ...}`` whose sum is the loss, the MLM term weighted already; at
            ``mlm_weight=0`` the contrastive loss alone, a scalar, as the stock loss returns it.
        """
        columns = list(sentence_features)
        if self.mlm_head is None or self.masker is None:
            loss: Tensor = super().forward(columns, labels)
            return loss
        masked = [self._mask(features, self.masker) for features in columns]
        if self.mlm_input == "shared":
            outputs = [self.model(features) for features, _ in masked]
            contrastive = self.compute_loss_from_embeddings([out["sentence_embedding"] for out in outputs], labels)
        else:
            contrastive = super().forward(columns, labels)
            outputs = [self.model(features) for features, _ in masked]
        mlm = self._mlm_loss(self.mlm_head, outputs, [label for _, label in masked])
        return {"contrastive": contrastive, "mlm": self.mlm_weight * mlm}

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Any) -> Tensor:
        """Compute the contrastive term from embeddings, ``(batch, dim)`` a column; gathers :attr:`metrics` too."""
        if torch.is_grad_enabled():  # the Trainer evaluates with this loss too, and logs that apart
            self.metrics.update(embeddings)
        loss: Tensor = super().compute_loss_from_embeddings(embeddings, labels)
        return loss

    @staticmethod
    def _mask(features: dict[str, Any], masker: TokenMasker) -> tuple[dict[str, Any], Tensor]:
        masked_ids, label = masker(features)
        # A copy, because a model writes its outputs into the dict it is given.
        return {**features, "input_ids": masked_ids}, label

    def _mlm_loss(self, head: MLMHead, outputs: list[dict[str, Any]], labels: list[Tensor]) -> Tensor:
        """Mean cross-entropy over the masked tokens of all columns; logits at those positions only."""
        if "token_embeddings" not in outputs[0]:
            raise ModelError("The model gives no token embeddings, so there is nothing to predict masked words from.")
        hidden = torch.cat(
            [out["token_embeddings"][label != IGNORE] for out, label in zip(outputs, labels, strict=True)]
        )
        targets = torch.cat([label[label != IGNORE] for label in labels])
        logits = head(hidden, encoder_of(self.model).get_input_embeddings().weight)
        # A sum over nothing is 0 with a gradient of 0 everywhere; a mean would be NaN. Keeping the graph also keeps
        # the processes of a distributed run in step.
        return functional.cross_entropy(logits.float(), targets, reduction="sum") / max(1, len(targets))

    def extra_state(self) -> dict[str, Tensor]:
        """Give the parameters of the loss that are not the model's: the MLM head. Empty at ``mlm_weight=0``."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith(_MODEL_PREFIX)}

    def load_extra_state(self, state: dict[str, Tensor]) -> None:
        """Restore what :meth:`extra_state` gave, in place.

        Raises:
            ConfigurationError: The state belongs to a loss of other settings.
        """
        own = self.extra_state()
        if set(own) != set(state):
            raise ConfigurationError(
                f"The saved loss has the parameters {sorted(state)}, this one {sorted(own)}: "
                "resume with the MLM settings that the run was started with."
            )
        self.load_state_dict({**self.state_dict(), **state})

    def get_config_dict(self) -> dict[str, Any]:
        """Give the settings, for the model card."""
        return {
            **super().get_config_dict(),
            "mlm_weight": self.mlm_weight,
            "mlm_probability": self.mlm_probability,
            "mlm_input": self.mlm_input,
            "mlm_head": None if self.mlm_head is None else "pretrained" if self.mlm_head.pretrained else "fresh",
        }

    @property
    def citation(self) -> str:
        """BibTeX of what this loss implements."""
        return """
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


def _average_gradient(parameter: nn.Parameter) -> None:
    """Average a head's gradient over the processes of a distributed run: the head is outside the DDP wrapper."""
    if torch.distributed.is_available() and torch.distributed.is_initialized() and parameter.grad is not None:
        world = torch.distributed.get_world_size()
        if world > 1:
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad.div_(world)
