"""What training added to a model's linear layers, as low-rank factors in a small file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.compat import encoder_of
from simlte_st.errors import ModelError
from simlte_st.files import atomic_path

DIFFERENCE_FILE = "difference.safetensors"
"""What was added to the weights of the encoder's linear layers: for each that changed, ``NAME.left``, ``(out, rank)``,
and ``NAME.right``, ``(rank, in)``, float16. ``NAME`` is that of the weight in the encoder."""

AGAIN = "Install simlte-st again."
"""What to do where a file that comes with this package is missing or damaged."""

_LOST = 1e-3
"""Share of a change, by its norm, that its factors may lack; rounding them to float16 takes a third of that."""


def take_difference(base_model: SentenceTransformer, model: SentenceTransformer, rank: int) -> dict[str, Tensor]:
    """Find the low-rank factors of what training added to the linear layers of an encoder.

    Args:
        base_model: The model that training began with.
        model: What it became, with its adapters merged.
        rank: Rank of the adapters.

    Returns:
        The factors, as :data:`DIFFERENCE_FILE` holds them.

    Raises:
        ModelError: The models differ by anything else, or by more than factors of this rank can hold.
    """
    before, after = base_model.state_dict(), model.state_dict(keep_vars=True)
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after or before[name].shape != after[name].shape:
            raise ModelError(f"The model is not the base with other weights: they differ in what {name} is.")
    linear = {id(weight): name for name, weight in _linear_weights(model).items()}
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
    """Write a difference; the same one gives the same bytes.

    Args:
        path: The file.
        factors: Of :func:`take_difference`.
        metadata: JSON values to keep in the file's header, such as how it was made.
    """
    told = json.dumps(dict(metadata), sort_keys=True)  # one value: of several, the library shuffles the order
    with atomic_path(path) as temporary:
        save_file(dict(factors), temporary, metadata={"simlte_st": told})


def add_difference(model: SentenceTransformer, path: str | os.PathLike[str]) -> None:
    """Add a difference to the model that it was taken from, in place.

    Args:
        model: Of :func:`untrained`.
        path: The file.

    Raises:
        ModelError: The file cannot be read, or belongs to another model; nothing was added.
    """
    try:
        factors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The difference {os.fspath(path)} cannot be read: {error}. {AGAIN}") from None
    weights = _linear_weights(model)
    changes = {}
    for name in sorted({key.rpartition(".")[0] for key in factors}):
        left, right = (factors.get(f"{name}.{side}", torch.empty(0)) for side in ("left", "right"))
        fits = name in weights and left.shape[-1:] == right.shape[:1]
        if not fits or (*left.shape[:-1], *right.shape[1:]) != tuple(weights[name].shape):
            raise ModelError(f"The difference {os.fspath(path)} does not fit {name} of the model: it is another's.")
        changes[name] = left.float() @ right.float()
    with torch.no_grad():
        for name, change in changes.items():
            weights[name].add_(change.to(weights[name]))


def _linear_weights(model: SentenceTransformer) -> dict[str, Tensor]:
    """Name the weights of an encoder's linear layers; the output layer of a masked language model is none of them."""
    encoder = encoder_of(model)
    head = encoder.get_output_embeddings()
    layers = {name: layer for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear)}
    return {f"{name}.weight": layer.weight for name, layer in layers.items() if layer is not head}
