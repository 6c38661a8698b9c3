"""What training added to a model's linear layers, as low-rank factors in a small file."""

from __future__ import annotations

import os

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from simlte_st.compat import encoder_of
from simlte_st.errors import ModelError

DIFFERENCE_FILE = "difference.safetensors"
"""What was added to the weights of the encoder's linear layers: for each that changed, ``NAME.left``, ``(out, rank)``,
and ``NAME.right``, ``(rank, in)``, float16. ``NAME`` is that of the weight in the encoder."""

AGAIN = "Install simlte-st again."
"""What to do where a file that comes with this package is missing or damaged."""


def add_difference(model: SentenceTransformer, path: str | os.PathLike[str]) -> None:
    """Add a difference to the model that it was taken from, in place."""
    try:
        factors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"The difference {os.fspath(path)} cannot be read: {error}. {AGAIN}") from None
    weights = linear_weights(model)
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


def linear_weights(model: SentenceTransformer) -> dict[str, Tensor]:
    """Name the weights of an encoder's linear layers; the output layer of a masked language model is none of them."""
    encoder = encoder_of(model)
    head = encoder.get_output_embeddings()
    layers = {name: layer for name, layer in encoder.named_modules() if isinstance(layer, nn.Linear)}
    return {f"{name}.weight": layer.weight for name, layer in layers.items() if layer is not head}
