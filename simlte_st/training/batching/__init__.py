"""Which documents make a batch: random ones, random ones without copies, or as many as fit a number of tokens."""

from simlte_st.training.batching.base import ConfiguredBatchSampler, EpochPermutation, SeededBatchSampler
from simlte_st.training.batching.lengths import Padding, ViewLengths, measure_padding
from simlte_st.training.batching.separated import SeparatedBatchSampler
from simlte_st.training.batching.tokens import TokenBudgetBatchSampler

__all__ = [
    "ConfiguredBatchSampler",
    "EpochPermutation",
    "Padding",
    "SeededBatchSampler",
    "SeparatedBatchSampler",
    "TokenBudgetBatchSampler",
    "ViewLengths",
    "measure_padding",
]
