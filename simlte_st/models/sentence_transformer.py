"""sentence-transformers' own class, which also finds our names and says what it cut."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import sentence_transformers
from torch import Tensor
from transformers.tokenization_utils_base import VERY_LARGE_INTEGER

from simlte_st.compat import NO_LIMIT, load_modules_of, readable_length, readable_tokens
from simlte_st.errors import ConfigurationError
from simlte_st.models.base import find_model
from simlte_st.models.cards import complete_model_card
from simlte_st.models.names import OWN_MODELS, local_folder, not_loaded
from simlte_st.models.truncation import Truncation, text_lengths
from simlte_st.modules import OWN_MODULES
from simlte_st.modules.pooling import WeightedPooling

logger = logging.getLogger(__name__)


class SentenceTransformer(sentence_transformers.SentenceTransformer):
    """``sentence_transformers.SentenceTransformer`` with three additions.

    1. A name is looked for among folders, the models that ``simlte train --name`` left (in ``SIMLTE_ST_HOME``, else in
       the platform's cache place), the models that packages carry, and the Hub, in this order. The models of this
       package are put together from their base when they are first asked for, and kept beside the others.
    2. ``encode`` logs a warning when it had to cut texts: how many, and what share of all tokens. ``max_seq_length``
       never exceeds the positions that the model has.
    3. Models with modules of this package (:mod:`simlte_st.modules`) load; the stock class wants
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
        self._encodes = False  # whether preprocess is called by encode
        self._truncation: Truncation | None = None
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
        """Encode as the stock class does, and log what was cut."""
        self._encodes, self._truncation = True, None
        try:
            vectors = super().encode(*args, **options)
        finally:
            self._encodes = False
        if self._truncation is not None and self._truncation.cut_texts:
            logger.warning("%s %s", self._truncation.summary(), self._truncation.advice)
        return vectors

    def preprocess(self, inputs: Any, prompt: str | None = None, **options: Any) -> dict[str, Any]:
        """Tokenize as the stock class does, and count what is cut."""
        features: dict[str, Any] = super().preprocess(inputs, prompt=prompt, **options)
        if self._encodes:
            self._count(inputs, prompt or "", features)
        return features

    def _count(self, inputs: Any, prompt: str, features: dict[str, Any]) -> None:
        lengths = _lengths(features)
        if self.max_seq_length is None or lengths is None or len(lengths) != len(inputs):
            return
        if self._truncation is None:
            self._truncation = Truncation.of(self, prompt=prompt)
        # Only a text that fills the model can have been cut: the others are not tokenized again.
        limit = self.max_seq_length
        full = [row for row, length in enumerate(lengths) if length >= limit and isinstance(inputs[row], str)]
        lengths = [length - self._truncation.taken for length in lengths]
        for row, length in zip(full, text_lengths(self, [inputs[row] for row in full], prompt), strict=True):
            lengths[row] = length
        self._truncation.add(lengths)


load_modules_of(SentenceTransformer, OWN_MODULES)


def _lengths(features: dict[str, Any]) -> list[int] | None:
    """Count the tokens of each text, of a padded or a flattened batch; None for what is not text."""
    bounds, mask = features.get("cu_seq_lens_q"), features.get("attention_mask")
    if isinstance(bounds, Tensor):
        return [int(length) for length in bounds.diff().tolist()]
    if isinstance(mask, Tensor) and mask.dim() == 2:
        return [int(length) for length in mask.sum(1).tolist()]
    return None
