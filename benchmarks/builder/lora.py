"""Low-rank adaptation (LoRA: Hu et al., 2022) through PEFT, merged into the weights at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from sentence_transformers import SentenceTransformer

from simlte_st.models.shipped import linear_weights

if TYPE_CHECKING:
    from peft import LoraModel


def add_lora(model: SentenceTransformer, rank: int, *, seed: int = 0) -> LoraModel:
    """Freeze an encoder and add trainable low-rank matrices to its linear layers, in place.

    Adapters, scaled by 2, go on all linear layers: attention-only adapters learn less (Biderman et al., 2024).
    Exceptions are the pooler, which sentence-transformers does not use, and the output layer of a masked language
    model. Adapters start at 0, so at first they do not change the model.
    """
    from peft import LoraConfig, LoraModel  # here, so that the pages can be rebuilt without PEFT

    layers = [name.removesuffix(".weight") for name in linear_weights(model) if "pooler" not in name.split(".")]
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=layers)
    with torch.random.fork_rng(devices=[]):  # PEFT draws the weights on the CPU
        torch.default_generator.manual_seed(seed)
        return LoraModel(model.transformers_model, config, "default")
