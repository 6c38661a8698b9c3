"""Models of other makes work, or one sentence says before any work what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

import simlte_st
from simlte_st.errors import ModelError
from simlte_st.models.encode import encode_documents
from simlte_st.models.loading import load_model, side_of
from simlte_st.models.lsa import append_lsa
from simlte_st.search import Index

PROMPT = "ba bei bo un: "  # four tokens and a colon


def bert(path: Path, **options: Any) -> list[torch.nn.Module]:
    return [Transformer(str(path)), Pooling(32, "mean")]


def made(folder: Path, modules: list[torch.nn.Module], **options: Any) -> Path:
    SentenceTransformer(modules=modules, device="cpu", **options).save_pretrained(str(folder / "model"))
    return folder / "model"


def dense(folder: Path, bert_path: Path) -> Path:
    return made(folder, [*bert(bert_path), Dense(32, 20)], truncate_dim=12)


def router(folder: Path, bert_path: Path) -> Path:
    sides = bert(bert_path), bert(bert_path)
    with torch.no_grad():
        next(sides[0][0].parameters()).mul_(2)
    return made(folder, [Router.for_query_document(*sides)])


def two_ends(folder: Path, bert_path: Path) -> Path:
    routes: Any = {"query": [Dense(32, 20)], "document": [Dense(32, 20)]}
    return made(folder, [*bert(bert_path), Router(routes)])


@pytest.mark.parametrize(("make", "size"), [(dense, 12), (router, 32), (two_ends, 20)])
def test_an_analysis_is_appended_to_what_reads_documents(
    make: Callable[[Path, Path], Path], size: int, docs: Path, bert_path: Path, tmp_path: Path
) -> None:
    made = append_lsa(make(tmp_path, bert_path), docs, tmp_path / "out", dimension=4, progress=False)
    finished = load_model(made.output).model
    assert len(finished.encode("ba bun")) == finished.get_embedding_dimension() == size + 4


def test_a_model_without_a_padding_token(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.tokenizer.pad_token = None
    model.save_pretrained(str(tmp_path / "model"))
    with pytest.raises(ModelError, match="has no padding token"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("make", [router, two_ends])
@pytest.mark.parametrize("named", [True, False], ids=["named", "given"])
def test_separate_modules_are_for_questions_and_documents(
    make: Callable[[Path, Path], Path], named: bool, docs: Path, bert_path: Path, tmp_path: Path
) -> None:
    folder = make(tmp_path, bert_path)
    model = SentenceTransformer(str(folder), device="cpu")
    encode_documents(load_model(folder).model if named else model, docs, tmp_path / "v.parquet")
    vectors = np.array(pq.read_table(tmp_path / "v.parquet")["vector"].to_pylist())
    texts = [json.loads(line)["text"] for line in docs.read_text().splitlines()]
    np.testing.assert_allclose(vectors, model.encode_document(texts), atol=1e-6)
    assert not np.allclose(vectors, model.encode_query(texts), atol=1e-3)
    given = folder if named else model
    [hit] = Index.create(tmp_path / "ix", given).add(docs) and Index.open(tmp_path / "ix", given).search(
        texts[0], mode="dense", top_k=1
    )
    assert hit.cosine == pytest.approx(
        float(np.max([a @ b for a in [unit(model.encode_query(texts[0]))] for b in map(unit, vectors)])), abs=1e-5
    )
    with torch.no_grad():  # another model for questions is another model
        next(side_of(model, "query").parameters()).add_(1)
    with pytest.raises(ModelError, match="another model"):
        Index.open(tmp_path / "ix", model).load()


def unit(vector: Any) -> np.ndarray:
    return np.asarray(vector) / np.linalg.norm(vector)


def test_a_loss_sees_what_encode_gives(docs: Path, bert_path: Path, tmp_path: Path) -> None:
    """Rows of the last module that encode cuts off do not learn; those that it keeps do."""
    folder = dense(tmp_path, bert_path)
    simlte_st.train(
        docs, tmp_path / "out", base=folder, max_steps=2, held_out=0.0, progress=False, learning_rate=1e-3, warmup=0.0
    )
    before, after = (load_model(path).model[2].linear.weight.detach() for path in (folder, tmp_path / "out"))
    assert torch.equal(before[12:], after[12:])
    assert (before[:12] != after[:12]).any()
