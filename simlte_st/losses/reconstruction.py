"""The reconstruction loss: each token is told from its embedding, so that fine-tuning forgets less (TA-SBERT)."""

from __future__ import annotations

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.losses.gradcache import CachedLossMixin
from sentence_transformers.util.tensor import repad_flattened_features
from torch import Tensor, nn

from simlte_st.compat import encoder_of
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.losses.chunked_cross_entropy import HeadPrecision, chunked_cross_entropy
from simlte_st.losses.columns import row_count
from simlte_st.losses.loss_state import LossStateMixin


class ReconstructionLoss(HeadPrecision, LossStateMixin):
    """Any loss of sentence-transformers, and beside it the prediction of all tokens from their embeddings.

    ``r = softmax(E Wr')`` (TA-SBERT, Eq. 5), cross-entropy with the ids of all real tokens, those of special tokens
    too: nothing is masked. The mean over all tokens, times the number of columns of texts (Eq. 7 adds the columns up),
    times ``weight``, is added to the other loss. The token embeddings are those that the other loss computes first: no
    second pass, and a later one over masked copies is left alone.

    The head ``Wr`` begins as PyTorch's linear layers do. It is no part of the model; ``LossStateCallback``, one of
    :func:`~simlte_st.trainer_callbacks`, keeps it with checkpoints, and lets it compute in bfloat16 where the Trainer
    does: in 32 bits it takes longer than a small encoder.

    Args:
        loss: The other loss, such as ``SoftmaxLoss`` (Eq. 6), ``MultipleNegativesRankingLoss`` or
            :class:`~simlte_st.MultipleNegativesRankingMLMLoss`. It runs the model on each column of texts.
        weight: Of the reconstruction; the paper's best is 0.017.
        chunk_size: Tokens whose logits are held at once.
        seed: Decides the head's initial weights; the global random numbers are not touched.

    Inputs:
        Those of the other loss.

    Returns:
        A dictionary: the terms of the other loss, or ``sentence``, and ``reconstruction``, weighted. The Trainer sums
        and logs them.

    Raises:
        ConfigurationError: ``weight`` is negative, or the other loss has gradient caching, whose passes keep no graph.
        ModelError: The model has no encoder with word embeddings.
    """

    def __init__(self, loss: nn.Module, weight: float = 0.017, chunk_size: int = 1024, seed: int = 0) -> None:
        super().__init__()
        if weight < 0:
            raise ConfigurationError(f"weight={weight}: must not be negative.")
        if isinstance(loss, CachedLossMixin):
            raise ConfigurationError(
                f"{type(loss).__name__} computes embeddings without their graph first: use the loss without gradient "
                "caching, and a smaller batch."
            )
        if getattr(loss, "mlm_input", None) == "shared" and getattr(loss, "mlm_weight", 0) > 0:
            raise ConfigurationError(
                "mlm_input='shared': there the model reads masked texts only, whose tokens cannot be told. Use "
                "mlm_input='separate'."
            )
        model = getattr(loss, "model", None)
        if not isinstance(model, SentenceTransformer):
            raise ConfigurationError(f"{type(loss).__name__} has no SentenceTransformer as .model.")
        self.loss = loss
        self.model = model
        self.weight = weight
        self.chunk_size = chunk_size
        encoder = encoder_of(model)
        words = encoder.get_input_embeddings()
        hidden = getattr(encoder.config, "hidden_size", None)
        if not isinstance(words, nn.Embedding) or hidden is None:
            raise ModelError(f"{type(encoder).__name__} has no word embeddings to be told from hidden states.")
        head = nn.utils.skip_init(nn.Linear, hidden, words.num_embeddings, bias=False)
        bound = hidden**-0.5  # nn.Linear's own
        nn.init.uniform_(head.weight, -bound, bound, generator=torch.Generator().manual_seed(seed))
        self.head = head.to(model.device, torch.float32)

    def forward(self, sentence_features: Any, labels: Any = None) -> dict[str, Tensor]:
        """Compute all terms."""
        columns = list(sentence_features)
        wanted = sum(row_count(features) for features in columns)
        seen: list[dict[str, Any]] = []

        def see(module: nn.Module, inputs: Any, output: dict[str, Any]) -> None:
            if sum(row_count(features) for features in seen) < wanted:
                seen.append(dict(output))

        hook = self.model.register_forward_hook(see)
        try:
            found = self.loss(columns, labels)
        finally:
            hook.remove()
        if not seen:
            raise ConfigurationError(f"{type(self.loss).__name__} did not run the model: there are no embeddings.")
        terms = dict(found) if isinstance(found, dict) else {"sentence": found}
        terms["reconstruction"] = self.weight * len(columns) * self._mean(seen)
        return terms

    def _mean(self, outputs: list[dict[str, Any]]) -> Tensor:
        """Cross-entropy of all real tokens of some passes, their mean; 0 where there are none."""
        padded = [repad_flattened_features(out) if "cu_seq_lens_q" in out else out for out in outputs]
        real = [out["attention_mask"].bool() for out in padded]
        hidden = torch.cat([out["token_embeddings"][mask] for out, mask in zip(padded, real, strict=True)])
        targets = torch.cat([out["input_ids"][mask] for out, mask in zip(padded, real, strict=True)])
        with self.precision(hidden.device):
            total = chunked_cross_entropy(hidden.float(), self.head.weight, None, targets, self.chunk_size)
        return total / max(1, len(targets))

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card."""
        return {"loss": type(self.loss).__name__, "weight": self.weight}

    @property
    def citation(self) -> str:
        """The paper, as BibTeX."""
        return """
@article{seo2022tasbert,
    title = {{TA-SBERT}: Token Attention Sentence-BERT for Improving Sentence Representation},
    author = {Seo, Jaejin and Lee, Sangwon and Liu, Ling and Choi, Wonik},
    journal = {IEEE Access},
    year = {2022},
}
"""
