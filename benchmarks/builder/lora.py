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

    All linear layers get adapters, because attention alone learns less, and they are scaled by 2 (Biderman et al.,
    2024); but neither the pooler, which sentence-transformers does not use, nor the output layer of a masked language
    model. The adapters begin at 0: the model begins as it was.
    """
    from peft import LoraConfig, LoraModel  # here: the tables are written anew where PEFT is not installed

    layers = [name.removesuffix(".weight") for name in linear_weights(model) if "pooler" not in name.split(".")]
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=layers)
    with torch.random.fork_rng(devices=[]):  # PEFT draws the weights on the CPU
        torch.default_generator.manual_seed(seed)
        return LoraModel(model.transformers_model, config, "default")
