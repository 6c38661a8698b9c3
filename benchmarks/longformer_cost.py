"""What a Longformer has to compute: operations of its matrix products, a multiplication and an addition each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def attended_pairs(length: int, window: int) -> int:
    """Count pairs of a query and a key of one document: those in the window, [CLS] as a key and as a query."""
    reach = min(window // 2, length - 1)
    near = length * (2 * reach + 1) - reach * (reach + 1)
    far = max(0, length - 1 - reach)  # tokens that see [CLS] although it is out of their window
    return near + 2 * far


def attention_operations(lengths: Sequence[int], window: int, hidden: int) -> float:
    """Count the operations of an attention layer: three projections, scores and weighted sums."""
    projections = sum(lengths) * 3 * 2 * hidden * hidden
    pairs = sum(attended_pairs(length, window) for length in lengths)
    return float(projections + pairs * 2 * 2 * hidden)


def encoder_operations(lengths: Sequence[int], window: int, size: Mapping[str, Any]) -> float:
    """Count the operations of the whole encoder: attention, its output, and the feed-forward layer."""
    hidden, wide = size["hidden_size"], size["intermediate_size"]
    rest = sum(lengths) * 2 * hidden * (hidden + 2 * wide)
    return size["num_hidden_layers"] * (attention_operations(lengths, window, hidden) + rest)
