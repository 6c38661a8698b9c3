from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support import stock_model, watch
from torch import Tensor, nn

from simlte_st.compat import onednn_linear
from simlte_st.models import passes
from simlte_st.models.conversion import convert_base
from simlte_st.models.limits import text_lengths
from simlte_st.models.passes import FEWEST_PRODUCTS, FEWEST_ROWS, TextReader, fast_products, pass_bounds
from simlte_st.models.sentence_transformers import SentenceTransformer

LENGTHS = [1, 2, 3, 3, 5, 8, 13, 21, 34, 40, 55, 62, 63, 90, 400]


def mixed_texts(lengths: list[int] = LENGTHS) -> list[str]:
    """Shuffled texts: character counts say little about token counts, one is empty and one occurs twice."""
    texts = [" ".join([",,,," if number % 3 else "ba"] * length) for number, length in enumerate(lengths)]
    return random.Random(0).sample([*texts, "", texts[4]], len(texts) + 2)


@pytest.mark.parametrize("backbone", [None, "longformer", "chunk-mean"])
@pytest.mark.parametrize("side", ["right", "left"])
def test_vectors_match_the_stock_class(
    encoder_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backbone: str | None, side: str
) -> None:
    monkeypatch.setattr(passes, "CPU_PASS", (128, 8))
    path = tmp_path / "model" if backbone else encoder_path
    if backbone:
        convert_base(encoder_path, path, backbone=backbone, max_length=300)
    model, stock, texts = SentenceTransformer(str(path), device="cpu"), stock_model(path), mixed_texts()
    model.tokenizer.padding_side = stock.tokenizer.padding_side = side
    notes = watch(model)
    # Left padding would shift BERT's positions; a text keeps those that it has without padding.
    together = 1 if side == "left" else 32
    for options in ({}, {"prompt": "bei bo "}, {"normalize_embeddings": True, "truncate_dim": 8}):
        np.testing.assert_allclose(
            model.encode(texts, **options), stock.encode(texts, batch_size=together, **options), atol=1e-6
        )
    assert len(notes) > 3 * 4
    assert np.array_equal(model.encode(texts[0]), stock.encode(texts[0]))
    assert model.encode([]).shape == stock.encode([]).shape
    assert model.encode(np.array(texts), convert_to_tensor=True).shape == (len(texts), 32)
    assert all(rows == 1 or (rows * width <= 128 and rows * width - tokens <= 8) for rows, width, tokens in notes)
    assert {"forward", "preprocess"}.isdisjoint(vars(model))


def test_pools_and_compiled_models_keep_their_batches(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts, sizes = SentenceTransformer(str(encoder_path), device="cpu"), mixed_texts(), []

    def elsewhere(inputs: list[str], *, batch_size: int, **options: Any) -> torch.Tensor:
        sizes.append(batch_size)
        return torch.zeros(len(inputs), 32)

    monkeypatch.setattr(model, "_multi_process", elsewhere)
    model.encode(texts, batch_size=3, pool={})
    model.encode(texts, batch_size=3, device=["cpu", "cpu"])
    assert sizes == [3, 3]
    compiled = SentenceTransformer(str(encoder_path), device="cpu")
    compiled._compiled_call_impl = lambda features, **options: (
        sizes.append(len(features["input_ids"])) or compiled._call_impl(features, **options)
    )
    compiled.encode(texts, batch_size=3)
    assert sizes[2:] == [3] * 5 + [2]


def test_texts_are_tokenized_once_and_counted(
    encoder_path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = mixed_texts()
    model, stock = SentenceTransformer(str(encoder_path), device="cpu"), stock_model(encoder_path)
    expected = text_lengths(stock, texts, "bei bo ")
    with caplog.at_level(logging.WARNING, "simlte_st"):
        model.encode(texts, prompt="bei bo ")
    cut = sum(max(0, length - 60) for length in expected) / sum(expected)
    assert re.search(rf"of {len(texts)} texts .* {cut:.1%}", caplog.text)
    reader = TextReader(stock, 4, texts)
    with monkeypatch.context() as patch:
        patch.setattr(passes, "text_lengths", lambda *_: pytest.fail("tokenized again"))
        reader.model.encode(texts, prompt="bei bo ", batch_size=reader.batch_size)
        assert reader.token_counts(texts, "bei bo ") == expected
    assert reader.token_counts(["bo", "ba bo"], "bei bo ") == [1, 2], "others are counted when they are asked for"


def test_pass_is_no_larger_than_a_stock_batch(encoder_path: Path) -> None:
    assert pass_bounds("cpu", 32, 256) == passes.CPU_PASS
    assert pass_bounds("cpu", 2, 64) == (128, passes.CPU_PASS[1])
    assert pass_bounds("cuda", 32, 256) == (8192, 1024)
    model = SentenceTransformer(str(encoder_path), device="cpu")
    notes = watch(model)
    model.encode(mixed_texts(), batch_size=2)
    assert max(rows * width for rows, width, _ in notes) <= 2 * 64


def test_flattened_batches_are_split_by_text(encoder_path: Path) -> None:
    model, seen = stock_model(encoder_path), []

    def forward(features: dict[str, Any]) -> dict[str, Any]:
        seen.append(features["cu_seq_lens_q"].tolist())
        ends = features["cu_seq_lens_q"][1:] - 1
        return {**features, "sentence_embedding": features["input_ids"][0, ends][:, None].float()}

    model.forward = forward
    bounds = torch.tensor([0, 2, 3, 7], dtype=torch.int32)
    flat = {
        "input_ids": torch.arange(7)[None],
        "position_ids": torch.tensor([[0, 1, 0, 0, 1, 2, 3]]),
        "cu_seq_lens_q": bounds,
        "cu_seq_lens_k": bounds,
        "max_length_q": 4,
        "max_length_k": 4,
    }
    found = TextReader(model, 2, ["a", "b", "c"]).model.forward(flat)
    assert found["sentence_embedding"].tolist() == [[1.0], [2.0], [6.0]]
    assert seen == [[0, 2, 3], [0, 4]]


def test_threads_take_turns_with_the_tokenizer(encoder_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, texts = SentenceTransformer(str(encoder_path), device="cpu"), mixed_texts()
    expected, inside, most = model.encode(texts), [], []

    def slowly(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            inside.append(None)
            most.append(len(inside))
            time.sleep(0.02)
            try:
                return function(*args, **options)
            finally:
                inside.pop()

        return call

    monkeypatch.setattr(model[0], "preprocess", slowly(model[0].preprocess))
    monkeypatch.setattr(passes, "untruncated_lengths", slowly(passes.untruncated_lengths))
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(model.encode, [texts] * 4):
            np.testing.assert_allclose(found, expected, atol=1e-6)
    assert len(most) >= 8
    assert max(most) == 1


# Matrix products by oneDNN.

AMD = {"cpu_name": "AMD EPYC 9B45", "avx512_f": True}
WIDTH = 384
CPU = torch.device("cpu")
TEXTS = ["ba da " * 30, "ga", "ma na ba " * 15]


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pretend that the processor is AMD's; return the rows of each product that oneDNN computed."""
    if not torch.backends.mkldnn.is_available():
        pytest.skip("PyTorch is built without oneDNN")
    rows: list[int] = []

    def counted(inputs: Tensor, *rest: Tensor) -> Tensor:
        rows.append(inputs.shape[:-1].numel())
        return onednn_linear(inputs, *rest)

    monkeypatch.setattr(torch.cpu, "get_capabilities", AMD.copy, raising=False)
    monkeypatch.setattr(passes, "onednn_linear", counted)
    return rows


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(100, WIDTH),
        lambda: torch.randn(4, 25, WIDTH),
        lambda: torch.randn(WIDTH, 100).T,
        lambda: torch.randn(4, 50, WIDTH)[:, ::2],
        lambda: torch.randn(1, WIDTH).expand(100, WIDTH),
    ],
    ids=["rows", "batch", "transposed", "strided", "expanded"],
)
def test_fast_products_match_the_stock_function(products: list[int], make: Callable[[], Tensor], bias: bool) -> None:
    layer, inputs = nn.Linear(WIDTH, 60, bias=bias), make()
    with torch.no_grad():
        expected = layer(inputs)
        with fast_products(CPU):
            found = layer(inputs)
            assert torch.equal(found, layer(inputs)), "the same bytes again"
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        assert found.is_contiguous()
    assert products == [100, 100]


class Scaled(Tensor):
    """A tensor subclass, as quantised weights use."""


@torch.no_grad()
def test_other_products_are_not_replaced(products: list[int]) -> None:
    inputs, weight = torch.randn(100, WIDTH), torch.randn(WIDTH, WIDTH)
    few = -(-FEWEST_PRODUCTS // weight.numel())
    assert few < FEWEST_ROWS
    with fast_products(CPU):
        F.linear(inputs[: FEWEST_ROWS - 1], weight)
        F.linear(inputs, weight[: FEWEST_PRODUCTS // weight[0].numel() // 100])
        F.linear(inputs[0], weight)
        F.linear(inputs[:0], weight)
        F.linear(inputs.double(), weight.double())
        F.linear(inputs.bfloat16(), weight.bfloat16())
        F.linear(inputs, weight.as_subclass(Scaled))
        F.linear(inputs.to("meta"), weight.to("meta"))
        with torch.autocast("cpu"):
            assert F.linear(inputs, weight).dtype is torch.bfloat16
        with torch.enable_grad():
            F.linear(inputs, weight.requires_grad_()).sum().backward()
        assert products == []
        F.linear(inputs, weight)
    F.linear(inputs, weight)
    assert products == [100], "within the context only"


@torch.no_grad()
@pytest.mark.parametrize(
    "capabilities",
    [{}, {"cpu_name": "Intel(R) Xeon(R)", "avx512_f": True}, {"cpu_name": "AMD Ryzen", "avx512_f": False}],
)
def test_other_processors_are_not_affected(
    products: list[int], monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object]
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    with fast_products(CPU):
        F.linear(torch.randn(100, WIDTH), torch.randn(WIDTH, WIDTH))
    assert products == []


def test_fast_products_are_used_only_for_encoding(
    products: list[int], encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "FEWEST_PRODUCTS", 1)
    model = SentenceTransformer(str(encoder_path), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), stock_model(encoder_path).encode(TEXTS), rtol=0, atol=1e-6)
    assert products
    assert min(products) >= FEWEST_ROWS
    before = len(products)
    model(model.preprocess(TEXTS))["sentence_embedding"].sum().backward()
    assert len(products) == before
