"""Padding, on which the vector of a text must not depend: it is there for longer neighbours in a batch.

Most encoders ignore it. Some mix it into the last tokens of a text (convolutions, Fourier transforms, landmarks), share
something among all texts of a batch (experts of limited capacity), or read short batches in another way than long ones.
Their texts are encoded beside texts of the same length alone.
"""

from __future__ import annotations

import logging
from typing import Any
from weakref import WeakKeyDictionary

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

logger = logging.getLogger(__name__)

PADDING = 64
"""Tokens of padding that a text is given to see whether its vector changes; a pass on a CPU has no more."""

_DIFFERENCES = {torch.float32: 1e-3, torch.bfloat16: 0.05, torch.float16: 0.01}
"""Differences from which a vector counts as another one, in its lengths. Rounding makes less than a tenth of them."""

_FEELING: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def right_padded(features: dict[str, Any]) -> dict[str, Any]:
    """Return a batch with its padding on the right, where the tokenizers of most decoders put it on the left.

    Texts keep what they are given by themselves: rotary positions are relative, and others are counted from the first
    column. Only padding behind the texts can be left out.
    """
    mask = features.get("attention_mask")
    if not isinstance(mask, Tensor) or mask.dim() != 2 or not (first := (mask > 0).int().argmax(1)).any():
        return features
    rows, width = torch.arange(len(mask), device=mask.device)[:, None], mask.shape[1]
    columns = (torch.arange(width, device=mask.device) + first[:, None]) % width
    return {
        name: value[rows, columns] if isinstance(value, Tensor) and value.shape[:2] == mask.shape else value
        for name, value in features.items()
    }


def attend_fully(model: SentenceTransformer) -> None:
    """Let a BigBird attend to whole texts.

    Otherwise it does so for good after the first short batch, gives a text other vectors beside longer ones, and seeds
    numpy's global generator in every pass. Of 1,024 tokens a pass takes as long, of 4,096 twice as long (one thread).
    """
    encoder: Any = model.transformers_model
    if getattr(encoder, "attention_type", None) != "block_sparse":
        return
    encoder.set_attention_type("original_full")
    encoder.config.attention_type = "original_full"  # what is saved
    logger.warning(
        "BigBird's sparse attention ends with the first short batch, and gives a text other vectors beside longer "
        "ones. Here each token attends to all others, which takes memory with the square of the length."
    )


def take(features: dict[str, Any], rows: Tensor, width: int) -> dict[str, Any]:
    """Return rows of a padded batch, without the columns behind ``width``."""
    shape = features["attention_mask"].shape
    taken = dict(features)
    for name, value in features.items():
        if isinstance(value, Tensor) and value.shape[:1] == shape[:1]:
            taken[name] = value[rows, :width] if value.shape[:2] == shape else value[rows]
    return taken


def _embeddings(model: SentenceTransformer, features: dict[str, Any]) -> Tensor:
    *others, last = model
    for module in others:
        features = module(features)
    found: Tensor = last.forward(features)["sentence_embedding"]  # not by a call, whose hooks count texts
    return found


def feels_padding(model: SentenceTransformer, features: dict[str, Any], lengths: Tensor) -> bool:
    """Return whether the vector of a text changes beside a longer one; a warning says so.

    It is tried once for a model, with the shortest text of the first batch that has one longer by 8 tokens or more.
    """
    if (known := _FEELING.get(model[0])) is not None:
        return known
    filled = features["attention_mask"].any(1).to(lengths.device)  # a text may have no tokens
    short, long = int(lengths.where(filled, lengths.max()).argmin()), int(lengths.argmax())
    alone, beside = int(lengths[short]), min(int(lengths[long]), int(lengths[short]) + PADDING)
    if beside < alone + 8:
        return False
    batches = [
        take(features, torch.tensor(rows, device=model.device), width)
        for rows, width in (([short], alone), ([short, long], beside))
    ]
    vectors = [_embeddings(model, batch)[0] for batch in batches]
    first, second = (vector.float() for vector in vectors)
    difference = float((first - second).norm() / first.norm().clamp(min=1e-12))
    found = _FEELING[model[0]] = difference > _DIFFERENCES.get(vectors[0].dtype, 1e-3)
    if found:
        logger.warning(
            "%s gives a text another vector beside longer ones, which it is padded for: they differ by %.1g of their "
            "length. Only texts of equal length are encoded together, which takes longer. In training, and on several "
            "devices, vectors depend on the other texts of a batch.",
            type(model.transformers_model).__name__,
            difference,
        )
    return found
