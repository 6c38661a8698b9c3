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
from simlte_st.search.encoder import BEGINNING, BEGINNING_WEIGHT

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


def test_vectors_include_beginnings_and_documents(static_path: Path, tmp_path: Path) -> None:
    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    model = SentenceTransformer(str(static_path), device="cpu")
    for name, source in (("torch", model), ("numpy", static_path)):
        index = Index.create(tmp_path / name, source, parts=True)  # type: ignore[arg-type]
        index.add(CORPUS[:8], device=["cpu", "cpu"])
        rows = index._store.rows("part > -1", ["id", "part", "text", "passage", "vector"]).to_pylist()
        documents = {row["id"]: np.array(row["vector"]) for row in rows if row["part"] == 0}
        for row in rows:
            text = row["passage"] or row["text"]
            whole, beginning = model.encode([text, text[:BEGINNING]])
            expected = unit(unit(whole) + BEGINNING_WEIGHT * unit(beginning))
            if row["part"]:
                expected = unit(expected + documents[row["id"]])
            np.testing.assert_allclose(row["vector"], expected, atol=1e-5)
        assert len(rows) > len(documents) == 8
        text = CORPUS[3].text + " Ba bun."  # a new query document is encoded as if it were in the index
        new = Index.create(tmp_path / f"{name} again", source, parts=True)  # type: ignore[arg-type]
        new.add([*CORPUS[:8], Document("new", text)])
        assert [hit.cosine for hit in index.link(text)] == pytest.approx(
            [hit.cosine for hit in new.link("new")], abs=1e-5
        )
        report = new.add([Document("new", text, metadata={"year": 2020})])
        assert (report.replaced, report.encoded) == (1, 0)


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
