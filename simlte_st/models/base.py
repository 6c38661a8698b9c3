"""The model that training begins with."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel
from simlte_st.compat import readable_tokens
from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.models.hub import cached_folder, hub_unreachable, repositories
from simlte_st.models.names import find_model
from simlte_st.models.packaged import PACKAGED_BASE, packaged_base_installed


@dataclass(frozen=True)
class BaseModel:
    """A model to begin with.

    Attributes:
        model: The model.
        name: What the user called it.
        tuned: Whether it is a sentence encoder already (it came with sentence-transformers' ``modules.json``), as
            opposed to a bare language model.
        drawn: Whether its checkpoint lacks weights, such as a pooler's, which were drawn at random.
    """

    model: SentenceTransformer
    name: str
    tuned: bool
    drawn: bool = False


def load_base(
    name: str | Path,
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | None = None,
) -> BaseModel:
    """Load the model to begin with.

    Args:
        name: A folder, or a name as :func:`~simlte_st.models.names.find_model` has it.
        pooling: ``"cls"`` or ``"mean"`` replaces the base's pooling, ``"keep"`` keeps it. A bare language model, which
            has none, gets ``"cls"`` when asked to keep.
        max_seq_length: Tokens to read of an input, special tokens included; None keeps the base's.
        dtype: Type of the weights; None keeps the checkpoint's. Training wants ``torch.float32``: on weights of half
            precision an optimizer's small steps are lost.

    Returns:
        The model.

    Raises:
        ModelError: There is no such model, or it does not end in token embeddings and pooling.
        ConfigurationError: It has no positions for ``max_seq_length`` tokens.
    """
    source = _reachable(find_model(name))
    numbers = torch.get_rng_state()
    try:
        model = SentenceTransformer(source, model_kwargs={} if dtype is None else {"dtype": dtype})
    except (OSError, ValueError, SafetensorError) as error:
        raise _not_loaded(name, str(error)) from error
    tuned, drawn = _is_tuned(source), not torch.equal(numbers, torch.get_rng_state())
    if not isinstance(model[0], Transformer):
        raise ModelError(f"The base model {str(name)!r} begins with {type(model[0]).__name__}, not with a Transformer.")
    if pooling != "keep" or not tuned:
        _set_pooling(model, str(name), "cls" if pooling == "keep" else pooling)
    limit = readable_tokens(model)
    if max_seq_length is not None:
        _set_length(model, str(name), max_seq_length)
    elif limit is not None and (model.max_seq_length is None or model.max_seq_length > limit):
        model.max_seq_length = limit  # a tokenizer that knows of no limit
    return BaseModel(model, str(name), tuned, drawn)


def load_again(base: BaseModel, pooling: str = "keep", max_seq_length: int | None = None) -> BaseModel:
    """Load a model that was loaded already, with another pooling and length.

    It is copied, which is quicker. But where loading draws weights it is loaded, so that each model has its own, and a
    run draws the same numbers from its seed as ever.

    Args:
        base: The model; it is not changed.
        pooling: As for :func:`load_base`.
        max_seq_length: As for :func:`load_base`.

    Returns:
        Another model, in the same dtype.

    Raises:
        ModelError: It has no pooling that could be changed, or is not there any more.
        ConfigurationError: It has no positions for ``max_seq_length`` tokens.
    """
    if base.drawn:
        return load_base(base.name, pooling, max_seq_length, next(base.model.parameters()).dtype)
    model = deepcopy(base.model)
    if pooling != "keep":
        _set_pooling(model, base.name, pooling)
    if max_seq_length is not None:
        _set_length(model, base.name, max_seq_length)
    return BaseModel(model, base.name, base.tuned)


def _set_length(model: SentenceTransformer, name: str, max_seq_length: int) -> None:
    limit = readable_tokens(model)
    if limit is not None and max_seq_length > limit:
        raise ConfigurationError(f"max_seq_length={max_seq_length}: {name!r} has positions for {limit} tokens.")
    model.max_seq_length = max_seq_length


def _reachable(source: str) -> str:
    """Give the folder in the Hub's cache instead of a name where the Hub cannot be asked."""
    unreachable = None if os.path.isdir(source) else hub_unreachable(source)
    if unreachable is None:
        return source
    folder = cached_folder(source)
    if folder is None:
        why = f"the Hub cannot be reached ({type(unreachable).__name__}), and its cache does not have it"
        raise _not_loaded(source, f"there is no such folder, {why}.") from unreachable
    return folder


def _not_loaded(name: str | Path, problem: str) -> ModelError:
    hint = f" Without a network, --base {PACKAGED_BASE} works." if packaged_base_installed() else ""
    return ModelError(f"The base model {str(name)!r} could not be loaded: {problem}{hint}")


def _is_tuned(source: str) -> bool:
    if Path(source).exists():
        return (Path(source) / "modules.json").exists()
    from huggingface_hub import try_to_load_from_cache

    # Loading it has just put the file into the Hub's cache, if the repository has it.
    return any(
        isinstance(try_to_load_from_cache(repository, "modules.json"), str) for repository in repositories(source)
    )


def _set_pooling(model: SentenceTransformer, name: str, mode: str) -> None:
    if isinstance(model[0].auto_model, SimlteChunkMeanModel) and mode != "cls":
        raise ModelError(
            f"The base model {name!r} reads chunk by chunk and pools inside of them, which cannot be set to {mode!r} "
            "any more; use pooling='keep', or convert it anew with the pooling that you want."
        )
    for index, module in enumerate(model):
        if isinstance(module, Pooling):
            pooling = Pooling(module.embedding_dimension, pooling_mode=mode, include_prompt=module.include_prompt)
            model[index] = pooling.to(model.device)
            return
    raise ModelError(f"The base model {name!r} has no Pooling module to set to {mode!r}; use pooling='keep'.")


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of every dropout in a model, attention's included."""
    for module in model.modules():
        _set_dropout(module, probability)


def set_attention_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of dropping an attention weight in all layers of a model."""
    for module in model.modules():
        kind = type(module).__name__
        if kind.endswith("Attention"):
            _set_dropout(module, probability)
        if kind.endswith("SelfAttention"):  # what is around it drops from hidden states
            for part in module.modules():
                _set_dropout(part, probability)


def _set_dropout(module: nn.Module, probability: float) -> None:
    if isinstance(module, nn.Dropout):
        module.p = probability
    # Fused attention does not use the modules but a number that the attention layer keeps, under one of a few names.
    for attribute in ("dropout_prob", "attention_dropout", "dropout"):
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, probability)
