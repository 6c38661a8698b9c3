from __future__ import annotations

import re

import numpy as np
import pytest

from simlte_st.exploration.duplicates import duplicate_groups
from simlte_st.exploration.sections import duplicates_section, topic_notes
from simlte_st.exploration.topics import Stability, Topics


def test_without_duplicates_it_says_so() -> None:
    written = duplicates_section(duplicate_groups(["Rates rise.", "Goals fall.", "Floods come."], 0.8), lambda row: "")
    assert re.search("3 documents share 80%", written)
    assert " 0 " not in written


@pytest.mark.parametrize(
    ("assigned", "said"),
    [
        ([0, 1, 1], None),
        ([0, 1, -1], "1 document belongs to none: its halves"),
        ([0, -1, -1], "2 documents belong to none: their halves"),
    ],
)
def test_documents_without_a_topic_are_told_where_there_are_some(assigned: list[int], said: str | None) -> None:
    vectors = np.eye(2, dtype=np.float32)
    stability = Stability(2, 0.5, 0.5)
    topics = Topics(np.array(assigned), vectors, np.ones(3, dtype=np.float32), stability, [stability])
    notes = [note for note in topic_notes(topics) if "none" in note]
    assert len(notes) == (said is not None)
    assert all(note.startswith(str(said)) for note in notes)
