"""Synthetic texts, and the check that a model can embed them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from simlte_st.errors import ModelError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def sample_texts(model: SentenceTransformer) -> list[str]:
    """Return texts of random words, covering all lengths that the model reads."""
    vocabulary = sorted(word.strip("\u2581\u0120") for word in model.tokenizer.get_vocab())
    words = [word for word in vocabulary if word.isalpha()]
    words = [word for word in words if word.isascii()] or words or ["a"]
    random = Random(0)
    longest = 700 if model.max_seq_length in (None, math.inf) else int(0.8 * model.max_seq_length)
    lengths = [length for length in (0, 1, 7, 40, 150, 700) if length < longest]
    return [" ".join(random.choices(words, k=length)) for length in (*lengths, longest)]


def find_overflow(model: SentenceTransformer, texts: Sequence[str] = ()) -> str:
    """Describe what is not finite in a model, its weights or its embeddings of a few texts; empty if nothing is.

    The weights of a diverged model may be finite, but too large: they then overflow when they are multiplied, which
    gives embeddings that are not finite or, after ``Normalize``, zero.
    """
    import torch

    from simlte_st.prompts import document_prompt

    norms = {name: torch.linalg.vector_norm(weight, dtype=torch.float32) for name, weight in model.named_parameters()}
    if names := [name for name, norm in norms.items() if not norm.isfinite()]:
        return f"{len(names)} of the model's {len(norms)} tensors are not finite or overflow ({names[0]}, ...)"
    training = model.training
    prompt = document_prompt(model)
    vectors = model.encode([*sample_texts(model)[1:4], *texts], prompt=prompt, show_progress_bar=False)
    model.train(training)
    return "" if np.isfinite(vectors).all() else "the model's embeddings are not finite"


def check_vectors(model: SentenceTransformer, name: str) -> None:
    """Raise a ModelError if a model, made from the model ``name``, is damaged; call this before saving."""
    if problem := find_overflow(model):
        advice = "It is damaged, or its training diverged: use another model."
        raise ModelError(f"No model was saved: with {name!r}, {problem}. {advice}")
