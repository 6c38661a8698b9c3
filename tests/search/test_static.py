"""An index of a static embedding, which reads documents to their end and finds long ones by passages, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from support import make_document, make_static_model

from simlte_st.data import Document
from simlte_st.data.sentences import STATIC_PASSAGE
from simlte_st.models.truncation import text_lengths
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


def test_documents_are_indexed_whole_and_what_has_no_vector_is_told(
    static_model: SentenceTransformer, tmp_path: Path
) -> None:
    static_index = Index.create(tmp_path / "whole", static_model)
    report = static_index.add(CORPUS)
    assert (report.documents, report.vectors, report.encoded) == (10, 10, 10), "no passages"
    found = report.truncation
    assert (found.cut_texts, found.empty_texts) == (0, 1)
    assert "1 of 10 texts have no tokens" in report.summary()
    assert "truncated" not in report.summary()
    rows = static_index.table()
    texts = [document.text for document in sorted(CORPUS, key=lambda document: document.id)]
    assert rows["tokens"].to_pylist() == text_lengths(make_static_model(), texts)
    again = static_index.add(CORPUS)
    assert (again.unchanged, again.encoded, again.truncation.empty_texts) == (10, 0, 1)


def test_long_documents_have_passages_where_they_are_wanted(static_index: Index) -> None:
    report = static_index.add(CORPUS)
    assert (report.documents, report.vectors, report.encoded) == (10, 18, 26)
    text = CORPUS[3].text
    lengths = text_lengths(make_static_model(), [text])
    assert STATIC_PASSAGE < lengths[0] <= 2 * STATIC_PASSAGE
    words = text.split()
    for place, half in enumerate((words[: len(words) // 2], words[len(words) // 2 :])):
        query = " ".join(half)
        hit = static_index.search(query, top_k=1, mode="dense")[0]
        own = static_index.passages(["d3"])["d3"] @ static_index.encoder.query(query)
        assert (hit.id, own.argmax()) == ("d3", place)
        assert hit.cosine == pytest.approx(own.max(), abs=1e-5)


def test_a_zero_vector_is_no_hit(static_index: Index) -> None:
    static_index.add(CORPUS)
    for mode in ("dense", "hybrid"):
        hits = static_index.search(CORPUS[3].text, top_k=10, mode=mode)
        assert hits[0].id == "d3"
        assert "empty" not in [hit.id for hit in hits]
        assert all(np.isfinite(hit.score) and np.isfinite(hit.cosine) for hit in hits)
    assert list(static_index.search("\x00", mode="dense")) == []
    assert [hit.id for hit in static_index.search(UNKNOWN, top_k=1)] == ["runes"]


def test_long_documents_are_linked_alike_by_numpy_and_by_the_modules(static_path: Path, tmp_path: Path) -> None:
    long = [Document(f"d{number}", make_document(number, sentences=60)) for number in range(4)]
    Index.create(tmp_path / "index", static_path, parts=True).add(long)
    text = make_document(9, sentences=30) + " " + long[2].text
    quick, loaded = (
        index.link(text, top_k=4) for index in (Index.open(tmp_path / "index"), Index.open(tmp_path / "index").load())
    )
    assert [hit.id for hit in quick] == [hit.id for hit in loaded]
    assert [hit.cosine for hit in quick] == pytest.approx([hit.cosine for hit in loaded], abs=1e-6)
