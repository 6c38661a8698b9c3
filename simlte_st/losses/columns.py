"""Merge columns of model inputs into one batch, or select some of their rows."""

from __future__ import annotations

from torch import Tensor, nn

from simlte_st.compat import Features as Features
from simlte_st.compat import merge_feature_batches, slice_rows

LABELS = "mlm_labels"
"""Key of a masked column's labels: int64, shaped like its ``input_ids``. The model never sees them."""

IGNORE = -100
"""Label of tokens that are not predicted, as in ``cross_entropy``."""

_MAX_PADDING = 1.125
"""Maximum growth of a batch through padding for which columns are merged, because padding costs time too."""


def merge_columns(columns: list[Features], max_padding: float = float("inf")) -> Features | None:
    """Return all rows as one batch, column after column; None if the columns cannot be merged."""
    masks = [features.get("attention_mask") for features in columns]
    if len(columns) < 2 or any(mask is None for mask in masks):
        return None
    widths = [mask.shape[1] for mask in masks if mask is not None]
    if len(widths) * max(widths) > max_padding * sum(widths):
        return None
    merged = merge_feature_batches(columns)
    if merged is not None and LABELS in merged:
        # The new padding is 0, which would be a token to predict.
        merged[LABELS] = merged[LABELS].masked_fill(merged["attention_mask"] == 0, IGNORE)
    return merged


def encode(model: nn.Module, features: Features) -> tuple[Features, Tensor | None]:
    """Return the model's outputs for a batch, and the batch's labels, if any."""
    inputs = dict(features)  # the model adds its outputs to this copy
    labels = inputs.pop(LABELS, None)
    return model(inputs), labels


def encode_columns(model: nn.Module, columns: list[Features]) -> list[tuple[Features, Tensor | None]]:
    """Encode columns in one pass if that adds little padding, otherwise one by one."""
    merged = merge_columns(columns, _MAX_PADDING)
    return [encode(model, features) for features in (columns if merged is None else [merged])]


def split_embeddings(outputs: list[tuple[Features, Tensor | None]], columns: int) -> list[Tensor]:
    """Return the embeddings of each column, ``(rows, dim)``, from the result of :func:`encode_columns`."""
    embeddings = [out["sentence_embedding"] for out, _ in outputs]
    return list(embeddings[0].chunk(columns)) if len(embeddings) == 1 else embeddings


def row_count(features: Features) -> int:
    """Return the number of rows of a column."""
    starts = features.get("cu_seq_lens_q")
    return len(features["input_ids"]) if starts is None else len(starts) - 1


def take_rows(features: Features, rows: Tensor) -> Features:
    """Select rows of a padded column, in any order."""
    count = len(features["input_ids"])
    selection = {
        name: feature[rows] if isinstance(feature, Tensor) and feature.ndim and len(feature) == count else feature
        for name, feature in features.items()
    }
    return slice_rows(selection, 0, len(rows))
