"""Long documents through short encoders: the mean of chunk embeddings. Importing this registers the architecture."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from transformers import AutoConfig, AutoModel

from simlte_st.chunk_mean.configuration import SimlteChunkMeanConfig
from simlte_st.chunk_mean.modeling import SimlteChunkMeanModel

if TYPE_CHECKING:
    from simlte_st.chunk_mean.convert import to_chunk_mean

AutoConfig.register(SimlteChunkMeanConfig.model_type, SimlteChunkMeanConfig, exist_ok=True)
AutoModel.register(SimlteChunkMeanConfig, SimlteChunkMeanModel, exist_ok=True)

__all__ = ["SimlteChunkMeanConfig", "SimlteChunkMeanModel", "to_chunk_mean"]


def __getattr__(name: str) -> Any:
    # On first use: it imports sentence-transformers, in the middle of whose own import this package may be registered.
    if name == "to_chunk_mean":
        return importlib.import_module("simlte_st.chunk_mean.convert").to_chunk_mean
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
