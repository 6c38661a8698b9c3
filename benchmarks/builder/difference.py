"""Takes the difference between a model and its base, as low-rank factors, which is all that the package carries."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor

from simlte_st.errors import ModelError
from simlte_st.models.shipped import linear_weights

_LOST = 1e-3
"""Share of a change, by its norm, that its factors may lack; rounding them to float16 takes a third of that."""


def take_difference(base_model: SentenceTransformer, model: SentenceTransformer, rank: int) -> dict[str, Tensor]:
    """Find the low-rank factors of what training added to the linear layers of an encoder."""
    before, after = base_model.state_dict(), model.state_dict(keep_vars=True)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after or before[name].shape != after[name].shape:
            raise ModelError(f"The model is not the base with other weights: they differ in what {name} is.")
    linear = {id(weight): name for name, weight in linear_weights(model).items()}
    factors = {}
    for name, weight in after.items():
        old = before[name].detach().float().cpu()
        change = weight.detach().float().cpu() - old
        if not change.any():
            continue
        if id(weight) not in linear:
            raise ModelError(f"{name} changed: a difference holds only weights of the encoder's linear layers.")
        if not torch.isfinite(change).all():
            raise ModelError(f"{name} holds numbers that are not finite.")
        left, sizes, right = torch.linalg.svd(change, full_matrices=False)
        scale = sizes[:rank].sqrt()
        left, right = (left[:, :rank] * scale).half(), (scale[:, None] * right[:rank]).half()
        lost = (left.float() @ right.float() - change).norm()
        if lost > _LOST * change.norm() + torch.finfo(torch.float32).eps * old.norm():  # the latter: adding rounds
            raise ModelError(
                f"{name} changed by more than float16 factors of rank {rank} hold: {lost / change.norm():.1%} of the "
                "change would be lost. Train with LoRA of this rank at most."
            )
        factors[f"{linear[id(weight)]}.left"] = left.contiguous()
        factors[f"{linear[id(weight)]}.right"] = right.contiguous()
    return factors


def write_difference(path: str | os.PathLike[str], factors: Mapping[str, Tensor], metadata: Mapping[str, Any]) -> None:
    """Write a difference; the same one gives the same bytes."""
    account = json.dumps(dict(metadata), sort_keys=True)  # one value: of several, the library shuffles the order
    save_file(dict(factors), path, metadata={"simlte_st": account})
