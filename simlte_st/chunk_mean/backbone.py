"""The chunk mean as a backbone: its settings, and a sentence encoder to a folder of one that reads in chunks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from simlte_st.backbones.base import Backbone
from simlte_st.errors import ConfigurationError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

WHOLE_DOCUMENTS = 32_768
"""Tokens that a model reads in chunks where nothing else is said. It bounds the memory: a batch of 32 documents of so
many, with 384 numbers a token, takes about 5 GB."""

ChunkWeights = Literal["tokens", "equal"]


@dataclass(frozen=True)
class ChunkMean(Backbone):
    """An encoder stays as it is and reads a document in chunks, whose embeddings are averaged.

    Args:
        chunk_length: Tokens in a chunk, special tokens included; by default as many as the encoder reads.
        overlap: Tokens that a chunk shares with the one before; 0 by default.
        chunk_weights: What a chunk counts in the mean: ``"tokens"``, the default, as many times as it has tokens;
            ``"equal"``, once.
    """

    model_type: ClassVar[str] = "simlte_chunk_mean"
    pooled_inside: ClassVar[bool] = True

    chunk_length: int | None = None
    overlap: int = 0
    chunk_weights: ChunkWeights = "tokens"

    @classmethod
    def register(cls) -> None:
        """Register the architecture with transformers' Auto classes."""
        from transformers import AutoConfig, AutoModel

        from simlte_st.chunk_mean.configuration import SimlteChunkMeanConfig
        from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel

        AutoConfig.register(cls.model_type, SimlteChunkMeanConfig, exist_ok=True)
        AutoModel.register(SimlteChunkMeanConfig, SimlteChunkMeanModel, exist_ok=True)

    @classmethod
    def language_model(cls, encoder: PreTrainedModel) -> PreTrainedModel:
        """Return the encoder of the chunks: its checkpoint may have the head of a masked language model."""
        return cast("PreTrainedModel", encoder.encoder)

    def reading(self, max_length: int) -> str:
        """Say how a converted model reads so many tokens."""
        return f"a model that reads in chunks, up to {max_length:,} tokens of a document"

    def convert(self, model: SentenceTransformer, path: Path, max_length: int | None, tuned: bool) -> None:
        """Write a model as one that reads through its encoder in chunks; one that does so already may read more."""
        from simlte_st.chunk_mean.convert import read_longer, to_chunk_mean
        from simlte_st.compat import encoder_of

        length = max_length or WHOLE_DOCUMENTS
        if encoder_of(model).config.model_type != self.model_type:
            made = to_chunk_mean(model, length, self.chunk_length, self.overlap, self.chunk_weights)
        elif self == ChunkMean():
            made = read_longer(model, length)
        else:
            raise ConfigurationError(
                "The base reads in chunks already, and keeps how it does: leave out chunk_length=, overlap= and "
                "chunk_weights=, or convert the model that it was made of."
            )
        made.save_pretrained(str(path), create_model_card=False)
