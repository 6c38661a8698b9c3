"""An index of a static model, which reads whole documents and can also find them by passages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document, make_static_model

from simlte_st.data import Document
from simlte_st.models.limits import text_lengths
from simlte_st.search import Index

UNKNOWN = "\u16a0\u16a1 \u16a2"
CORPUS = [
    *(Document(f"d{number}", make_document(number, sentences=40)) for number in range(8)),
    Document("empty", "\x00\x01"),
    Document("runes", UNKNOWN),
]


@pytest.fixture
def static_index(static_model: SentenceTransformer, tmp_path: Path) -> Index:
    return Index.create(tmp_path / "index", static_model, parts=True)


def test_documents_are_indexed_whole(static_model: SentenceTransformer, tmp_path: Path) -> None:
    static_index = Index.create(tmp_path / "whole", static_model)
    report = static_index.add(CORPUS)
    assert (report.documents, report.vectors, report.encoded) == (10, 10, 10), "no passages"
    found = report.truncation
    assert found.cut_texts == 0
    assert "truncated" not in report.summary()
    rows = static_index.table()
    texts = [document.text for document in sorted(CORPUS, key=lambda document: document.id)]
    assert rows["tokens"].to_pylist() == text_lengths(make_static_model(), texts)


def test_zero_vectors_are_not_hits(static_index: Index) -> None:
    report = static_index.add(CORPUS)
    assert (report.documents, report.vectors, report.encoded) == (10, 18, 26), "long documents have passages"
    for mode in ("dense", "hybrid"):
        hits = static_index.search(CORPUS[3].text, top_k=10, mode=mode)
        assert hits[0].id == "d3"
        assert "empty" not in [hit.id for hit in hits]
        assert all(np.isfinite(hit.score) and np.isfinite(hit.cosine) for hit in hits)
    assert list(static_index.search("\x00", mode="dense")) == []
    assert [hit.id for hit in static_index.search(UNKNOWN, top_k=1)] == ["runes"]
