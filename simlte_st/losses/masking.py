"""BERT's masking: which tokens the masked language model has to predict, and what stands in their place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from simlte_st.errors import ConfigurationError, ModelError

IGNORE = -100
"""Label of a token that is not predicted: what ``cross_entropy`` ignores."""


class TokenMasker:
    """Masks tokens as BERT does (Devlin et al., 2019, section 3.1).

    Each ordinary token is chosen with probability ``probability``; of the chosen, 80% become the mask token, 10% a
    token drawn from the whole vocabulary, 10% stay. Special tokens, padding and prompts are never chosen.

    Args:
        tokenizer: The model's tokenizer.
        probability: Share of tokens to choose.

    Raises:
        ConfigurationError: ``probability`` is not between 0 and 1.
        ModelError: The tokenizer has no mask token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, probability: float = 0.15) -> None:
        if not 0 < probability <= 1:
            raise ConfigurationError(f"mlm_probability={probability}: must lie between 0 (exclusive) and 1.")
        if getattr(tokenizer, "mask_token_id", None) is None:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token, so this model cannot train a masked language model. "
                "Use mlm_weight=0."
            )
        self.probability = probability
        self.mask_id = int(tokenizer.mask_token_id)
        self.special_ids = sorted(set(tokenizer.all_special_ids))
        self.vocabulary = len(tokenizer)

    def __call__(self, features: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Mask a batch. Draws from torch's global generator, which checkpoints save and restore.

        Args:
            features: What the collator gave: ``input_ids`` of shape ``(batch, length)`` with ``attention_mask``, or
                flattened ``(1, total)`` with ``cu_seq_lens_q``; ``prompt_length`` where there is a prompt.

        Returns:
            ``(masked_ids, labels)``, both int64 and of the shape of ``input_ids``; ``labels`` is :data:`IGNORE` where
            nothing is to be predicted. The features are not changed.
        """
        ids = features["input_ids"]
        chance = torch.rand(ids.shape, device=ids.device)
        chosen = (chance < self.probability) & self.maskable(features)
        labels = torch.where(chosen, ids, IGNORE)
        # The same uniform number decides what becomes of a chosen token: its position within [0, probability).
        share = chance / self.probability
        masked = torch.where(chosen & (share < 0.8), self.mask_id, ids)
        random_ids = torch.randint(self.vocabulary, ids.shape, device=ids.device)
        masked = torch.where(chosen & (share >= 0.9), random_ids, masked)
        return masked, labels

    def maskable(self, features: dict[str, Any]) -> Tensor:
        """Tell which tokens may be chosen: a bool tensor of the shape of ``input_ids``."""
        ids = features["input_ids"]
        special = torch.tensor(self.special_ids, device=ids.device, dtype=ids.dtype)
        allowed = ~torch.isin(ids, special)
        mask = features.get("attention_mask")
        if mask is not None:
            allowed &= mask.bool()
        prompt = features.get("prompt_length")
        if isinstance(prompt, Tensor):  # an iterable dataset's columns: the same number for each row
            prompt = int(prompt.reshape(-1)[0])
        if prompt:
            if mask is not None:
                # Counted from the first real token, which is not column 0 where the padding is on the left.
                position = mask.long().cumsum(dim=1) - 1
            else:
                starts = features["cu_seq_lens_q"].long()
                flat = torch.arange(ids.shape[1], device=ids.device)
                position = (flat - starts[torch.searchsorted(starts, flat, right=True) - 1]).unsqueeze(0)
            allowed &= position >= int(prompt)
        return allowed
