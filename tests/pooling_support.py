"""Batches for tests of the weighted poolings."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def batch(lengths: tuple[int, ...], size: int, left: bool = False) -> dict[str, Any]:
    """Return features of texts of these lengths, padded on the right or left."""
    torch.manual_seed(1)
    longest = max(lengths)
    places = torch.arange(longest)
    mask = torch.stack([places >= longest - n if left else places < n for n in lengths])
    return {"token_embeddings": torch.randn(len(lengths), longest, size), "attention_mask": mask.long()}


def flatten(padded: dict[str, Any]) -> dict[str, Any]:
    """Return the same features without padding, with all texts in one row."""
    mask = padded["attention_mask"].bool()
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), mask.sum(dim=1).cumsum(dim=0)])
    return {
        "token_embeddings": padded["token_embeddings"][mask][None],
        "input_ids": torch.ones(1, int(mask.sum()), dtype=torch.int64),
        "cu_seq_lens_q": ends,
    }


def check_empty_batches(module: nn.Module) -> None:
    """Check a pooling on a text without tokens, and on no text."""
    size: Any = module.embedding_dimension
    outputs = module(
        {"token_embeddings": torch.randn(1, 3, size), "attention_mask": torch.zeros(1, 3, dtype=torch.int64)}
    )
    assert not outputs["sentence_embedding"].any()
    assert not outputs["token_attention"].any()
    empty = module(
        {"token_embeddings": torch.zeros(0, 4, size), "attention_mask": torch.zeros(0, 4, dtype=torch.int64)}
    )
    assert empty["sentence_embedding"].shape == (0, size)


def check_flattened(module: nn.Module) -> None:
    """Check that flattened texts get the embeddings of padded ones, also with an excluded prompt."""
    padded = batch((5, 2, 9), module.embedding_dimension)  # type: ignore[arg-type]
    for prompt in ({}, {"prompt_length": 1}):
        module.include_prompt = not prompt  # type: ignore[assignment]
        outputs, flat_outputs = module({**padded, **prompt}), module({**flatten(padded), **prompt})
        torch.testing.assert_close(outputs["sentence_embedding"], flat_outputs["sentence_embedding"])
        assert flat_outputs["token_embeddings"].shape[:2] == (1, 16), "token features stay flattened"
