"""The former name of :mod:`simlte_st.data.topic_terms`."""

from simlte_st.data.topic_terms import topic_terms as name_topics

__all__ = ["name_topics"]
