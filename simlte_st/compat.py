"""Every touch of a private name of sentence-transformers or transformers, and of names that changed.

``tests/test_compat.py`` notices when one of them moves.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel

if TYPE_CHECKING:  # at run time this module must not import what may be half imported
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer


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
    from sentence_transformers.base.losses import gradcache

    found: list[tuple[int, int]] = gradcache._minibatch_ranges(features, size, tokens)
    return found


def slice_rows(features: dict[str, Any], begin: int, end: int) -> dict[str, Any]:
    """Take rows ``begin`` to ``end`` of a batch, padded or flattened.

    The padding at the end that all of them have is cut off.
    """
    from sentence_transformers.base.losses import gradcache

    rows: dict[str, Any] = gradcache._create_minibatch(features, begin, end)
    return rows


def merge_feature_batches(columns: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Put the rows of several columns under each other, or give None where they do not fit."""
    from sentence_transformers.base.losses import merged_forward

    merged: dict[str, Any] | None = merged_forward.merge_feature_batches(columns)
    return merged


def with_encoder(transformer: Transformer, encoder: PreTrainedModel) -> Transformer:
    """Copy a Transformer module, tokenizer included, around another encoder, which is not copied.

    The module remembers which features its encoder takes: for the one to come that has to be found out again.
    """
    kept = {id(transformer.auto_model): encoder}  # deepcopy takes this for the copy of the old encoder
    made = copy.deepcopy(transformer, kept)
    parameters = inspect.signature(encoder.forward).parameters
    made._declared_forward_params = set(parameters)
    made.model_forward_params = None  # all features but sentence-transformers' own: forward must take **kwargs
    assert any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    made.unpad_inputs = transformer.unpad_inputs  # assigning asks the new encoder whether it can go without padding
    return made


def forget_model_card_text(model: SentenceTransformer) -> None:
    """Make a model write a new card instead of the text of the one it was loaded with."""
    model._model_card_text = None


@contextmanager
def eager_attention(encoder: PreTrainedModel) -> Iterator[None]:
    """Let an encoder compute attention so that it can give the weights, while the block runs."""
    before = encoder.config._attn_implementation
    if before == "eager":
        yield
        return
    encoder.set_attn_implementation("eager")
    try:
        yield
    finally:
        encoder.set_attn_implementation(before)
