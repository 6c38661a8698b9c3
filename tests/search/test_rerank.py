from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer
from support import make_document
from transformers import BertConfig, BertForSequenceClassification

from simlte_st.data import Document
from simlte_st.errors import ModelError
from simlte_st.search import Index
from simlte_st.search.searcher import ENCODER


@pytest.fixture(autouse=True)
def passages_are_shown_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simlte_st.search.passages.PASSAGE", 10_000)


@pytest.fixture
def fast(static_model: SentenceTransformer, corpus: list[Document], tmp_path: Path) -> Index:
    """An index of static vectors."""
    made = Index.create(tmp_path / "fast", static_model)
    made.add(corpus)
    return made


@pytest.mark.parametrize("mode", ["hybrid", "dense", "text"])
def test_rerank_adds_encoder_scores_to_the_first_stage(
    fast: Index, corpus: list[Document], model: SentenceTransformer, mode: Any
) -> None:
    query = "Ba bun bis."
    hits = fast.search(query, top_k=10, mode=mode, rerank=model)
    vector = model.encode(query, normalize_embeddings=True)
    for hit in hits:
        text = {one.id: one.text for one in corpus}[hit.id]
        assert hit.passage in text
        assert len(hit.passage) < len(text), "read at once"
        cosine = model.encode(hit.passage, normalize_embeddings=True) @ vector
        assert hit.reranked == pytest.approx(float(cosine), abs=2e-3), "kept in 16 bits"
    plain = {hit.id: hit for hit in fast.search(query, top_k=10, mode=mode)}
    first, read = np.array([[plain[hit.id].score, hit.reranked] for hit in hits], dtype=float).T
    scores = (first - first.mean()) / first.std() + ENCODER * (read - read.mean()) / read.std()
    assert [hit.score for hit in hits] == pytest.approx(scores.tolist(), abs=1e-5)
    assert scores.tolist() == sorted(scores, reverse=True)
    assert {hit.id: (hit.cosine, hit.bm25) for hit in hits} == {n: (hit.cosine, hit.bm25) for n, hit in plain.items()}
    assert all(hit.reranked is None for hit in plain.values())


def test_rerank_reads_the_first_and_best_passage_by_words(
    fast: Index, model: SentenceTransformer, encoded: list[str]
) -> None:
    beginning, end = (" ".join(make_document(number) for number in numbers) for numbers in ((20, 21), (22, 23)))
    fast.add([Document("long", f"{beginning} The quagga grazes. {end}"), Document("short", "Two quaggas graze.")])
    encoded.clear()
    hits = {hit.id: hit for hit in fast.search("ba bun quaggas", rerank=model)}
    first, best = (each for each in encoded if each in f"{beginning} The quagga grazes. {end}")
    assert beginning.startswith(first)
    assert "quagga grazes" in best
    vectors = model.encode([first, best, "ba bun quaggas"], normalize_embeddings=True)
    assert hits["long"].passage == (first, best)[int(np.argmax(vectors[:2] @ vectors[2]))]
    assert hits["short"].passage == "Two quaggas graze.", "the whole document"
    assert hits["short"].reranked is not None


def test_reranked_passages_are_cached_per_model(
    fast: Index, corpus: list[Document], model: SentenceTransformer, encoder_path: Path, encoded: list[str]
) -> None:
    query = corpus[3].text[:60]
    first = fast.search(query, rerank=model)
    assert len(first) == 10 <= len(encoded) <= 20, "the first passage of each, and its best by words"
    read = len(encoded)
    encoded.clear()
    assert fast.search(query, rerank=model) == first
    assert encoded == []
    assert fast.search(query, rerank=model, explain=True, top_k=1)[0].sentences
    assert len(encoded) > 0, "sentences, by the index's own model"
    encoded.clear()
    assert fast.search(query, rerank=str(encoder_path)) == first
    assert len(encoded) == read, "another model"


@pytest.mark.parametrize("mode", ["hybrid", "dense"])
def test_threshold_applies_to_the_index_cosine(fast: Index, model: SentenceTransformer, mode: Any) -> None:
    cosines = [hit.cosine for hit in fast.search("Ba bun bis.", mode="dense")]
    lowest: dict[str, Any] = {"threshold": cosines[5], "mode": mode}
    hits = fast.search("Ba bun bis.", rerank=model, **lowest)
    assert {hit.id for hit in hits} == {hit.id for hit in fast.search("Ba bun bis.", **lowest)}
    assert len(hits) == 6
    assert len(fast.search("Ba bun bis.", rerank=model, top_k=2, **lowest)) == 2
    assert len(fast.search("ba", rerank=model, where="year = 1")) == 0


def test_hits_that_are_not_reranked_keep_their_order(
    fast: Index, model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simlte_st.search.searcher.READ_HITS", 3)
    plain = [hit.id for hit in fast.search("Ba bun bis.")]
    hits = fast.search("Ba bun bis.", rerank=model)
    assert {hit.id for hit in hits[:3]} == {*plain[:3]}
    assert [hit.id for hit in hits[3:]] == plain[3:]
    assert [hit.reranked is None for hit in hits] == [False] * 3 + [True] * 7
    assert hits[2].score == hits[3].score


def test_link_reranks_too(fast: Index, corpus: list[Document], model: SentenceTransformer) -> None:
    alone = [fast.link([one.id], rerank=model, top_k=5) for one in corpus[:3]]
    together = list(fast.link_each(corpus[:3], rerank=model, top_k=5))
    assert [name for name, _ in together] == ["d0", "d1", "d2"]
    for one, (name, hits) in zip(alone, together, strict=True):
        assert name not in {hit.id for hit in one}
        assert [(hit.id, hit.passage) for hit in one] == [(hit.id, hit.passage) for hit in hits]
        assert [hit.reranked for hit in one] == pytest.approx([hit.reranked for hit in hits], abs=1e-5)
    hit = fast.link(["d0", "d1"], rerank=model)[0]
    assert {one.id: one.text for one in corpus}[hit.id].startswith(hit.passage), "beginnings with beginnings"
    first, second, own = model.encode([corpus[0].text, corpus[1].text, hit.passage], normalize_embeddings=True)
    assert hit.reranked == pytest.approx(float(own @ (first + second) / np.linalg.norm(first + second)), abs=0.05)


def test_unusable_rerankers_are_refused_before_encoding(
    fast: Index, bert_path: Path, tmp_path: Path, encoded: list[str]
) -> None:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
    vocabulary = BertConfig.from_pretrained(bert_path).vocab_size
    raw = BertForSequenceClassification(BertConfig(vocab_size=vocabulary, num_labels=1, **sizes))
    raw.save_pretrained(tmp_path / "raw")
    for file in bert_path.glob("*token*"):
        (tmp_path / "raw" / file.name).write_bytes(file.read_bytes())
    CrossEncoder(str(tmp_path / "raw")).save_pretrained(str(tmp_path / "cross"))
    for name in ("cross", "nowhere"):
        for ask in (fast.search, fast.link, lambda *given, **named: list(fast.link_each(*given, **named))):
            with pytest.raises(ModelError, match=name):
                ask("Ba bun bis.", rerank=str(tmp_path / name))  # type: ignore[operator]
    assert encoded == []
