"""Which documents make a batch: random ones, or as many as fit a number of tokens."""

from simlte_st.training.batching.base import (
    ConfiguredBatchSampler,
    EpochPermutation,
    OrderedBatchSampler,
    SeededBatchSampler,
)
from simlte_st.training.batching.lengths import ViewLengths
from simlte_st.training.batching.tokens import TokenBudgetBatchSampler

__all__ = [
    "ConfiguredBatchSampler",
    "EpochPermutation",
    "OrderedBatchSampler",
    "SeededBatchSampler",
    "TokenBudgetBatchSampler",
    "ViewLengths",
]
