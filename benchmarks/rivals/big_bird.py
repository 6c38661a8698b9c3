"""transformers' BigBird, kept from changing as it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sentence_transformers.base.modules import Transformer

SPARSE, FULL = "block_sparse", "original_full"


def steady_big_bird(transformer: Transformer) -> None:
    """Let a BigBird read each batch as its length asks for, whatever it has read before.

    At its first batch of few tokens the stock model goes over to full attention, for all batches to come; and its
    sparse attention reseeds numpy's global generator at every pass (in newer versions of transformers only while it is
    trained).

    Args:
        transformer: The module around a stock BigBird. One that is set to full attention stays as it is.
    """
    encoder: Any = transformer.auto_model
    if encoder.attention_type != SPARSE:
        return
    config = encoder.config
    fewest = (5 + 2 * config.num_random_blocks) * config.block_size  # tokens that sparse attention needs more than
    states: list[Any] = []

    # sentence-transformers may call the encoder's forward itself, past its hooks: they are on the module around it.
    def before(module: Any, inputs: tuple[Any, ...]) -> None:
        states.append(np.random.get_state())
        with torch.random.fork_rng():  # the layers that it makes are drawn at random, and then get the old weights
            encoder.set_attention_type(SPARSE if inputs[0]["input_ids"].shape[1] > fewest else FULL)

    def after(module: Any, inputs: Any, result: Any) -> None:
        np.random.set_state(states.pop())

    transformer.register_forward_pre_hook(before)
    transformer.register_forward_hook(after, always_call=True)
