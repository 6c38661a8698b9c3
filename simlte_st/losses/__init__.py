"""Losses: DocSplit's contrastive term with a masked-language-model term beside it; a teacher's; the reconstruction."""

from simlte_st.losses.cached_multiple_negatives_ranking_mlm import CachedMultipleNegativesRankingMLMLoss
from simlte_st.losses.multi_similarity_triplet import MultiSimilarityTripletLoss
from simlte_st.losses.multiple_negatives_ranking_mlm import MultipleNegativesRankingMLMLoss
from simlte_st.losses.reconstruction import ReconstructionLoss
from simlte_st.losses.teacher import TeacherLoss

__all__ = [
    "CachedMultipleNegativesRankingMLMLoss",
    "MultiSimilarityTripletLoss",
    "MultipleNegativesRankingMLMLoss",
    "ReconstructionLoss",
    "TeacherLoss",
]
