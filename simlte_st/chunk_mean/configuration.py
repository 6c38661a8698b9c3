"""Configuration of a chunk mean: the encoder that it reads through, and how it splits and averages."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, get_args

from transformers import AutoConfig, PretrainedConfig

from simlte_st.chunk_mean.backbone import ChunkMean, ChunkWeights
from simlte_st.config import check_choice, check_count
from simlte_st.errors import ConfigurationError


class SimlteChunkMeanConfig(PretrainedConfig):
    """Configuration of a :class:`~simlte_st.chunk_mean.SimlteChunkMeanModel`.

    Args:
        encoder_config: Configuration of the encoder, or its fields with their ``model_type``.
        pooling_mode: How the states of a chunk become its embedding: one mode of sentence-transformers' ``Pooling``.
        include_prompt: Whether the tokens of a prompt are pooled too, as in ``Pooling``.
        normalize_chunks: Whether chunk embeddings are scaled to length 1 before their mean.
        chunk_length: Tokens in a chunk, special tokens included.
        chunk_overlap: Tokens that a chunk shares with the one before.
        chunk_weights: Weight of a chunk in the mean: ``"tokens"``, the number of its tokens (special tokens and prompt
            not counted), or ``"equal"``, the same for all.
        max_position_embeddings: Tokens to read of a document, special tokens included. sentence-transformers caps
            ``max_seq_length`` at it; the model itself has no limit.
        **kwargs: The fields that all configurations of transformers share.

    Raises:
        ConfigurationError: An unknown ``chunk_weights``, a chunk without room for a token beside two special tokens and
            the overlap, a negative overlap, or a length below 1.
    """

    model_type = ChunkMean.model_type
    sub_configs: ClassVar[dict[str, Any]] = {"encoder_config": AutoConfig}
    has_no_defaults_at_init = True

    def __init__(
        self,
        encoder_config: PretrainedConfig | dict[str, Any],
        pooling_mode: str = "mean",
        include_prompt: bool = True,
        normalize_chunks: bool = False,
        chunk_length: int = 512,
        chunk_overlap: int = 0,
        chunk_weights: ChunkWeights = "tokens",
        max_position_embeddings: int = 4096,
        **kwargs: Any,
    ) -> None:
        if isinstance(encoder_config, dict):
            encoder_config = AutoConfig.for_model(**encoder_config)
        self.encoder_config: PretrainedConfig = encoder_config
        self.pooling_mode = pooling_mode
        self.include_prompt = include_prompt
        self.normalize_chunks = normalize_chunks
        self.chunk_length = chunk_length
        self.chunk_overlap = chunk_overlap
        self.chunk_weights: ChunkWeights = chunk_weights
        self.max_position_embeddings = max_position_embeddings
        super().__init__(**kwargs)
        check_choice("weights", chunk_weights, get_args(ChunkWeights))
        check_count("overlap", chunk_overlap, least=0)
        if chunk_length < chunk_overlap + 3:
            raise ConfigurationError(
                f"chunk_length={chunk_length}: must be at least {chunk_overlap + 3}, for two special tokens, "
                f"overlap={chunk_overlap} and a new token."
            )
        check_count("max_length", max_position_embeddings)

    @property
    def usable_length(self) -> int:
        """Largest number of tokens of a document, special tokens included, that are read."""
        return self.max_position_embeddings

    @property
    def hidden_size(self) -> int:
        """Size of the encoder's states, and of the embedding."""
        return int(self.encoder_config.hidden_size)

    @property
    def vocab_size(self) -> int:
        """Size of the encoder's vocabulary; transformers sets it when word embeddings are added."""
        return int(self.encoder_config.vocab_size)

    @vocab_size.setter
    def vocab_size(self, value: int) -> None:
        self.encoder_config.vocab_size = value

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, without the path of the encoder: it means nothing on another machine."""
        fields: dict[str, Any] = super().to_dict()
        nameless = copy.deepcopy(self.encoder_config)
        nameless.name_or_path = ""
        fields["encoder_config"] = nameless.to_dict()
        return fields
