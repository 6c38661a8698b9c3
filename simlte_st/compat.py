"""Every touch of a private name of sentence-transformers or transformers, and of names that changed.

``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

from typing import Any

from sentence_transformers.base.losses import gradcache, merged_forward
from transformers import PreTrainedModel


def checkpoint_name(encoder: PreTrainedModel) -> str:
    """Name the folder or repository that an encoder was loaded from; empty if it was not loaded."""
    return str(getattr(encoder.config, "_name_or_path", ""))


def enable_checkpointing(encoder: PreTrainedModel) -> None:
    """Let an encoder compute each layer again in the backward pass; transformers has renamed what does it."""
    enable = getattr(encoder, "activation_checkpointing_enable", None) or encoder.gradient_checkpointing_enable
    enable({"use_reentrant": False})


def mini_batch_ranges(features: dict[str, Any], size: int, tokens: int | None) -> list[tuple[int, int]]:
    """Cut a batch into mini-batches as the cached losses do.

    Args:
        features: Model inputs, padded or flattened.
        size: Rows of a mini-batch; not used where ``tokens`` is given.
        tokens: Most tokens of a mini-batch, padding not counted; a longer row is a mini-batch by itself.

    Returns:
        First row and row after the last of each mini-batch.
    """
    found: list[tuple[int, int]] = gradcache._minibatch_ranges(features, size, tokens)
    return found


def slice_rows(features: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    """Take rows ``begin`` to ``end`` of a batch, padded or flattened.

    The padding at the end that all of them have is cut off.
    """
    rows: dict[str, Any] = gradcache._create_minibatch(features, begin, end)
    return rows


def merge_feature_batches(columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Put the rows of several columns under each other, or give None where they do not fit."""
    merged: dict[str, Any] | None = merged_forward.merge_feature_batches(columns)
    return merged
