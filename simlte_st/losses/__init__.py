"""Losses: DocSplit's contrastive term with a masked-language-model term beside it, and what a teacher shows."""

from simlte_st.losses.cached_multiple_negatives_ranking_mlm import CachedMultipleNegativesRankingMLMLoss
from simlte_st.losses.multiple_negatives_ranking_mlm import MultipleNegativesRankingMLMLoss
from simlte_st.losses.teacher import TeacherLoss

__all__ = ["CachedMultipleNegativesRankingMLMLoss", "MultipleNegativesRankingMLMLoss", "TeacherLoss"]
