"""sentence-transformers' own class, which also finds our names and says what it cut."""

from __future__ import annotations

import inspect
import logging
import os
from pathlib import Path
from typing import Any

import sentence_transformers
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from simlte_st.compat import NO_LIMIT, load_modules_of, readable_length, readable_tokens
from simlte_st.errors import ConfigurationError
from simlte_st.models.base import find_model
from simlte_st.models.cards import complete_model_card
from simlte_st.models.names import OWN_MODELS, local_folder, not_loaded
from simlte_st.models.passes import TextReader, is_read
from simlte_st.models.truncation import Truncation
from simlte_st.modules import OWN_MODULES
from simlte_st.modules.pooling import WeightedPooling

logger = logging.getLogger(__name__)


class SentenceTransformer(sentence_transformers.SentenceTransformer):
    """``sentence_transformers.SentenceTransformer`` with four additions.

    1. A name is looked for among folders, the models that ``simlte train --name`` left (in ``SIMLTE_ST_HOME``, else in
       the platform's cache place), the models that packages carry, and the Hub, in this order. The models of this
       package are put together from their base when they are first asked for, and kept beside the others.
    2. ``encode`` puts texts of like lengths together by their tokens, with next to no padding: ``batch_size`` is how
       many of the longest may go through the model at once. On AMD's processors with AVX-512 it computes linear layers
       in float32 by oneDNN, twice as fast as PyTorch does there; numbers of a vector differ by some 1e-7.
    3. It logs a warning when it had to cut texts: how many, and what share of all tokens. ``max_seq_length`` never
       exceeds the positions that the model has.
    4. Models with modules of this package (:mod:`simlte_st.modules`) load; the stock class wants
       ``trust_remote_code=True`` for them, and this package installed.

    Models saved with it are stock models, but for such modules; their cards say what it takes to load them.

    Args:
        model_name_or_path: A folder or a name, for example ``"simlte-longformer"``.
        **options: As in the stock class.

    Raises:
        ModelError: There is no such model. Or one of this package cannot be put together: the message says what to
            install.
        ConfigurationError: It can be put together nowhere, since nothing can be written.

    Example:
        ::

            from simlte_st import SentenceTransformer

            model = SentenceTransformer("simlte-longformer")
            vectors = model.encode(["A long document ...", "Another one ..."])
    """

    def __init__(self, model_name_or_path: str | os.PathLike[str] | None = None, **options: Any) -> None:
        name = None if model_name_or_path is None else os.fspath(model_name_or_path)
        if name in OWN_MODELS:
            name = find_model(name)
        elif name is not None:  # other names of the Hub are left to the stock class, which has options for them
            name = local_folder(name) or name
        if name is not None and not options.get("trust_remote_code"):  # a folder's name is nothing to ask the Hub for
            options.setdefault("local_files_only", os.path.isdir(name))
        try:
            super().__init__(name, **options)
        except OSError as error:
            if name is None or os.path.isdir(name):
                raise
            raise not_loaded(name, f"there is no such folder. {str(error).splitlines()[0]}") from None
        length = readable_length(self)
        if length != self.max_seq_length:
            self.max_seq_length = length

    @property
    def max_seq_length(self) -> int | None:
        """Tokens that are read of a text, special tokens included; None where nothing bounds it."""
        length: int | None = super().max_seq_length
        return None if length is None or length >= NO_LIMIT else length

    @max_seq_length.setter
    def max_seq_length(self, value: int | None) -> None:
        """Set it.

        Raises:
            ConfigurationError: The model does not have so many positions.
        """
        limit = readable_tokens(self)
        if value is not None and limit is not None and value > limit:
            name = Truncation.of(self).model or "MODEL"
            raise ConfigurationError(
                f"max_seq_length={value}: the model has positions for {limit} tokens. "
                f"A longer one is made with: simlte convert {name} --max-length {value} --output LONGER"
            )
        stated = VERY_LARGE_INTEGER if value is None else value
        sentence_transformers.SentenceTransformer.max_seq_length.fset(self, stated)  # type: ignore[attr-defined]

    def save(
        self, path: str, model_name: str | None = None, create_model_card: bool = True, *args: Any, **options: Any
    ) -> None:
        """Save as the stock class does, with a card that says what of this package it takes to load the model."""
        super().save(path, model_name, create_model_card, *args, **options)
        if create_model_card:
            complete_model_card(Path(path))

    def set_pooling_include_prompt(self, include_prompt: bool) -> None:
        """Set it as the stock class does, of this package's poolings too."""
        super().set_pooling_include_prompt(include_prompt)
        for module in self:
            if isinstance(module, WeightedPooling):
                module.include_prompt = include_prompt

    def encode(self, *args: Any, **options: Any) -> Any:
        """Encode as the stock class does, in passes of texts of like lengths, and log what was cut."""
        if is_read(self):
            return super().encode(*args, **options)
        call = inspect.signature(sentence_transformers.SentenceTransformer.encode).bind(self, *args, **options)
        call.apply_defaults()
        given = call.arguments
        single = self.is_singular_input(given["inputs"])
        if not single:
            given["inputs"] = list(given["inputs"])
        texts = [given["inputs"]] if single else given["inputs"]
        here = given["pool"] is None and not isinstance(given["device"], list)
        reader = TextReader(
            self, given["batch_size"], texts, embeds=here and given["output_value"] == "sentence_embedding"
        )
        given.update(self=reader.model, batch_size=reader.batch_size)
        vectors = sentence_transformers.SentenceTransformer.encode(*call.args, **call.kwargs)
        if reader.truncation is not None and reader.truncation.cut_texts:
            logger.warning("%s %s", reader.truncation.summary(), reader.truncation.advice)
        return vectors


load_modules_of(SentenceTransformer, OWN_MODULES)
