"""Training losses: contrastive plus masked language modelling (DocSplit), reconstruction, and mined triplets."""

from simlte_st.losses.cached_multiple_negatives_ranking_mlm import CachedMultipleNegativesRankingMLMLoss
from simlte_st.losses.multi_similarity_triplet import MultiSimilarityTripletLoss
from simlte_st.losses.multiple_negatives_ranking_mlm import MultipleNegativesRankingMLMLoss
from simlte_st.losses.reconstruction import ReconstructionLoss

__all__ = [
    "CachedMultipleNegativesRankingMLMLoss",
    "MultiSimilarityTripletLoss",
    "MultipleNegativesRankingMLMLoss",
    "ReconstructionLoss",
]
