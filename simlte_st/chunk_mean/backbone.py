"""The chunk mean as a backbone: what it is, and the settings of a conversion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from simlte_st.backbones.base import Backbone
from simlte_st.config import setting

WHOLE_DOCUMENTS = 32_768
"""Number of tokens that a model reads in chunks by default. It bounds the memory: a batch of 32 such documents, with
384 numbers a token, takes about 5 GB."""


@dataclass(frozen=True, kw_only=True)
class ChunkMean(Backbone):
    """An encoder stays as it is and reads a document in chunks, whose embeddings are averaged."""

    model_type: ClassVar[str] = "simlte_chunk_mean"
    pooled_inside: ClassVar[bool] = True
    reading: ClassVar[str] = "a model that reads in chunks, up to {:,} tokens of a document"

    chunk_length: int | None = setting(
        None, "tokens in a chunk, special tokens included", default_help="as many as the encoder reads"
    )
