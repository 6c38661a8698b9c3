"""Counting the tokens that a training run puts through its encoders, whatever objective trains them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from transformers import PreTrainedModel


class TokenCount:
    """Tokens looked up in word embeddings of models that are in training mode, padding not counted.

    A token that passes twice counts twice: both views, a pass over masked copies, the passes of gradient caching.
    """

    def __init__(self) -> None:
        self._embeddings: dict[nn.Module, tuple[int | None, str]] = {}
        self._counts: dict[str, Tensor | int] = {"encoder": 0, "decoder": 0}

    @property
    def encoder(self) -> int:
        """Tokens that encoders read."""
        return int(self._counts["encoder"])

    @property
    def decoder(self) -> int:
        """Tokens that decoders read."""
        return int(self._counts["decoder"])

    def _see(self, module: nn.Module, inputs: Any) -> None:
        if isinstance(module, PreTrainedModel):
            try:
                words = module.get_input_embeddings()
            except NotImplementedError:  # a model around another one, which will be seen too
                return
            role = "decoder" if getattr(module.config, "is_decoder", False) else "encoder"
            self._embeddings[words] = (getattr(module.config, "pad_token_id", None), role)
        elif module.training and module in self._embeddings:
            padding, role = self._embeddings[module]
            with torch.no_grad():
                # Stays where it is until somebody asks: a number would make the accelerator wait at each step.
                self._counts[role] += (inputs[0] != (-1 if padding is None else padding)).sum()


@contextmanager
def count_tokens() -> Iterator[TokenCount]:
    """Count the tokens of all models of transformers that are trained in this process while the block runs."""
    count = TokenCount()
    handle = register_module_forward_pre_hook(count._see)
    try:
        yield count
    finally:
        handle.remove()
