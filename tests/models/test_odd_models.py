"""Unusual models work, or an early error says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router
from support import load_encoder

import simlte_st
from simlte_st.errors import ModelError
from simlte_st.models.conversion import convert_base
from simlte_st.models.distillation import to_static
from simlte_st.models.encode import encode_documents
from simlte_st.models.export import export_model
from simlte_st.models.loading import load_model
from simlte_st.models.lsa import append_lsa
from simlte_st.search import Index


def test_router_encodes_and_is_refused_elsewhere(bert_path: Path, tmp_path: Path) -> None:
    router = Router.for_query_document(*(list(load_encoder(bert_path)) for _ in range(2)))
    folder = tmp_path / "model"
    SentenceTransformer(modules=[router], device="cpu").save_pretrained(str(folder))
    stock, ours = (kind(str(folder), device="cpu") for kind in (SentenceTransformer, simlte_st.SentenceTransformer))
    np.testing.assert_allclose(ours.encode_query("ba bun"), stock.encode_query("ba bun"), atol=1e-6)
    with pytest.raises(ModelError, match="begins with Router"):
        load_model(folder)
    with pytest.raises(ModelError, match="begins with Router"):
        Index.create(tmp_path / "index", stock)
    with pytest.raises(ModelError, match="begins with Router"):
        encode_documents(stock, ["ba bun"], tmp_path / "v.parquet")


def test_model_without_padding_token_is_refused(encoder_path: Path, tmp_path: Path) -> None:
    model = SentenceTransformer(str(encoder_path), device="cpu")
    model.tokenizer.pad_token = None
    model.save_pretrained(str(tmp_path / "model"))
    with pytest.raises(ModelError, match="has no padding token"):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("size", [1e16, 1e30, float("nan")])
def test_diverged_models_are_not_saved_again(size: float, docs: Path, encoder_path: Path, tmp_path: Path) -> None:
    makers: dict[str, Callable[[Path], object]] = {
        "chunk-mean": lambda source: convert_base(source, tmp_path / "chunk-mean", backbone="chunk-mean"),
        "longformer": lambda source: convert_base(source, tmp_path / "longformer", backbone="longformer"),
        "lsa": lambda source: append_lsa(source, docs, tmp_path / "lsa", progress=False),
        "static": lambda source: to_static(source, tmp_path / "static", progress=False),
        "onnx": lambda source: export_model(source, tmp_path / "onnx"),
    }
    model = load_model(encoder_path).model
    with torch.no_grad():
        for weight in model.parameters():
            weight *= size
    model.save(str(tmp_path / "diverged"))
    for make in makers.values():
        with pytest.raises(ModelError, match=r"No model was saved.*diverged.* not finite"):
            make(tmp_path / "diverged")
    assert [path.name for path in tmp_path.iterdir()] == ["diverged"]


def test_training_uses_truncate_dim(docs: Path, bert_path: Path, tmp_path: Path) -> None:
    """Rows of the last module that encode truncates do not learn; the others do."""
    folder = tmp_path / "model"
    load_encoder(bert_path, Dense(32, 20), truncate_dim=12).save_pretrained(str(folder))
    simlte_st.train(
        docs, tmp_path / "out", base=folder, max_steps=2, held_out=0.0, progress=False, learning_rate=1e-3, warmup=0.0
    )
    before, after = (load_model(path).model[2].linear.weight.detach() for path in (folder, tmp_path / "out"))
    assert torch.equal(before[12:], after[12:])
    assert (before[:12] != after[:12]).any()
