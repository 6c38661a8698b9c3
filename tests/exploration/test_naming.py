from simlte_st.data.topic_terms import topic_terms
from simlte_st.exploration.naming import name_topics


def test_scripts_find_the_names_of_topics_here() -> None:
    assert name_topics is topic_terms
