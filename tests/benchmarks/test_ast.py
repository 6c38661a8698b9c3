from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from support import WORDS, make_document

from benchmarks import ast
from benchmarks.grid.work import SettingsClash
from benchmarks.linking.data import load_linked, split_by_article
from benchmarks.linking.encoders import ENCODERS, VECTORS, LastStates, make_encoder, word_vectors

pytest.importorskip("entmax")
pytest.importorskip("pytorch_metric_learning")
pytest.importorskip("bm25s")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linked")
    articles = [{"id": 100 + number, "text": make_document(number)} for number in range(30)]
    texts = [make_document(row % 27, sentences=1) for row in range(60)]
    posts = [{"id": row, "text": text, "article_ids": [100 + row % 27]} for row, text in enumerate(texts)]
    posts[5]["article_ids"] = [100, 101, 102, 103, 104]
    posts[6]["text"] = "http://unknown"
    pq.write_table(pa.Table.from_pylist(articles), folder / "politifact_articles.parquet")
    pq.write_table(pa.Table.from_pylist(posts), folder / "politifact_tweets.parquet")
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 10)).astype(np.float16)
    np.savez(folder / VECTORS, words=np.array(WORDS), vectors=vectors)
    return folder


def test_split_separates_articles_with_their_posts(shared: Path) -> None:
    data = load_linked(shared)
    assert (len(data.posts), len(data.articles), len(data.links)) == (60, 30, 64)
    train, test = split_by_article(data, seed=1)
    assert (len(train.articles), len(test.articles)) == (21, 9)
    assert not set(train.articles) & set(test.articles)
    assert not set(train.posts) & set(test.posts) - {make_document(row % 27, sentences=1) for row in range(60)}
    assert len(train.posts) + len(test.posts) in (59, 60), "a post about articles of both parts is in neither"
    about = {data.posts[post]: data.articles[article] for post, article in data.links.tolist() if post not in (5, 6)}
    for part in (train, test):
        assert {row for row, _ in part.links} == set(range(len(part.posts)))
        assert all(about.get(part.posts[a], part.articles[b]) == part.articles[b] for a, b in part.links.tolist()
                   if part.posts[a] != data.posts[5])  # fmt: skip
    assert split_by_article(data, seed=2)[1].articles != test.articles


def test_encoders_are_reproducible_and_ignore_padding(shared: Path) -> None:
    words = word_vectors(shared / VECTORS, words=16)
    texts = ["http://unknown", "", f"{WORDS[0]} {WORDS[1].title()}.", make_document(1)]
    for name in ENCODERS:
        rows = make_encoder(name, words, seed=0).encode(texts)
        assert np.isfinite(rows).all(), name
        assert np.array_equal(rows, make_encoder(name, words, seed=0).encode(texts))
        alone = make_encoder(name, words, seed=0).encode([texts[2]])
        np.testing.assert_allclose(alone[0], rows[2], rtol=1e-4, atol=1e-5, err_msg=f"{name}: padding leaks")


def test_last_states_match_a_bidirectional_gru() -> None:
    module = LastStates(6, bidirectional=True)
    stock = torch.nn.GRU(6, 6, bidirectional=True, batch_first=True)
    for reader, end in zip(module.readers, ("", "_reverse"), strict=True):
        for name, weight in reader.named_parameters():
            getattr(stock, name + end).data = weight.data
    lengths, vectors = torch.tensor([7, 3, 1]), torch.randn(3, 7, 6)
    packed = torch.nn.utils.rnn.pack_padded_sequence(vectors, lengths, batch_first=True)
    mask = (torch.arange(7) < lengths[:, None]).long()
    found = module({"token_embeddings": vectors, "attention_mask": mask})["sentence_embedding"]
    torch.testing.assert_close(found, torch.cat(list(stock(packed)[1]), dim=-1))


def test_run_is_resumed(shared: Path, tmp_path: Path, encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ast, "PACKAGED_BASE", str(encoder_path))
    command = ["--shared", str(shared), "--work", str(tmp_path / "work"), "--results", str(tmp_path), "--seeds", "0"]
    command += ["--words", "24", "--tokens", "16", "--epochs", "2", "--batch-size", "8"]
    ast.main(command)
    record = json.loads((tmp_path / "ast.json").read_text())["results"]
    assert set(record) == set(ast.SYSTEMS)
    assert len(record["AST"]["0"]["alpha"]["ring"]) == 5
    assert record["AST"]["0"]["alpha"]["star"] != [1.5] * 5, "it was trained"
    page = (tmp_path / "ast.md").read_text()
    for part in ("(53.0)", "| BM25", "## r-Precision", "## Sparsity", "head 5"):
        assert part in page
    monkeypatch.setattr(ast, "measure_system", lambda *arguments: pytest.fail("nothing is left to do"))
    ast.main(command)
    with pytest.raises(SettingsClash, match="words 24, now 25"):
        ast.main([*command, "--words", "25"])
