"""A base model to a folder of one that reads long documents: ``simlte convert``, and what training does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from transformers import PreTrainedModel

from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.chunk_mean.configuration import ChunkWeights
from simlte_st.compat import checkpoint_name, encoder_of, quiet_transformers, readable_tokens
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.files import atomic_path, check_free
from simlte_st.longformer import SimlteLongformerForMaskedLM, SimlteLongformerModel, convert_to_longformer
from simlte_st.longformer.configuration import GlobalTokens
from simlte_st.longformer.convert import Positions
from simlte_st.models.base import BaseModel, load_again, load_base

MAX_LENGTH = 4096
"""Tokens that a converted model reads where nothing else is said: the papers' Longformer."""

STOCK = "longformer"
"""transformers' own Longformer, which ours replaces weight by weight."""


def convert_base(
    base: BaseModel | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    max_length: int | None = None,
    attention_window: int | list[int] = 512,
    positions: Positions = "tile",
    global_tokens: GlobalTokens = "cls",
    pooling: str = "keep",
    overwrite: bool = False,
) -> BaseModel:
    """Write a base model as a Longformer: a folder that stock sentence-transformers loads after ``import simlte_st``.

    The MLM head comes along where the base has one. A stock Longformer keeps its positions, windows and weights.

    Args:
        base: The model, loaded already or not; see :func:`~simlte_st.models.names.find_model`.
            A loaded one is not changed.
        output: The folder to write, in one rename.
        max_length: Tokens that the Longformer reads, special tokens included; None is :data:`MAX_LENGTH`, or what a
            stock Longformer reads.
        attention_window: Tokens that a token sees on both sides together; even, one number or one a layer.
        positions: See :func:`~simlte_st.longformer.convert_to_longformer`.
        global_tokens: See :class:`~simlte_st.longformer.SimlteLongformerConfig`.
        pooling: See :func:`~simlte_st.models.base.load_base`.
        overwrite: Replace what is at the output.

    Returns:
        The base as it was loaded, not converted.

    Raises:
        ModelError: The base cannot be loaded or cannot be converted; the message says why.
        ConfigurationError: A setting is out of its range, or the output exists.
    """
    if max_length is not None and max_length < 1:
        raise ConfigurationError(f"max_length={max_length}: must be at least 1.")
    target = Path(output)
    check_free(target, overwrite)
    loaded = _loaded(base, pooling)
    encoder = encoder_of(loaded.model)
    if encoder.config.model_type == STOCK:
        limit = readable_tokens(loaded.model)
        if max_length not in (None, limit):
            raise ConfigurationError(
                f"max_length={max_length}: {loaded.name} is a Longformer of {limit} tokens, and stays."
            )
        converted = _adopt(encoder, global_tokens)
    else:
        converted = convert_to_longformer(
            checkpoint_name(encoder), max_length or MAX_LENGTH, attention_window, positions, global_tokens
        )
    with atomic_path(target) as path:
        save_with_encoder(loaded.model, converted, path)
    return loaded


def convert_base_to_chunks(
    base: BaseModel | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    max_length: int = MAX_LENGTH,
    chunk_length: int | None = None,
    overlap: int = 0,
    chunk_weights: ChunkWeights = "tokens",
    pooling: str = "keep",
    overwrite: bool = False,
) -> BaseModel:
    """Write a base model as one that reads chunk by chunk: a folder of stock modules.

    Args:
        base: The model, loaded already or not; see :func:`~simlte_st.models.names.find_model`.
            A loaded one is not changed.
        output: The folder to write, in one rename.
        max_length: See :func:`~simlte_st.chunk_mean.to_chunk_mean`, as for the next three.
        chunk_length: See there.
        overlap: See there.
        chunk_weights: See there.
        pooling: See :func:`~simlte_st.models.base.load_base`.
        overwrite: Replace what is at the output.

    Returns:
        The base as it was loaded, not converted.

    Raises:
        ModelError: The base cannot be loaded or cannot be converted; the message says why.
        ConfigurationError: A setting is out of its range, or the output exists.
    """
    target = Path(output)
    check_free(target, overwrite)
    loaded = _loaded(base, pooling)
    made = to_chunk_mean(loaded.model, max_length, chunk_length, overlap, chunk_weights)
    with atomic_path(target) as path:
        made.save_pretrained(str(path), create_model_card=False)
    return loaded


def _loaded(base: BaseModel | str | os.PathLike[str], pooling: str) -> BaseModel:
    return load_again(base, pooling) if isinstance(base, BaseModel) else load_base(os.fspath(base), pooling)


def _adopt(
    encoder: PreTrainedModel, global_tokens: GlobalTokens
) -> SimlteLongformerModel | SimlteLongformerForMaskedLM:
    """Make ours of a stock Longformer, with the checkpoint's MLM head if it has one."""
    with quiet_transformers():
        loaded: Any = SimlteLongformerForMaskedLM.from_pretrained(
            checkpoint_name(encoder), output_loading_info=True, global_tokens=global_tokens
        )
    with_head, info = loaded
    if isinstance(with_head, SimlteLongformerForMaskedLM) and not info["missing_keys"]:
        return with_head
    return SimlteLongformerModel.from_longformer(encoder, global_tokens)


def save_with_encoder(
    model: SentenceTransformer, encoder: SimlteLongformerModel | SimlteLongformerForMaskedLM, path: Path
) -> None:
    """Save a model with another encoder in the place of its own."""
    length = encoder.config.usable_length
    before = model.max_seq_length
    model.tokenizer.model_max_length = length  # saved with the tokenizer: where every loader cuts
    try:
        model.save_pretrained(str(path), create_model_card=False)
    finally:
        model.max_seq_length = before
    for weights in path.glob("*.safetensors*"):
        weights.unlink()
    encoder.save_pretrained(path)
    if not (path / "modules.json").exists():
        raise ModelError(f"{path} has no modules.json: sentence-transformers did not save the model as expected.")
