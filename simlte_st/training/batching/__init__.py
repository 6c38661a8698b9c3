"""Which documents make a batch: random ones, ones that are alike, or as many as fit a number of tokens."""

from simlte_st.training.batching.base import ConfiguredBatchSampler, EpochPermutation, SeededBatchSampler
from simlte_st.training.batching.embeddings import DocumentEmbeddings
from simlte_st.training.batching.lengths import Padding, ViewLengths, measure_padding
from simlte_st.training.batching.refresh import EmbeddingRefreshCallback, embed_documents
from simlte_st.training.batching.similar import SimilarBatchSampler
from simlte_st.training.batching.tokens import TokenBudgetBatchSampler

__all__ = [
    "ConfiguredBatchSampler",
    "DocumentEmbeddings",
    "EmbeddingRefreshCallback",
    "EpochPermutation",
    "Padding",
    "SeededBatchSampler",
    "SimilarBatchSampler",
    "TokenBudgetBatchSampler",
    "ViewLengths",
    "embed_documents",
    "measure_padding",
]
