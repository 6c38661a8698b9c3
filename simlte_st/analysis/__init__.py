"""Looking into corpora and models: redundancy, attention by part of speech (SimLTE); layers, tokens (TA-SBERT)."""

from __future__ import annotations

from simlte_st.analysis.attention import (
    AttentionResult,
    DocumentAttention,
    WordWeight,
    document_attention,
    measure_attention,
)
from simlte_st.analysis.cls_attention import cls_attention
from simlte_st.analysis.figures import Span, write_attention_map, write_bars, write_heat_map
from simlte_st.analysis.layers import (
    LayerSimilarity,
    layers_table,
    measure_layers,
    token_layers,
    write_layer_lines,
    write_token_lines,
)
from simlte_st.analysis.reading import TokenizedText
from simlte_st.analysis.redundancy import RedundancyResult, measure_redundancy, redundancy
from simlte_st.analysis.tagging import SpacyTagger, TaggedWord, Tagger
from simlte_st.analysis.token_weights import token_weights

__all__ = [
    "AttentionResult",
    "DocumentAttention",
    "LayerSimilarity",
    "RedundancyResult",
    "SpacyTagger",
    "Span",
    "TaggedWord",
    "Tagger",
    "TokenizedText",
    "WordWeight",
    "cls_attention",
    "document_attention",
    "layers_table",
    "measure_attention",
    "measure_layers",
    "measure_redundancy",
    "redundancy",
    "token_layers",
    "token_weights",
    "write_attention_map",
    "write_bars",
    "write_heat_map",
    "write_layer_lines",
    "write_token_lines",
]
