"""How many tokens a model reads."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer


def readable_tokens(model: SentenceTransformer) -> int | None:
    """Most tokens, special tokens included, that the architecture can read, whatever its tokenizer is set to.

    This is ``max_position_embeddings`` of the configuration; RoBERTa-like models (RoBERTa, XLM-R, MPNet, Longformer)
    number positions from ``padding_idx + 1``, so that many of their position embeddings are never used for a token.

    Returns:
        The number of tokens, or None where the architecture sets no limit (T5) or has no Transformer in it.
    """
    transformer = model.transformers_model
    if transformer is None:
        return None
    config = transformer.config
    usable = getattr(config, "usable_length", None)
    if isinstance(usable, int):  # our own architectures say it themselves
        return usable
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    positions = getattr(text_config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:  # DeBERTa-like configurations write -1 for "no limit"
        return None
    for module in transformer.modules():
        padding = getattr(module, "padding_idx", None)
        # Only these models keep a padding index beside a learned table of positions: it is what shifts the positions.
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), torch.nn.Embedding):
            return positions - padding - 1
    return positions


def readable_length(model: SentenceTransformer, wanted: int | None = None) -> int | None:
    """Tokens that the model reads of an input, special tokens included.

    Args:
        model: The model.
        wanted: A length that the user asked for; None keeps the model's own ``max_seq_length``.

    Returns:
        The smaller of what is wanted and what the encoder has positions for; None where nothing bounds it.
    """
    lengths = [length for length in (wanted or model.max_seq_length, readable_tokens(model)) if length is not None]
    return min(lengths) if lengths else None


def view_budget(model: SentenceTransformer, prompt: str | None = None) -> int | None:
    """Tokens of a document that fit one pass: the readable length without special tokens and prompt; None: no bound."""
    length = readable_length(model)
    if length is None:
        return None
    tokenizer = model.tokenizer
    taken = int(tokenizer.num_special_tokens_to_add(pair=False))
    if prompt:
        taken += len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    return max(1, length - taken)
