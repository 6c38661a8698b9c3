from __future__ import annotations

import numpy as np

from simlte_st.exploration.naming import name_topics


def test_topics_are_named_under_the_former_name() -> None:
    texts = ["Rates rise at the bank."] * 3 + ["Goals fall in the final."] * 3
    names = name_topics(texts, np.array([0, 0, 0, 1, 1, 1]), 2)
    assert any("rates" in term for term in names[0])
    assert any("goals" in term for term in names[1])
