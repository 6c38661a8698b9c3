"""Looking into corpora and models: redundancy of documents, and what ``[CLS]`` attends to (SimLTE, appendices)."""

from __future__ import annotations

from simlte_st.analysis.alignment import Aligned, WordWeight, align
from simlte_st.analysis.attention import AttentionResult, measure_attention, read_document
from simlte_st.analysis.attention_rows import cls_attention
from simlte_st.analysis.figures import HeatMapPanel, write_bars, write_heat_map
from simlte_st.analysis.readings import Reading, read_texts
from simlte_st.analysis.redundancy import RedundancyResult, measure_redundancy, redundancy
from simlte_st.analysis.tagging import SpacyTagger, TaggedWord, Tagger

__all__ = [
    "Aligned",
    "AttentionResult",
    "HeatMapPanel",
    "Reading",
    "RedundancyResult",
    "SpacyTagger",
    "TaggedWord",
    "Tagger",
    "WordWeight",
    "align",
    "cls_attention",
    "measure_attention",
    "measure_redundancy",
    "read_document",
    "read_texts",
    "redundancy",
    "write_bars",
    "write_heat_map",
]
