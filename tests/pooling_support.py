"""Batches for tests of the weighted poolings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from support import flatten
from torch import Tensor, nn

import simlte_st
from simlte_st.models.names import usage_example


def batch(lengths: tuple[int, ...], size: int, left: bool = False) -> dict[str, Any]:
    """Return features of texts of these lengths, padded on the right or left."""
    torch.manual_seed(1)
    longest = max(lengths)
    places = torch.arange(longest)
    mask = torch.stack([places >= longest - n if left else places < n for n in lengths]).long()
    return {"token_embeddings": torch.randn(*mask.shape, size), "input_ids": mask, "attention_mask": mask}


def check_empty_batches(module: nn.Module) -> None:
    """Check a pooling on a text without tokens, and on no text."""
    size: Any = module.embedding_dimension
    mask = torch.zeros(1, 3, dtype=torch.int64)
    outputs = module({"token_embeddings": torch.randn(1, 3, size), "attention_mask": mask})
    assert not outputs["sentence_embedding"].any()
    assert not outputs["token_attention"].any()
    empty = module({"token_embeddings": torch.zeros(0, 3, size), "attention_mask": mask[:0]})
    assert empty["sentence_embedding"].shape == (0, size)


def check_round_trip(module: nn.Module, bert_path: Path, folder: Path) -> nn.Module:
    """Check that a saved model gives the same vectors in both classes, and return the loaded pooling."""
    texts, place = ["one two three.", "four five."], str(folder / "model")
    model = SentenceTransformer(modules=[Transformer(str(bert_path)), module], device="cpu")
    vectors = model.encode(texts)
    model.save_pretrained(place)
    assert "from simlte_st import SentenceTransformer" in usage_example(folder / "model")
    for kind in (SentenceTransformer, simlte_st.SentenceTransformer):
        loaded = kind(place, device="cpu")
        assert type(loaded[1]) is type(module)
        torch.testing.assert_close(torch.tensor(loaded.encode(texts)), torch.tensor(vectors))
    return loaded[1]


def compute_both(
    module: nn.Module, features: dict[str, Any], transcribe: Callable[[Tensor], Tensor]
) -> list[dict[str, Tensor]]:
    """Return a pooling's vectors and gradients, and those of a function of the tokens of one text without padding."""
    tokens, masks = features["token_embeddings"].requires_grad_(), features["attention_mask"].bool()
    rows = [transcribe(row[mask]) for row, mask in zip(tokens, masks, strict=True)]
    weights: dict[str, Any] = {**dict(module.named_parameters()), "tokens": tokens}
    results = []
    for vectors in (module(dict(features))["sentence_embedding"], torch.stack(rows)):
        gradients = torch.autograd.grad(vectors.square().sum(), list(weights.values()))
        results.append({"vectors": vectors.detach(), **dict(zip(weights, gradients, strict=True))})
    return results


def check_flattened(module: nn.Module) -> None:
    """Check that flattened texts get the embeddings of padded ones, also with an excluded prompt."""
    padded = batch((5, 2, 9), module.embedding_dimension)  # type: ignore[arg-type]
    for prompt in ({}, {"prompt_length": 1}):
        module.include_prompt = not prompt  # type: ignore[assignment]
        outputs, flat_outputs = module({**padded, **prompt}), module({**flatten(padded), **prompt})
        torch.testing.assert_close(outputs["sentence_embedding"], flat_outputs["sentence_embedding"])
        assert flat_outputs["token_embeddings"].shape[:2] == (1, 16), "token features stay flattened"
