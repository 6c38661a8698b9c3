"""The masked-language-model term that the plain and the cached loss have in common."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal

import torch
import torch.distributed
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses.batch_metrics import BatchMetrics
from simlte_st.losses.columns import LABELS, Features, row_count, take_rows
from simlte_st.losses.masking import IGNORE, TokenMasker
from simlte_st.losses.mlm_head import HeadSource, MLMHead, encoder_of, make_mlm_head

MLMInput = Literal["separate", "shared"]


class MLMTerm(nn.Module):
    """What a contrastive loss needs for an MLM term beside it; to be inherited from before the stock loss.

    Attributes:
        mlm_head: The head; None at ``mlm_weight=0``.
        mlm_step: Training batches that the loss has seen, where ``mlm_every`` counts them.
        mlm_bf16: Whether the head computes in bfloat16 although no autocast is on: the Trainer's ends with the model.
            :class:`~simlte_st.training.LossStateCallback` sets it. Softmax and sums are in 32 bits all the same.
        metrics: What :class:`~simlte_st.training.LossMetricsCallback` logs.
    """

    model: SentenceTransformer

    def _set_up_mlm(
        self,
        model: SentenceTransformer,
        *,
        weight: float,
        probability: float,
        mlm_input: MLMInput,
        head: HeadSource | MLMHead,
        seed: int,
        every: int,
        share: float,
        chunk_size: int,
    ) -> None:
        if weight < 0:
            raise ConfigurationError(f"mlm_weight={weight}: must not be negative.")
        if mlm_input not in ("separate", "shared"):
            raise ConfigurationError(f"mlm_input={mlm_input!r}: use 'separate' or 'shared'.")
        if not isinstance(head, MLMHead) and head not in ("auto", "pretrained", "fresh"):
            raise ConfigurationError(f"mlm_head={head!r}: use 'auto', 'pretrained', 'fresh' or an MLMHead.")
        for name, value in (("mlm_every", every), ("mlm_chunk_size", chunk_size)):
            if not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name}={value!r}: must be a whole number from 1.")
        if not 0 < share <= 1:
            raise ConfigurationError(f"mlm_share={share}: must lie between 0 (exclusive) and 1.")
        if share < 1 and mlm_input == "shared":
            raise ConfigurationError(
                f"mlm_share={share} with mlm_input='shared': there the contrastive term needs the pass over all rows, "
                "so that nothing would be saved. Use mlm_input='separate'."
            )
        self.mlm_weight = weight
        self.mlm_probability = probability
        self.mlm_input = mlm_input
        self.mlm_every = every
        self.mlm_share = share
        self.mlm_chunk_size = chunk_size
        self.mlm_step = 0
        self.mlm_bf16 = False
        self.metrics = BatchMetrics()
        self.mlm_head: MLMHead | None = None
        self.masker: TokenMasker | None = None
        if weight > 0:
            self.masker = TokenMasker(model.tokenizer, probability)
            self.mlm_head = head.to(model.device) if isinstance(head, MLMHead) else make_mlm_head(model, head, seed)

    def _next_mlm_weight(self) -> float:
        """Give the weight of the MLM term in this batch, 0 where it is left out; counts training batches."""
        if self.mlm_every == 1 or not torch.is_grad_enabled():
            return self.mlm_weight
        due = self.mlm_step % self.mlm_every == 0
        self.mlm_step += 1
        return self.mlm_weight * self.mlm_every if due else 0.0

    def _mask(self, columns: list[Features]) -> list[Features]:
        """Draw rows and masks: masked copies of columns, with labels. Draws from torch's global generator."""
        assert self.masker is not None
        masked = []
        for features in columns:
            if self.mlm_share < 1:
                rows = row_count(features)
                taken = torch.randperm(rows)[: max(1, round(self.mlm_share * rows))].sort().values
                features = take_rows(features, taken)
            ids, labels = self.masker(features)
            masked.append({**features, "input_ids": ids, LABELS: labels})
        return masked

    def _summed_mlm_loss(self, outputs: list[tuple[Features, Tensor | None]]) -> tuple[Tensor, int]:
        """Cross-entropy of the masked tokens of some passes, and their number; logits at those positions only."""
        assert self.mlm_head is not None
        if "token_embeddings" not in outputs[0][0]:
            raise ModelError("The model gives no token embeddings, so there is nothing to predict masked words from.")
        pairs = [(out["token_embeddings"], labels) for out, labels in outputs if labels is not None]
        hidden = torch.cat([tokens[labels != IGNORE] for tokens, labels in pairs])
        targets = torch.cat([labels[labels != IGNORE] for _, labels in pairs])
        words = encoder_of(self.model).get_input_embeddings().weight
        assert isinstance(words, Tensor)
        precision = torch.autocast(hidden.device.type, torch.bfloat16) if self.mlm_bf16 else nullcontext()
        with precision:
            total = self.mlm_head.summed_loss(hidden, words, targets, self.mlm_chunk_size)
        return total, len(targets)

    def extra_state(self) -> dict[str, Tensor]:
        """Give what the loss holds beside the model: the MLM head, and with ``mlm_every`` above 1 the batch count.

        Empty at ``mlm_weight=0``.
        """
        if self.mlm_head is None:
            return {}
        state = {f"mlm_head.{name}": value for name, value in self.mlm_head.state_dict().items()}
        if self.mlm_every > 1:
            state["mlm_step"] = torch.tensor(self.mlm_step)
        return state

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
        if self.mlm_head is not None:
            head = {name.removeprefix("mlm_head."): value for name, value in state.items() if name != "mlm_step"}
            self.mlm_head.load_state_dict(head)
        if "mlm_step" in state:
            self.mlm_step = int(state["mlm_step"])

    def _mlm_config(self) -> dict[str, Any]:
        """Give the settings of the term, for the model card."""
        return {
            "mlm_weight": self.mlm_weight,
            "mlm_probability": self.mlm_probability,
            "mlm_input": self.mlm_input,
            "mlm_head": None if self.mlm_head is None else "pretrained" if self.mlm_head.pretrained else "fresh",
            "mlm_every": self.mlm_every,
            "mlm_share": self.mlm_share,
        }


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
"""BibTeX of the loss and of its separate MLM pass."""


def average_gradient(parameter: nn.Parameter) -> None:
    """Average a head's gradient over the processes of a distributed run: the head is outside the DDP wrapper."""
    if torch.distributed.is_available() and torch.distributed.is_initialized() and parameter.grad is not None:
        world = torch.distributed.get_world_size()
        if world > 1:
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad.div_(world)
