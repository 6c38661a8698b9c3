"""The protocol of a backbone: what others ask an architecture, with the answers of a stock encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:  # the command line reads the settings of backbones, and shall not wait for torch
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

MAX_LENGTH = 4096
"""Tokens that a converted Longformer reads where nothing else is said: the papers'."""


class Backbone:
    """An architecture of encoders. This class describes the stock ones.

    An architecture of this package that reads long documents has a subclass in its room, a frozen dataclass whose
    fields are the settings of a conversion, and a line in :data:`~simlte_st.backbones.registry.BACKBONES`. Its
    configuration has a property ``usable_length``: the tokens of a document that it reads.

    Attributes:
        model_type: What transformers calls the architecture.
        replaces: Stock architectures that this one computes as well, and faster.
        pooled_inside: Whether the encoder pools by itself: its first token's state is the embedding of the document,
            and no other pooling can be chosen once it is made.
        packed: Whether padding costs no time.
    """

    model_type: ClassVar[str] = ""
    replaces: ClassVar[tuple[str, ...]] = ()
    pooled_inside: ClassVar[bool] = False
    packed: ClassVar[bool] = False

    @classmethod
    def register(cls) -> None:
        """Register the architecture with transformers' Auto classes."""

    @classmethod
    def language_model(cls, encoder: PreTrainedModel) -> PreTrainedModel:
        """Return the encoder whose checkpoint has the head of a masked language model, if one does."""
        return encoder

    @classmethod
    def mlm_head(cls, encoder: PreTrainedModel) -> tuple[str, str, str, str] | None:
        """Say where the ForMaskedLM class of an encoder keeps its head: dense, activation, layer norm, decoder."""
        from simlte_st.compat import MLM_HEADS

        return MLM_HEADS.get(encoder.config.model_type)

    def reading(self, max_length: int) -> str:
        """Say how a converted model reads so many tokens."""
        raise NotImplementedError

    def convert(self, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
        """Write a model as one of this architecture.

        Args:
            model: The model to convert; it is not changed.
            path: The folder to write, which is there and empty.
            max_length: Tokens that the new model reads, special tokens included; None is what the architecture has as
                its default, or what a model of one that is replaced reads.
            tuned: Whether the model is a sentence encoder, as opposed to a bare language model.

        Raises:
            ModelError: It cannot be converted; the message says why.
            ConfigurationError: A setting is out of its range.
        """
        raise NotImplementedError
