"""A base model to a folder of one that reads long documents: ``simlte convert``, and the first step of training."""

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
from simlte_st.models.base import load_model
from simlte_st.models.loading import LoadedModel
from simlte_st.models.names import Backbone

MAX_LENGTH = 4096
"""Tokens that a converted model reads where nothing else is said: the papers' Longformer."""

STOCK = "longformer"
"""transformers' own Longformer, which ours replaces weight by weight."""


def convert_base(
    base: LoadedModel | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    backbone: Backbone = "longformer",
    max_length: int | None = None,
    pooling: str = "keep",
    attention_window: int | list[int] | None = None,
    positions: Positions | None = None,
    global_tokens: GlobalTokens | None = None,
    chunk_length: int | None = None,
    overlap: int | None = None,
    chunk_weights: ChunkWeights | None = None,
    overwrite: bool = False,
) -> LoadedModel:
    """Write a base model as one that reads long documents: a folder that sentence-transformers loads.

    ``"longformer"`` makes a Longformer of an encoder with absolute positions, with the MLM head where the base has one.
    A stock Longformer keeps its positions, windows and weights. ``"chunk-mean"`` leaves any encoder as it is and
    averages over the chunks that it can read. Both are loaded after ``import simlte_st``.

    Args:
        base: The model, loaded already or not; see :func:`~simlte_st.models.base.find_model`.
            A loaded one is not changed.
        output: The folder to write, in one rename.
        backbone: What becomes of the base.
        max_length: Tokens that the new model reads, special tokens included; None is :data:`MAX_LENGTH`, or what a
            stock Longformer reads.
        pooling: See :func:`~simlte_st.models.base.load_model`.
        attention_window: Of a Longformer: tokens that a token sees on both sides together; even, one number or one a
            layer; None is 512.
        positions: Of a Longformer: see :func:`~simlte_st.longformer.convert_to_longformer`; None is ``"tile"``.
        global_tokens: Of a Longformer: see :class:`~simlte_st.longformer.SimlteLongformerConfig`; None is ``"cls"``.
        chunk_length: Of chunks, as the next two: see :func:`~simlte_st.chunk_mean.to_chunk_mean`.
        overlap: See there; None is 0.
        chunk_weights: See there; None is ``"tokens"``.
        overwrite: Replace what is at the output.

    Returns:
        The base as it was loaded, not converted.

    Raises:
        ModelError: The base cannot be loaded or cannot be converted; the message says why.
        ConfigurationError: A setting is out of its range or belongs to the other backbone, or the output exists.
    """
    settings: dict[str, dict[str, Any]] = {
        "longformer": {"attention_window": attention_window, "positions": positions, "global_tokens": global_tokens},
        "chunk-mean": {"chunk_length": chunk_length, "overlap": overlap, "chunk_weights": chunk_weights},
    }
    if backbone not in settings:
        raise ConfigurationError(f"backbone={backbone!r}: use {' or '.join(map(repr, settings))}.")
    given = {name: value for name, value in settings.pop(backbone).items() if value is not None}
    for other, theirs in settings.items():
        for name, value in theirs.items():
            if value is not None:
                raise ConfigurationError(f"{name}={value!r} is for backbone={other!r}: leave it out.")
    if max_length is not None and max_length < 1:
        raise ConfigurationError(f"max_length={max_length}: must be at least 1.")
    target = Path(output)
    check_free(target, overwrite)
    loaded = base.copy(pooling) if isinstance(base, LoadedModel) else load_model(base, pooling)
    if backbone == "longformer":
        encoder = _longformer(loaded, max_length, given)
        with atomic_path(target) as path:
            _save_with_encoder(loaded.model, encoder, path)
    else:
        given["weights"] = given.pop("chunk_weights", "tokens")
        made = to_chunk_mean(loaded.model, max_length or MAX_LENGTH, **given)
        with atomic_path(target) as path:
            made.save_pretrained(str(path), create_model_card=False)
    return loaded


def _longformer(
    loaded: LoadedModel, max_length: int | None, settings: dict[str, Any]
) -> SimlteLongformerModel | SimlteLongformerForMaskedLM:
    encoder, readable = encoder_of(loaded.model), readable_tokens(loaded.model)
    if encoder.config.model_type == STOCK:
        if max_length not in (None, readable):
            raise ConfigurationError(
                f"max_length={max_length}: {loaded.name} is a Longformer of {readable} tokens, and stays."
            )
        return _adopt(encoder, settings.get("global_tokens", "cls"))
    try:
        return convert_to_longformer(checkpoint_name(encoder), max_length or MAX_LENGTH, **settings)
    except ModelError as error:
        if readable is None or readable < (max_length or MAX_LENGTH):
            raise
        raise ModelError(f"{error} But it has positions for {readable:,} tokens: set its max_seq_length.") from None


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


def _save_with_encoder(
    model: SentenceTransformer, encoder: SimlteLongformerModel | SimlteLongformerForMaskedLM, path: Path
) -> None:
    """Save a model with another encoder, which may have an MLM head, in the place of its own."""
    transformer: Any = model[0]
    before, length = transformer.model, model.max_seq_length
    transformer.model = encoder
    model.max_seq_length = encoder.config.usable_length  # saved with the tokenizer: where every loader cuts
    try:
        model.save_pretrained(str(path), create_model_card=False)
    finally:
        transformer.model = before
        model.max_seq_length = length
