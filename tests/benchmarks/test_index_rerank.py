from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import make_document

from benchmarks import index_rerank
from benchmarks.index_rerank import Collection
from simlte_st.data import Document
from simlte_st.files import read_json


def test_it_compares_the_indices(
    encoder_path: Path, static_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [make_document(number) for number in range(12)]
    documents = [Document(str(number), text, metadata={"cited": True}) for number, text in enumerate(texts)]
    links = np.array([(number, (number + step) % 12) for number in range(12) for step in (3, 5)])

    def ask(index, number, rerank):  # type: ignore[no-untyped-def]
        return index.link([str(number)], top_k=12, where="cited", mode="hybrid", rerank=rerank)

    made = Collection("Toys, one to two others", documents, texts, links, ask)
    monkeypatch.setattr(index_rerank, "papers", lambda shared: made)
    monkeypatch.setattr(index_rerank, "tweets", lambda shared: replace(made, name="More, of them"))
    monkeypatch.setattr(index_rerank, "ENGLISH", {})
    monkeypatch.setattr(index_rerank, "TIMED", 2)
    command = ["--shared", str(tmp_path), "--static", str(static_path), "--base", str(encoder_path), "--queries", "5"]
    index_rerank.main([*command, "--work", str(tmp_path / "work"), "--output", str(tmp_path)])
    found = read_json(tmp_path / "index_rerank.json")["collections"]["Toys, one to two others"]
    assert set(found) == {"TF-IDF", "tiny-static", "tiny-static, rerank", "tiny-encoder, truncated"}
    assert all(len(each["recall@10"]) == 5 and np.mean(each["recall@10"]) > 50 for each in found.values())
    assert found["tiny-static, rerank"]["index_seconds"] is None, "it is the other's index"
    assert found["tiny-static, rerank"]["first_milliseconds"] > 0
    text = (tmp_path / "index_rerank.md").read_text()
    assert text.count("| tiny-static, rerank ") == 2
