"""BERT's masking: which tokens the masked language model has to predict, and what replaces them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from simlte_st.config import check_number
from simlte_st.errors import ModelError

IGNORE = -100
"""Label of a token that is not predicted; ``cross_entropy`` ignores it."""


class TokenMasker:
    """Masks tokens as BERT does (Devlin et al., 2019, section 3.1).

    Each ordinary token is chosen with probability ``probability``; 80% of the chosen become the mask token, 10% a token
    drawn from the whole vocabulary, 10% stay. Special tokens, padding and prompts are never chosen.

    The draw for a row depends only on the seed, the number of the draw and the row's tokens, not on the other rows or
    the padding, so that any number of processes that share a batch mask it alike.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, probability: float = 0.15, seed: int = 0) -> None:
        check_number("mlm_probability", probability, above=0, most=1)
        if getattr(tokenizer, "mask_token_id", None) is None:
            raise ModelError(
                f"{type(tokenizer).__name__} has no mask token, which a masked language model needs. Use mlm_weight=0."
            )
        self.probability = probability
        self.seed = seed
        self.mask_id = int(tokenizer.mask_token_id)
        self.special_ids = sorted(set(tokenizer.all_special_ids))
        self.vocabulary = len(tokenizer)

    def __call__(self, features: dict[str, Any], draw: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Return the masked ids and the labels of a batch, of the shape of ``input_ids``."""
        ids = features["input_ids"]
        real = self._real(features)
        drawn = [self._draw_row(row, draw) for row in self._rows(features)]
        chance = torch.ones(ids.shape, device=ids.device)
        chance[real] = torch.cat([each for each, _ in drawn]).to(ids.device)
        random_ids = torch.zeros_like(ids)
        random_ids[real] = torch.cat([each for _, each in drawn]).to(ids.device)
        chosen = (chance < self.probability) & self.maskable(features)
        labels = torch.where(chosen, ids, IGNORE)
        # The same uniform number decides what becomes of a chosen token: its position within [0, probability).
        share = chance / self.probability
        masked = torch.where(chosen & (share < 0.8), self.mask_id, ids)
        masked = torch.where(chosen & (share >= 0.9), random_ids, masked)
        return masked, labels

    def _draw_row(self, row: NDArray[np.int64], draw: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Draw a number from 0 to 1 and a token for each token of a row, ``(tokens,)``."""
        key = hashlib.blake2b(repr((self.seed, *draw)).encode() + b"\x00" + row.tobytes(), digest_size=16).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(key[8:], "little"))
        return (
            torch.rand(len(row), generator=generator),
            torch.randint(self.vocabulary, (len(row),), generator=generator),
        )

    def _rows(self, features: dict[str, Any]) -> list[NDArray[np.int64]]:
        """Return the tokens of each row, without padding."""
        ids, mask = features["input_ids"], features.get("attention_mask")
        lengths = features["cu_seq_lens_q"].diff() if mask is None else mask.sum(dim=1)
        flat = ids[self._real(features)].to("cpu", torch.int64).numpy()
        return np.split(flat, np.cumsum(lengths.cpu().numpy())[:-1])

    def _real(self, features: dict[str, Any]) -> Tensor:
        """Return which are tokens, not padding: bool, of the shape of ``input_ids``."""
        mask = features.get("attention_mask")
        return torch.ones_like(features["input_ids"], dtype=torch.bool) if mask is None else mask.bool()

    def maskable(self, features: dict[str, Any]) -> Tensor:
        """Return which tokens may be chosen: bool, of the shape of ``input_ids``."""
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
