from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import WORDS

from simlte_st.data import Document
from simlte_st.errors import DataError
from simlte_st.page.overview import TYPICAL, look_over
from simlte_st.search import Index
from simlte_st.search.calibrate import Calibration
from simlte_st.search.encoder import Encoder


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
    assert -1 < found.weak_neighbour < 1
    assert look_over(index, "year").topics[0].documents[0][1].isdigit()
    with pytest.raises(DataError, match=r"title='headline': .*Title, year"):
        look_over(index, "headline")
    index.calibration = Calibration(**{**dict.fromkeys(Calibration.__dataclass_fields__, 0), "threshold": 0.42})
    assert look_over(index).weak_neighbour == 0.42


def test_few_words_are_measured_by_few_words(
    documents: list[str], model: SentenceTransformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of texts that are no nearer to any document than others, one in twenty pairs is above what is weak."""
    index = Index.create(tmp_path / "my.index", model)
    index.add([Document(f"d{number}", text) for number, text in enumerate(documents[:10])])
    found = look_over(index)
    beginnings = [" ".join(text.split()[:5]) for text in documents[:10]]
    hits = [(f"d{n}", hit) for n, text in enumerate(beginnings) for hit in index.search(text, mode="dense", top_k=10)]
    others = [hit.cosine or 0 for own, hit in hits if hit.id != own]
    assert len(others) == 90
    assert np.mean([cosine >= found.weak for cosine in others]) == pytest.approx(0.05, abs=0.02)
    query = Encoder.query
    monkeypatch.setattr(Encoder, "query", lambda self, text: query(self, text) * 0.1)
    assert look_over(index).weak == pytest.approx(found.weak * 0.1, abs=1e-5)
    assert look_over(index).weak_neighbour == found.weak_neighbour
