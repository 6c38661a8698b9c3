from __future__ import annotations

import random
from pathlib import Path

import pytest
from support import WORDS

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.page.overview import TYPICAL, look_over
from simlte_st.search import Index
from simlte_st.search.calibrate import Calibration


def test_topics_titles_and_questions(encoder_path: Path, tmp_path: Path) -> None:
    index = Index.create(tmp_path / "my.index", encoder_path, device="cpu")
    documents = []
    for number in range(30):
        own = WORDS[(number % 3) * 40 : (number % 3) * 40 + 12]
        text = " ".join(random.Random(number).choices(own, k=40))
        documents.append(Document(f"d{number:02d}", text, metadata={"Title": f"T{number}", "year": number}))
    index.add(documents)
    found = look_over(index)
    assert (found.count, found.title) == (30, "Title")
    assert [column.name for column in found.columns] == ["Title", "year"]
    assert len(found.topics) == 3
    assert all(len(topic.documents) == TYPICAL and topic.name for topic in found.topics)
    assert {title for topic in found.topics for _, title in topic.documents} <= {f"T{n}" for n in range(30)}
    assert list(found.queries) == [topic.documents[0][1] for topic in found.topics]
    assert -1 < found.weak < 1
    assert look_over(index, "year").topics[0].documents[0][1].isdigit()
    with pytest.raises(DataError, match=r"title='headline': .*Title, year"):
        look_over(index, "headline")
    index.calibration = Calibration(**{**dict.fromkeys(Calibration.__dataclass_fields__, 0), "threshold": 0.42})
    assert look_over(index).weak == 0.42
