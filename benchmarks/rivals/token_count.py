"""Counting the tokens that a training run puts through its encoders, whatever objective trains them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel


class TokenCount:
    """Tokens that models in training mode are given, special tokens counted, padding not.

    A token that passes twice counts twice: both views, a pass over masked copies, the passes of gradient caching.
    """

    def __init__(self) -> None:
        self._encoder: Tensor | int = 0
        self._decoder: Tensor | int = 0
        self._words: dict[nn.Module, int] = {}  # word embeddings of decoders, and what pads there

    @property
    def encoder(self) -> int:
        """Tokens that encoders were given."""
        return int(self._encoder)

    @property
    def decoder(self) -> int:
        """Tokens that decoders were given."""
        return int(self._decoder)

    def _see(self, module: nn.Module, inputs: Any) -> None:
        # Sums stay where they are until somebody asks: a number would make the accelerator wait at each step.
        if isinstance(module, Transformer):
            if module.training:
                features = inputs[0]
                mask = features.get("attention_mask")  # flattened inputs have none, and no padding either
                self._encoder += features["input_ids"].numel() if mask is None else mask.sum()
        elif isinstance(module, PreTrainedModel):
            # Its inputs have names, which this hook is not told; those of its word embeddings do not.
            if getattr(module.config, "is_decoder", False):
                padding = getattr(module.config, "pad_token_id", None)
                self._words[module.get_input_embeddings()] = -1 if padding is None else padding
        elif module.training and module in self._words:
            self._decoder += torch.sum(inputs[0] != self._words[module])


@contextmanager
def count_tokens() -> Iterator[TokenCount]:
    """Count the tokens of all SentenceTransformers, and decoders, that are trained here while the block runs."""
    count = TokenCount()
    handle = register_module_forward_pre_hook(count._see)
    try:
        yield count
    finally:
        handle.remove()
