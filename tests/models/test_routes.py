"""Each side of a model with a Router is what the stock class computes by that route."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Router, Transformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
from support import make_document, make_static_model

import simlte_st
from simlte_st.errors import ModelError
from simlte_st.evaluation.evaluator import encode_texts
from simlte_st.models.loading import load_model, side_of
from simlte_st.search import Index

TEXTS = ["ba bun bis", *(make_document(number, sentences=number + 1) for number in range(6))]


@pytest.fixture
def bert(bert_path: Path) -> list[torch.nn.Module]:
    return [Transformer(str(bert_path)), Pooling(32, "mean")]


def routers(bert: list[torch.nn.Module]) -> dict[str, list[torch.nn.Module]]:
    static = list(make_static_model())
    static[0].tokenizer.no_truncation()
    inner: Any = Router({"query": [Dense(32, 32)], "document": [Normalize()]})
    named: Any = {"short": static, "long": [*bert, Normalize()]}
    mapped: Any = {("query", "text"): "short", ("document", None): "long"}
    one: Any = {"query": [*bert, Dense(32, 16)], "document": [*bert, Dense(32, 16)]}
    return {
        "a static side": [Router.for_query_document(static, bert), Normalize()],
        "one encoder": [Router(one)],
        "ends": [*bert, Router({"query": [Dense(32, 8)], "document": [Dense(32, 8)]}), Normalize()],
        "routes of other names": [Router(named, route_mappings=mapped)],
        "a route for all texts": [Router({"text": bert}), Normalize()],
        "one in another": [Router({"query": [*bert, inner], "document": [*bert, inner]})],
    }


def test_sides_compute_what_the_routes_do(bert: list[torch.nn.Module], tmp_path: Path) -> None:
    for name, modules in routers(bert).items():
        prompts = {"query": "bei: ", "document": "bo: "}
        SentenceTransformer(modules=modules, device="cpu", prompts=prompts).save_pretrained(str(tmp_path / name))
        stock = SentenceTransformer(str(tmp_path / name), device="cpu")
        loaded = load_model(tmp_path / name)
        ours = simlte_st.SentenceTransformer(str(tmp_path / name), device="cpu")
        for task, side in {"query": loaded.other or loaded.model, "document": loaded.model}.items():
            assert not any(isinstance(module, Router) for module in side.modules()), name
            expected = stock.encode(TEXTS, task=task, prompt=prompts[task])
            np.testing.assert_allclose(side.encode(TEXTS, prompt=prompts[task]), expected, atol=1e-6, err_msg=name)
            encode = {"query": ours.encode_query, "document": ours.encode_document}[task]
            np.testing.assert_allclose(encode(TEXTS), expected, atol=1e-6, err_msg=name)
        expected = stock.encode_document(TEXTS)
        np.testing.assert_allclose(encode_texts(stock, TEXTS), expected, atol=1e-6, err_msg=name)


def test_a_side_shares_weights_and_settings(bert: list[torch.nn.Module]) -> None:
    model = SentenceTransformer(modules=[Router.for_query_document(bert, bert)], truncate_dim=12, prompts={"x": "ba "})
    model.default_prompt_name = "x"
    side = side_of(model.eval(), "document")
    assert side[0] is bert[0]
    assert (side.truncate_dim, side.default_prompt_name, side.prompts["x"], side.training) == (12, "x", "ba ", False)
    assert side_of(side, "query") is side


def test_each_side_keeps_its_length(bert: list[torch.nn.Module], bert_path: Path) -> None:
    short = Transformer(str(bert_path))
    short.max_seq_length = 9
    model = SentenceTransformer(modules=[Router.for_query_document([short, Pooling(32)], bert)], device="cpu")
    assert [side_of(model, task).max_seq_length for task in ("query", "document")] == [9, 64]


def test_a_task_without_modules(bert: list[torch.nn.Module], tmp_path: Path) -> None:
    model = SentenceTransformer(modules=[Router({"query": bert}, allow_empty_key=False)], device="cpu")
    model.save_pretrained(str(tmp_path / "half"))
    with pytest.raises(ModelError, match=r"half' has no modules for texts of the task 'document'.*query"):
        load_model(tmp_path / "half")
    with pytest.raises(ModelError, match="'document'"):
        Index.create(tmp_path / "ix", model)
