"""Batches for the tests of both weighted poolings."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def batch(lengths: tuple[int, ...], size: int, left: bool = False) -> dict[str, Any]:
    """Make features of texts with these lengths, padded on the right or the left."""
    torch.manual_seed(1)
    longest = max(lengths)
    places = torch.arange(longest)
    mask = torch.stack([places >= longest - n if left else places < n for n in lengths])
    return {"token_embeddings": torch.randn(len(lengths), longest, size), "attention_mask": mask.long()}


def flattened(padded: dict[str, Any]) -> dict[str, Any]:
    """Return the same features without padding, with all texts in one row."""
    mask = padded["attention_mask"].bool()
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(dim=1).cumsum(dim=0)])
    return {
        "token_embeddings": padded["token_embeddings"][mask][None],
        "input_ids": torch.ones(1, int(mask.sum()), dtype=torch.int64),
        "cu_seq_lens_q": ends,
    }


def check_empty_batches(module: nn.Module) -> None:
    """Check an 8-dimensional pooling on a text without tokens and on an empty batch."""
    found = module({"token_embeddings": torch.randn(1, 3, 8), "attention_mask": torch.zeros(1, 3, dtype=torch.int64)})
    assert not found["sentence_embedding"].any()
    assert not found["token_attention"].any()
    empty = module({"token_embeddings": torch.zeros(0, 4, 8), "attention_mask": torch.zeros(0, 4, dtype=torch.int64)})
    assert empty["sentence_embedding"].shape == (0, 8)
