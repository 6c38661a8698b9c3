"""transformers' BigBird, kept from changing as it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

SPARSE, FULL = "block_sparse", "original_full"


def steady_big_bird(encoder: PreTrainedModel) -> None:
    """Let a BigBird read each batch as its length asks for, whatever it has read before.

    At its first batch of few tokens the stock model goes over to full attention, for all batches to come; and its
    sparse attention reseeds numpy's global generator at every pass.

    Args:
        encoder: A stock BigBird. One that is set to full attention stays as it is.
    """
    if getattr(encoder, "attention_type", None) != SPARSE:
        return
    config: Any = encoder.config
    fewest = (5 + 2 * config.num_random_blocks) * config.block_size  # tokens that sparse attention needs more than
    states: list[Any] = []

    def before(module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        states.append(np.random.get_state())
        ids = arguments[0] if arguments else keywords["input_ids"]
        with torch.random.fork_rng():  # the layers that it makes are drawn at random, and then get the old weights
            module.set_attention_type(SPARSE if ids.shape[1] > fewest else FULL)  # type: ignore[operator]

    def after(module: nn.Module, arguments: Any, result: Any) -> None:
        np.random.set_state(states.pop())

    encoder.register_forward_pre_hook(before, with_kwargs=True)
    encoder.register_forward_hook(after, always_call=True)
