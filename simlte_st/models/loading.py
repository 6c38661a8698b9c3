"""Loading a model from where it is, with the pooling and the length that are wanted."""

from __future__ import annotations

import logging
import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, cast

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.util import is_sentence_transformer_model

from simlte_st.backbones.registry import backbone_of
from simlte_st.compat import document_prompt, load_stock, readable_length, readable_tokens, taken_tokens
from simlte_st.errors import ConfigurationError, MissingExtraError, ModelError
from simlte_st.files import MODEL_FILE, is_model, valid_unicode
from simlte_st.models.names import hub_repositories, not_loaded
from simlte_st.modules import OWN_MODULES

logger = logging.getLogger(__name__)

_FORESEEN = (OSError, ValueError, SafetensorError)
"""What the libraries raise of a model that cannot be loaded, in words that can be passed on."""

_SETTINGS = "config_sentence_transformers.json"  # what sentence-transformers writes beside modules.json


@dataclass(frozen=True)
class LoadedModel:
    """A model, and what is known of it from loading it.

    Attributes:
        model: The model.
        name: What the user called it.
        source: Its folder, or its name on the Hub.
        tuned: Whether it is a sentence encoder already (it came with sentence-transformers' ``modules.json``), as
            opposed to a bare language model.
        drawn: Whether its checkpoint lacks weights, such as a pooler's, which were drawn at random.
    """

    model: SentenceTransformer
    name: str
    source: str
    tuned: bool
    drawn: bool = False

    def copy(self, pooling: str = "keep", max_seq_length: int | None = None) -> LoadedModel:
        """Make another model of this one, which is not changed.

        Where loading draws weights it is loaded again, so that each model has its own, and a run draws the same numbers
        from its seed as ever.
        """
        length = max_seq_length or self.model.max_seq_length
        if self.drawn:
            dtype = next(self.model.parameters()).dtype
            return load_from(self.source, self.name, pooling, length, dtype, str(self.model.device))
        model = deepcopy(self.model)
        if pooling != "keep":
            _set_pooling(model, self.name, pooling)
        _set_length(model, self.name, length)
        return LoadedModel(model, self.name, self.source, self.tuned)


def load_from(
    source: str,
    name: str,
    pooling: str = "keep",
    max_seq_length: int | None = None,
    dtype: torch.dtype | None = None,
    device: str | None = None,
) -> LoadedModel:
    """Load a model from where it is."""
    numbers = torch.get_rng_state()
    if valid_unicode(source) != source:
        raise not_loaded(name, "the name of its folder is no UTF-8, and libraries open no other. Rename it.")
    if Path(source, _SETTINGS).is_file() and not is_model(Path(source)):
        raise not_loaded(name, f"{MODEL_FILE} is missing, so that nobody knows how it pools. Fetch or make it again.")
    try:
        model = load_stock(source, OWN_MODULES, device=device, model_kwargs={} if dtype is None else {"dtype": dtype})
    except (MissingExtraError, MemoryError):
        raise
    except Exception as error:  # what is damaged breaks the libraries anywhere, with any error of theirs
        said = isinstance(error, _FORESEEN)  # then the chain has nothing that the message has not
        raise not_loaded(name, _problem(error)) from (None if said else error)
    _check_weights(model, name)
    check_encodes(model, name)
    if not isinstance(model[0], Transformer):
        raise ModelError(f"The model {name!r} begins with {type(model[0]).__name__}, not with a Transformer.")
    tuned, drawn = _is_tuned(source), not torch.equal(numbers, torch.get_rng_state())
    _read_marks_as_text(model)
    if pooling != "keep" or not tuned:
        _set_pooling(model, name, "cls" if pooling == "keep" else pooling)
    # A tokenizer may know of no limit.
    _set_length(model, name, max_seq_length or readable_length(model))
    return LoadedModel(model, name, source, tuned, drawn)


def check_encodes(model: SentenceTransformer, name: str) -> None:
    """Check, before any work, that a model can read documents of different lengths together."""
    if isinstance(model[0], Router):
        raise ModelError(
            f"The model {name!r} begins with separate encoders ({', '.join(model[0].sub_modules)}). Save the one for "
            "documents as a model of its own: SentenceTransformer(modules=list(model[0].sub_modules['document'])), "
            "followed by the model's other modules."
        )
    if not isinstance(model[0], Transformer):
        return
    if model.tokenizer.pad_token_id is None:
        raise ModelError(
            f"The model {name!r} has no padding token, so that texts of different lengths cannot be read together. "
            "Give it one and save it: model.tokenizer.pad_token = model.tokenizer.eos_token."
        )
    length = readable_length(model)
    if length is not None:
        check_room(model, length, f"The model {name!r} reads {length} tokens")


def check_room(model: SentenceTransformer, length: int, said: str) -> None:
    """Check that there is room for a text beside special tokens and the prompt for documents."""
    prompt = document_prompt(model)
    if (taken := taken_tokens(model, prompt)) >= length:
        beside = f"and the prompt {prompt[:40]!r} " if prompt else ""
        advice = " Shorten the prompt, or raise max_seq_length." if prompt else ""
        raise ConfigurationError(
            f"{said}, of which special tokens {beside}take {taken}: there is no room for a text.{advice}"
        )


def check_symmetric(model: SentenceTransformer, name: str) -> None:
    """Check that a model treats all texts alike."""
    if any(isinstance(module, Router) for module in model.modules()):
        raise ModelError(
            f"The model {name!r} has separate modules for questions and documents (Router), and only one kind of text "
            "is read here. Put the modules for documents in the place of the Router, and save that as a model."
        )


def _read_marks_as_text(model: SentenceTransformer) -> None:
    tokenizer = model.tokenizer
    if not any(mark in (prompt or "") for mark in tokenizer.all_special_tokens for prompt in model.prompts.values()):
        tokenizer.split_special_tokens = True
        tokenizer.init_kwargs["split_special_tokens"] = True  # what is saved


def _problem(error: Exception) -> str:
    """Tell what an error of the libraries says about a model."""
    if isinstance(error, UnpicklingError):  # the library's own words advise to read it all the same
        return (
            "its weights are a pickle that is damaged or holds more than tensors. It is not read further: that could "
            "run code. Get the model as model.safetensors."
        )
    if isinstance(error, _FORESEEN):
        return str(error)
    return f"it is incomplete or damaged ({type(error).__name__}: {error})."


def _check_weights(model: SentenceTransformer, name: str) -> None:
    """Check what would otherwise show much later: as vectors that are no numbers, or as an index out of range."""
    bad = [key for key, weight in model.named_parameters() if not torch.isfinite(weight).all()]
    if bad:
        raise ModelError(
            f"The model {name!r} is damaged: {len(bad)} of its tensors hold numbers that are not finite ({bad[0]}, "
            "...). Fetch or make it again."
        )
    embeddings = model[0].auto_model.get_input_embeddings() if isinstance(model[0], Transformer) else None
    if isinstance(embeddings, torch.nn.Embedding):
        highest = max(model.tokenizer.get_vocab().values(), default=0)
        if highest >= embeddings.num_embeddings:
            raise ModelError(
                f"The model {name!r} has embeddings for {embeddings.num_embeddings:,} tokens, and its tokenizer gives "
                f"numbers up to {highest:,}: they do not belong together, or tokens were added without "
                "resize_token_embeddings()."
            )


def lengthen(loaded: LoadedModel, max_length: int) -> bool:
    """Let a model read as many tokens as are wanted, in place, where it has the positions for them.

    A tokenizer may cut texts long before the positions end: that of a ModernBERT with 8,192 positions after 512 tokens,
    or that of a sentence encoder which was tuned on short texts. ``max_seq_length`` is then raised, which is logged and
    saved with the model. A model that reads more than is wanted stays as it is.
    """
    model, positions = loaded.model, readable_tokens(loaded.model)
    if positions is not None and positions < max_length:
        return False
    length = model.max_seq_length
    if length is not None and length < max_length:
        logger.info(
            "%s was set to read %s tokens and has positions for %s: it now reads %s.",
            loaded.name, f"{length:,}", "any number" if positions is None else f"{positions:,}", f"{max_length:,}",
        )  # fmt: skip
        model.max_seq_length = max_length
    return True


def _set_length(model: SentenceTransformer, name: str, length: int | None) -> None:
    positions = readable_tokens(model)
    if length is not None and positions is not None and length > positions:
        raise ConfigurationError(f"max_seq_length={length}: {name!r} has positions for {positions} tokens.")
    if length is not None:
        check_room(model, length, f"max_seq_length={length} tokens")
        model.max_seq_length = length


def _is_tuned(source: str) -> bool:
    # Loading a model of the Hub has just put the file into the cache, if the repository has it.
    cache = os.environ.get("SENTENCE_TRANSFORMERS_HOME")
    places = (source,) if Path(source).exists() else hub_repositories(source)
    return any(is_sentence_transformer_model(place, cache_folder=cache, local_files_only=True) for place in places)


def _set_pooling(model: SentenceTransformer, name: str, mode: str) -> None:
    if backbone_of(cast(Any, model[0]).auto_model).pooled_inside and mode != "cls":
        raise ModelError(
            f"The model {name!r} pools inside its encoder, which cannot be set to {mode!r} "
            "any more; use pooling='keep', or convert it anew with the pooling that you want."
        )
    for index, module in enumerate(model):
        if isinstance(module, Pooling):
            pooling = Pooling(module.embedding_dimension, pooling_mode=mode, include_prompt=module.include_prompt)
            model[index] = pooling.to(model.device)
            return
    raise ModelError(f"The model {name!r} has no Pooling module to set to {mode!r}; use pooling='keep'.")
