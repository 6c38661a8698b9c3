"""Names of topics, for scripts that look for them beside :mod:`simlte_st.exploration`."""

from simlte_st.data.topic_terms import topic_terms as name_topics

__all__ = ["name_topics"]
