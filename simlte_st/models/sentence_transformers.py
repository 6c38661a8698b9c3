"""sentence-transformers' class with faster encoding and truncation warnings.

BERTopic and KeyBERT recognise a model by ``sentence_transformers`` in the name of its class's module, and silently
replace others with their default model: hence this module's name.
"""

from __future__ import annotations

import inspect
import logging
import os
from typing import Any

import sentence_transformers
from sentence_transformers.base.modules import Router
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from simlte_st.compat import NO_LIMIT, readable_tokens, register_modules, short_load_report
from simlte_st.errors import ConfigurationError
from simlte_st.models.limits import Truncation
from simlte_st.models.loading import adapt_encoder, loading_arguments
from simlte_st.models.passes import TextReader
from simlte_st.models.registration import named_folder
from simlte_st.models.static import LOADED, is_static
from simlte_st.modules.base import WeightedPooling
from simlte_st.modules.chunk_mean import ChunkMean

logger = logging.getLogger(__name__)


class SentenceTransformer(sentence_transformers.SentenceTransformer):
    """``sentence_transformers.SentenceTransformer`` with four additions.

    1. Names are looked up in this order: folders, the models of this package, the packaged base model, the Hub. The
       models of this package are unpacked on first use to ``SIMLTE_ST_HOME`` (default: the platform's cache folder).
    2. ``encode`` batches texts of similar token length, with almost no padding; ``batch_size`` applies to the longest
       texts, and shorter ones get larger batches. On AMD processors with AVX-512, float32 linear layers use
       oneDNN, which is about twice as fast as PyTorch's default there; the vectors differ by about 1e-7.
    3. The first time that it truncates texts, ``encode`` warns of their number and the share of truncated tokens.
       ``max_seq_length`` never exceeds the number of positions.
    4. On a CPU, 16-bit checkpoints compute in float32, unless ``model_kwargs={"dtype": ...}`` sets another dtype.

    After ``import simlte_st``, the stock class loads the same names and all saved models, including those with modules
    of this package (:mod:`simlte_st.modules`).

    Args:
        model_name_or_path: A folder or a name, for example ``"simlte-longformer"``.
        **options: Other arguments of the stock class.

    Raises:
        OSError: The model does not exist.
        ModelError: The base of this package's models is not installed.
        ConfigurationError: The folder for this package's models cannot be written.

    Example:
        ::

            from simlte_st import SentenceTransformer

            model = SentenceTransformer("simlte-longformer")
            vectors = model.encode(["A long document ...", "Another one ..."])
    """

    def __init__(self, model_name_or_path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        name = None if model_name_or_path is None else os.fspath(model_name_or_path)
        source, arguments = loading_arguments(name and (named_folder(name) or name), options)
        with short_load_report():
            super().__init__(source, **arguments)
        adapt_encoder(self)

    @property
    def max_seq_length(self) -> int | None:
        """Maximum number of tokens to read from a text, special tokens included; None for no limit."""
        length: int | None = super().max_seq_length
        return None if length is None or length >= NO_LIMIT else length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        """Set the length; raise a ConfigurationError if the model has fewer positions."""
        if is_static(self):
            if value is not None and value < NO_LIMIT:
                raise ConfigurationError(f"max_seq_length={value}: a static model reads whole texts.")
            return
        limit = readable_tokens(self)
        if value is not None and limit is not None and value > limit:
            name = Truncation.of(self).model or "MODEL"
            advice = f"To read more, convert it: simlte convert {name} --output LONGER"
            raise ConfigurationError(f"max_seq_length={value}: the model has positions for {limit} tokens. {advice}")
        length = VERY_LARGE_INTEGER if value is None else value
        sentence_transformers.SentenceTransformer.max_seq_length.fset(self, length)  # type: ignore[attr-defined]

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Include or exclude prompts as the stock class does, including in this package's pooling modules."""
        super().set_pooling_include_prompt(include_prompt)
        for module in self:
            if isinstance(module, (WeightedPooling, ChunkMean)):
                module.include_prompt = include_prompt

    def encode(self, *args: Any, **options: Any) -> Any:
        """Encode as the stock class does, in batches of similar length, and warn about truncation."""
        # A TextReader's copy of the model has its own preprocess.
        if "preprocess" in vars(self) or any(isinstance(module, Router) for module in self):
            return super().encode(*args, **options)
        call = inspect.signature(sentence_transformers.SentenceTransformer.encode).bind(self, *args, **options)
        call.apply_defaults()
        arguments = call.arguments
        single = self.is_singular_input(arguments["inputs"])
        if not single:
            arguments["inputs"] = list(arguments["inputs"])
        texts = [arguments["inputs"]] if single else arguments["inputs"]
        in_process = arguments["pool"] is None and not isinstance(arguments["device"], list)
        embeds = in_process and arguments["output_value"] == "sentence_embedding"
        reader = TextReader(self, arguments["batch_size"], texts, embeds)
        arguments.update(self=reader.model, batch_size=reader.batch_size)
        vectors = sentence_transformers.SentenceTransformer.encode(*call.args, **call.kwargs)
        reported = vars(self).setdefault("_reported_lengths", set())
        if (truncation := reader.truncation) and truncation.cut_texts and truncation.max_seq_length not in reported:
            reported.add(truncation.max_seq_length)  # once rather than at each call
            logger.warning("%s %s", truncation.summary(), truncation.advice)
        return vectors


register_modules(SentenceTransformer, LOADED)
