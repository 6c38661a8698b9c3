from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from support import make_document
from transformers import BertConfig, BertForSequenceClassification

import simlte_st
from simlte_st.data import Document
from simlte_st.errors import ModelError
from simlte_st.search import Index
from simlte_st.search.hits import z_scores
from simlte_st.search.rerank import BEST_PASSAGES, RERANKER, Reranker


@pytest.fixture(autouse=True)
def all_hits_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simlte_st.models.device.cpu_bf16", list)
    monkeypatch.setattr("simlte_st.search.rerank.READ_HITS", 64)


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
    scores = (first - first.mean()) / first.std() + RERANKER * (read - read.mean()) / read.std()
    assert [hit.score for hit in hits] == pytest.approx(scores.tolist(), abs=1e-5)
    assert scores.tolist() == sorted(scores, reverse=True)
    assert {hit.id: (hit.cosine, hit.bm25) for hit in hits} == {n: (hit.cosine, hit.bm25) for n, hit in plain.items()}
    assert all(hit.reranked is None for hit in plain.values())


def test_rerank_reads_the_first_and_best_passages(fast: Index, model: SentenceTransformer, encoded: list[str]) -> None:
    beginning, end = (" ".join(make_document(number) for number in numbers) for numbers in ((20, 21), (22, 23)))
    fast.add([Document("long", f"{beginning} The quagga grazes. {end}"), Document("short", "Two quaggas graze.")])
    encoded.clear()
    hits = {hit.id: hit for hit in fast.search("ba bun quaggas", rerank=model)}
    read = [each for each in encoded if each in f"{beginning} The quagga grazes. {end}"]
    assert len(read) <= 1 + BEST_PASSAGES
    assert beginning.startswith(read[0])
    assert any("quagga grazes" in each for each in read)
    vectors = model.encode([*read, "ba bun quaggas"], normalize_embeddings=True)
    assert hits["long"].passage == read[int(np.argmax(vectors[:-1] @ vectors[-1]))]
    assert hits["short"].passage == "Two quaggas graze.", "the whole document"
    assert hits["short"].reranked is not None


@pytest.mark.parametrize("is_loaded", [True, False])
def test_best_passages_have_query_words_and_static_cosines(
    is_loaded: bool, static_path: Path, corpus: list[Document], tmp_path: Path
) -> None:
    model = simlte_st.SentenceTransformer(str(static_path), device="cpu")
    index = Index.create(tmp_path / "fast", model if is_loaded else static_path)
    index.add(corpus)
    searcher, passages = index._snapshot(), ["A quagga.", *(document.text[-200:] for document in corpus)]
    query = searcher.text_query("quagga bun")
    by_words = searcher._passage_scores(replace(query, vector=None), passages)
    assert np.argmax(by_words) == 0
    cosines = z_scores(model.encode(passages, normalize_embeddings=True) @ query.vector)
    expected = by_words if is_loaded else by_words + cosines
    assert searcher._passage_scores(query, passages) == pytest.approx(expected, abs=0.02), "vectors kept in 16 bits"


def test_named_rerankers_use_bfloat16_if_the_cpu_has_it(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("simlte_st.models.device.cpu_bf16", lambda: ["amx_bf16"])
    assert Reranker(str(encoder_path), "cpu")._score._encoder.model.dtype == torch.bfloat16


def test_reranked_passages_are_cached_per_model(
    fast: Index, corpus: list[Document], model: SentenceTransformer, encoder_path: Path, encoded: list[str]
) -> None:
    query = corpus[3].text[:60]
    first = fast.search(query, rerank=model)
    assert len(first) == 10 <= len(encoded) <= 30, "the first and two best passages of each"
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
    monkeypatch.setattr("simlte_st.search.rerank.READ_HITS", 3)
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


def make_cross_encoder(bert_path: Path, folder: Path, labels: int) -> str:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 16}
    config = BertConfig(vocab_size=BertConfig.from_pretrained(bert_path).vocab_size, num_labels=labels, **sizes)
    BertForSequenceClassification(config).save_pretrained(folder / "raw")
    for file in bert_path.glob("*token*"):
        (folder / "raw" / file.name).write_bytes(file.read_bytes())
    CrossEncoder(str(folder / "raw"), device="cpu").save_pretrained(str(folder / "cross"))
    return str(folder / "cross")


@pytest.mark.parametrize("kind", ["cross", "raw", "loaded"])
def test_cross_encoders_score_query_and_passage(kind: str, fast: Index, bert_path: Path, tmp_path: Path) -> None:
    path = make_cross_encoder(bert_path, tmp_path, 1)
    stock = CrossEncoder(path, device="cpu", activation_fn=torch.nn.Identity())
    reranker = stock if kind == "loaded" else tmp_path / kind
    fast.add([Document("short", "Ba bun.")])
    hits = {hit.id: hit for hit in fast.search("Ba bun bis.", rerank=reranker) if hit.reranked is not None}
    texts = {document.id: document.text for document in fast.documents(["d0", "d1", *hits])}
    scores = stock.predict([("Ba bun bis.", hit.passage or texts[hit.id]) for hit in hits.values()])
    assert [hit.reranked for hit in hits.values()] == pytest.approx(scores.tolist(), abs=1e-5)
    hit = fast.link(["d0", "d1"], rerank=reranker)[0]
    pairs = [(texts[name], hit.passage or texts[hit.id]) for name in ("d0", "d1")]
    assert hit.reranked == pytest.approx(float(stock.predict(pairs).mean()), abs=1e-5)


def test_unusable_rerankers_are_refused_before_encoding(
    fast: Index, bert_path: Path, tmp_path: Path, encoded: list[str]
) -> None:
    for name in (make_cross_encoder(bert_path, tmp_path, 3), "./nowhere"):
        for ask in (fast.search, fast.link, lambda *given, **named: list(fast.link_each(*given, **named))):
            with pytest.raises(ModelError, match=name):
                ask("Ba bun bis.", rerank=name)  # type: ignore[operator]
    assert encoded == []
