from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sentence_transformers
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from simlte_st.compat import encoder_of, onednn_linear
from simlte_st.models import matrix_products
from simlte_st.models.matrix_products import FEWEST_PRODUCTS, FEWEST_ROWS, fast_products
from simlte_st.models.sentence_transformer import SentenceTransformer

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="PyTorch is built without oneDNN")

AMD = {"cpu_name": "AMD EPYC 9B45", "avx512_f": True}
WIDTH = 384
CPU = torch.device("cpu")
TEXTS = ["ba da " * 30, "ga", "ma na ba " * 15]


@pytest.fixture
def products(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Take the processor for one of AMD's; the rows of each product that oneDNN computed."""
    rows: list[int] = []

    def counted(inputs: Tensor, *rest: Tensor) -> Tensor:
        rows.append(inputs.shape[:-1].numel())
        return onednn_linear(inputs, *rest)

    monkeypatch.setattr(torch.cpu, "get_capabilities", AMD.copy, raising=False)
    monkeypatch.setattr(matrix_products, "onednn_linear", counted)
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
def test_products_are_those_of_the_stock_function(products: list[int], make: Callable[[], Tensor], bias: bool) -> None:
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
    """A tensor of another kind, as quantised weights are."""


@torch.no_grad()
def test_other_products_are_left_alone(products: list[int]) -> None:
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
def test_a_model_elsewhere_is_left_alone(products: list[int]) -> None:
    with fast_products(torch.device("cuda")):
        F.linear(torch.randn(100, WIDTH), torch.randn(WIDTH, WIDTH))
    assert products == []


@torch.no_grad()
def test_other_threads_compute_as_ever(products: list[int]) -> None:
    inputs, weight = torch.randn(100, WIDTH), torch.randn(WIDTH, WIDTH)
    with fast_products(CPU):
        thread = threading.Thread(target=lambda: F.linear(inputs, weight))
        thread.start()
        thread.join()
    assert products == []


@torch.no_grad()
@pytest.mark.parametrize(
    "capabilities",
    [{}, {"cpu_name": "Intel(R) Xeon(R)", "avx512_f": True}, {"cpu_name": "AMD Ryzen", "avx512_f": False}],
)
def test_other_processors_compute_as_ever(
    products: list[int], monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, object]
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    with fast_products(CPU):
        F.linear(torch.randn(100, WIDTH), torch.randn(WIDTH, WIDTH))
    assert products == []


def test_encoding_takes_them_and_training_does_not(
    products: list[int], encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_products, "FEWEST_PRODUCTS", 1)
    model = SentenceTransformer(str(encoder_path), device="cpu")
    stock = sentence_transformers.SentenceTransformer(str(encoder_path), device="cpu")
    np.testing.assert_allclose(model.encode(TEXTS), stock.encode(TEXTS), rtol=0, atol=1e-6)
    assert products
    assert min(products) >= FEWEST_ROWS
    before = len(products)
    model(model.preprocess(TEXTS))["sentence_embedding"].sum().backward()
    assert len(products) == before


def test_a_compiled_encoder_gives_the_same(
    products: list[int], encoder_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_products, "FEWEST_PRODUCTS", 1)
    model = SentenceTransformer(str(encoder_path), device="cpu")
    expected = model.encode(TEXTS)
    encoder_of(model).compile(backend="eager")
    np.testing.assert_allclose(model.encode(TEXTS), expected, rtol=0, atol=1e-6)
