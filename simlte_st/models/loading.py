"""Load a model by name, set its pooling and length, and check it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from huggingface_hub import constants
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding
from sentence_transformers.util import is_sentence_transformer_model, load_file_path

from simlte_st.compat import NO_LIMIT, load_stock, readable_length, readable_tokens, reserved_tokens, short_load_report
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.files import EXPORT_FILE
from simlte_st.models.device import check_device, default_dtype
from simlte_st.models.names import OWN_MODELS, find_model, hub_repositories, not_loaded
from simlte_st.models.shipped import unpack_model
from simlte_st.models.static import LOADED, is_static, model2vec_modules
from simlte_st.modules import ChunkMean
from simlte_st.prompts import document_prompt

logger = logging.getLogger(__name__)

_OTHER_KINDS = ("SparseEncoder", "CrossEncoder", "MultiVectorEncoder")


@dataclass(frozen=True)
class LoadedModel:
    """A loaded model.

    Attributes:
        model: The model.
        name: Name given by the user.
        tuned: Whether the model is a sentence encoder with a ``modules.json``, not a bare language model.
    """

    model: SentenceTransformer
    name: str
    tuned: bool

    def copy(self, pooling: str = "keep", max_seq_length: int | None = None) -> LoadedModel:
        """Copy the model, with another pooling (``"cls"`` or ``"mean"``) or length in tokens."""
        copy = deepcopy(self)
        if pooling != "keep":
            _set_pooling(copy.model, self.name, pooling)
        _set_length(copy.model, self.name, max_seq_length or self.model.max_seq_length)
        return copy


def load_model(
    name: str | os.PathLike[str],
    dtype: torch.dtype | Literal["auto"] | None = None,
    device: str | None = None,
) -> LoadedModel:
    """Load a model by name or folder as the stock class; see :func:`~simlte_st.models.names.find_model`.

    Special tokens in texts, such as ``[MASK]``, are read as ordinary text unless the model's prompts use them. This
    setting is saved with the model.

    Args:
        name: A folder, a model of this package, or a name on the Hub.
        dtype: Dtype of the weights; None for float32 on a CPU and the checkpoint's dtype on a GPU, ``"auto"`` for the
            checkpoint's dtype on any device.
        device: Torch device (default: a GPU if available, otherwise the CPU).
    """
    check_device(device)
    source, name = model_source(name), os.fspath(name)
    if (kind := model_kind(source)) in _OTHER_KINDS:
        raise ModelError(f"{name!r} is not an embedding model but a {kind}: load it with sentence_transformers.{kind}.")
    if Path(source, EXPORT_FILE).is_file():
        raise ModelError(f"{name!r} is an ONNX export: load it with simlte_st.load_onnx().")
    with _loading(name):
        checkpoint, arguments = loading_arguments(source, _options(device, dtype))
        model = load_stock(checkpoint, LOADED, **arguments)
    adapt_encoder(model)
    check_encodes(model, name)
    if not is_static(model):
        _read_special_tokens_as_text(model)
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    tuned = is_static(model) or any(
        is_sentence_transformer_model(place, cache_folder=cache, local_files_only=True) for place in _places(source)
    )
    return LoadedModel(model, name, tuned)


def load_cross_encoder(
    name: str | os.PathLike[str], dtype: torch.dtype | None = None, device: str | None = None
) -> CrossEncoder | None:
    """Load a cross-encoder by name or folder; None if the model is of another kind. Arguments as :func:`load_model`."""
    check_device(device)
    source = model_source(name)
    if model_kind(source) != "CrossEncoder":
        return None
    with _loading(name), short_load_report():
        checkpoint, arguments = loading_arguments(source, _options(device, dtype))
        model: CrossEncoder = CrossEncoder(str(checkpoint), **arguments)
        return model


@contextmanager
def _loading(name: str | os.PathLike[str]) -> Iterator[None]:
    """Report all errors as a ModelError, and seed weights that are missing from the checkpoint."""
    random_state = torch.get_rng_state()
    torch.default_generator.manual_seed(0)
    try:
        yield
    except (MissingExtraError, MemoryError):
        raise
    except Exception as error:  # damaged files raise many types
        raise not_loaded(name, f"{type(error).__name__}: {error}") from error
    finally:
        torch.set_rng_state(random_state)


def _options(device: str | None, dtype: torch.dtype | str | None) -> dict[str, Any]:
    return {"device": device, "model_kwargs": {} if dtype is None else {"dtype": dtype}}


def _places(source: str) -> tuple[str, ...]:
    """Return the folder of a model, or its possible repositories on the Hub."""
    return (source,) if Path(source).exists() else hub_repositories(source)


def model_kind(source: str) -> str:
    """Return the class of sentence-transformers that loads a model, according to its configuration.

    The result is ``"SentenceTransformer"`` unless the configuration names another class.
    """
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")  # holds the modules.json of models from the Hub
    local = Path(source).exists() or constants.HF_HUB_OFFLINE

    def read_settings(name: str) -> dict[str, Any]:
        paths = (load_file_path(place, name, cache_folder=cache, local_files_only=local) for place in _places(source))
        try:
            with open(next((path for path in paths if path is not None), ""), encoding="utf-8") as file:
                return dict(json.load(file))
        except (OSError, ValueError, TypeError):  # damaged files are reported when the model is loaded
            return {}

    settings = read_settings("config_sentence_transformers.json")
    if not settings and "SequenceClassification" in str(read_settings("config.json").get("architectures")):
        return "CrossEncoder"
    return str(settings.get("model_type") or "SentenceTransformer")


def model_source(name: str | os.PathLike[str]) -> str:
    """Return the folder of a model or its name on the Hub; unpack models of this package first."""
    text = os.fspath(name)
    if text in OWN_MODELS and not os.path.isdir(text):
        return str(unpack_model(text, lambda base: load_model(base, dtype=torch.float32, device="cpu").model))
    return find_model(text)


def loading_arguments(source: str | None, options: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the arguments with which sentence-transformers loads a model.

    Args:
        source: A folder, a name on the Hub, or None for a model built from modules.
        options: Keyword arguments of ``sentence_transformers.SentenceTransformer``. The default dtype is float32 on a
            CPU, and the checkpoint's elsewhere.

    Returns:
        Name and keyword arguments. For a model in model2vec's format, the name is None and the arguments include
        modules.
    """
    if source is None:
        return None, {**options}
    # Otherwise the Hub would be queried for a folder's name.
    arguments = {"local_files_only": os.path.isdir(source) and not options.get("trust_remote_code"), **options}
    settings = options.get("model_kwargs") or {}
    has_dtype = {"dtype", "torch_dtype", "device_map"} & {*settings, *(options.get("config_kwargs") or ())}
    if options.get("backend", "torch") == "torch" and not has_dtype:
        dtype = default_dtype(options.get("device"))
        arguments["model_kwargs"] = settings if dtype is None else {**settings, "dtype": dtype}
    if (modules := model2vec_modules(source)) is not None:
        return None, {**arguments, "modules": modules}
    return source, arguments


def adapt_encoder(model: SentenceTransformer) -> None:
    """Limit ``max_seq_length`` to the encoder's positions, and switch a BigBird to full attention.

    Block-sparse attention switches to full attention after the first short batch, gives a text different vectors in a
    batch with longer texts, and seeds NumPy's global generator in every pass. On one thread, full attention takes as
    long for 1,024 tokens and twice as long for 4,096.
    """
    encoder: Any = model.transformers_model
    if getattr(encoder, "attention_type", None) == "block_sparse":
        encoder.set_attention_type("original_full")
        encoder.config.attention_type = "original_full"  # saved with the model
    if not isinstance(model[0], Router):  # the encoders of a Router have different limits
        length = readable_length(model)  # a tokenizer may have no limit
        if length is not None and length != model.max_seq_length:
            model.max_seq_length = length


def check_encodes(model: SentenceTransformer, name: str) -> None:
    """Check that a model can encode batches of documents."""
    if not isinstance(model[0], (Transformer, StaticEmbedding)):
        raise ModelError(f"{name!r} begins with {type(model[0]).__name__}, not a Transformer or StaticEmbedding.")
    if is_static(model):
        return
    if model.tokenizer.pad_token_id is None:
        raise ModelError(f"The model {name!r} has no padding token: set model.tokenizer.pad_token and save the model.")
    if (length := readable_length(model)) is not None:
        check_room(model, length, f"The model {name!r} reads {length} tokens")


def check_room(model: SentenceTransformer, length: int, claim: str) -> None:
    """Check that a length leaves room for text after special tokens and the document prompt.

    The error message begins with ``claim``, a sentence about the length.
    """
    if (used := reserved_tokens(model, document_prompt(model))) >= length:
        raise ConfigurationError(f"{claim}, but special tokens and the prompt take {used}, leaving no room for text.")


def lengthen(loaded: LoadedModel, max_length: int) -> bool:
    """Raise ``max_seq_length`` to ``max_length`` if the model has enough positions, and return whether it does.

    Many tokenizers have a lower limit than the encoder has positions: 512 instead of 8,192 in a ModernBERT.
    """
    model, positions = loaded.model, readable_tokens(loaded.model)
    if positions is not None and positions < max_length:
        return False
    length = model.max_seq_length
    if length is not None and length < max_length:
        logger.info("%s: max_seq_length raised from %s to %s.", loaded.name, f"{length:,}", f"{max_length:,}")
        model.max_seq_length = max_length
    return True


def _read_special_tokens_as_text(model: SentenceTransformer) -> None:
    tokenizer, prompts = model.tokenizer, model.prompts.values()
    if not any(token in (prompt or "") for token in tokenizer.all_special_tokens for prompt in prompts):
        tokenizer.split_special_tokens = True
        tokenizer.init_kwargs["split_special_tokens"] = True  # saved with the tokenizer


def _set_length(model: SentenceTransformer, name: str, length: int | None) -> None:
    if length is None or length >= NO_LIMIT:
        return
    positions = 0 if is_static(model) else readable_tokens(model)
    if positions is not None and length > positions:
        reads = "reads whole texts" if is_static(model) else f"has positions for {positions} tokens"
        raise ConfigurationError(f"max_seq_length={length}: {name!r} {reads}.")
    check_room(model, length, f"max_seq_length={length} tokens")
    model.max_seq_length = length


def _set_pooling(model: SentenceTransformer, name: str, mode: str) -> None:
    if isinstance(model[0], ChunkMean):
        model[0].pooling_mode = mode
        return
    for index, module in enumerate(model):
        if isinstance(module, Pooling):
            pooling = Pooling(module.embedding_dimension, pooling_mode=mode, include_prompt=module.include_prompt)
            model[index] = pooling.to(model.device)
            return
    raise ModelError(f"The model {name!r} has no Pooling module to set to {mode!r}: use pooling='keep'.")
