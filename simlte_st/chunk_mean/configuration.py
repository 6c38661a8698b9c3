"""Configuration of a chunk mean: the encoder that it reads through, and how it splits and averages."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

from transformers import AutoConfig, PretrainedConfig

from simlte_st.chunk_mean.backbone import ChunkMean
from simlte_st.config import check_count
from simlte_st.errors import ConfigurationError


class SimlteChunkMeanConfig(PretrainedConfig):
    """Configuration of a :class:`~simlte_st.chunk_mean.SimlteChunkMeanModel`.

    Args:
        encoder_config: Configuration of the encoder, or its fields with their ``model_type``.
        pooling_mode: How the states of a chunk become its embedding: one mode of sentence-transformers' ``Pooling``.
        include_prompt: Whether the tokens of a prompt are pooled too, as in ``Pooling``.
        normalize_chunks: Whether chunk embeddings are scaled to length 1 before their mean.
        chunk_length: Tokens in a chunk, special tokens included.
        max_position_embeddings: Tokens to read of a document, special tokens included. sentence-transformers caps
            ``max_seq_length`` at it; the model itself has no limit.
        **kwargs: The fields that all configurations of transformers share.

    Raises:
        ConfigurationError: A chunk without room for a token beside two special tokens, or a length below 1; or a model
            of an older version whose chunks overlap or have equal weights.
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
        self.max_position_embeddings = max_position_embeddings
        if kwargs.pop("chunk_overlap", 0) or kwargs.pop("chunk_weights", "tokens") != "tokens":
            raise ConfigurationError("Chunks that overlap or have equal weights are not supported any more.")
        super().__init__(**kwargs)
        check_count("chunk_length", chunk_length, least=3)  # two special tokens and one of the text
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
