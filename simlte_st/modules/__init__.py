"""Modules for a SentenceTransformer, each usable on its own."""

from simlte_st.modules.base_form import BaseForm, expand_contractions
from simlte_st.modules.chunk_mean import ChunkMean, to_chunk_mean
from simlte_st.modules.position_pooling import PositionPooling
from simlte_st.modules.star_transformer import StarTransformer
from simlte_st.modules.token_attention import TokenAttention
from simlte_st.modules.token_table import TokenTable

OWN_MODULES = (
    BaseForm, ChunkMean, PositionPooling, StarTransformer, TokenAttention, TokenTable
)  # fmt: skip
"""All modules. After ``import simlte_st``, sentence-transformers loads them without ``trust_remote_code``."""

__all__ = ["BaseForm", "ChunkMean", "PositionPooling", "StarTransformer", "TokenAttention", "TokenTable"]
__all__ += ["OWN_MODULES", "expand_contractions", "to_chunk_mean"]
