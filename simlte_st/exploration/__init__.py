"""A pile of documents on one page: topics, a map, near copies, outliers, and the corpus in numbers."""

from simlte_st.exploration.explore import ExploreReport, explore

__all__ = ["ExploreReport", "explore"]
