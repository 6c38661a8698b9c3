from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertForMaskedLM

from simlte_st import train
from simlte_st.chunk_mean import to_chunk_mean
from simlte_st.training import hardware
from simlte_st.training.hardware import compile_encoder

OPTIONS: dict[str, Any] = {
    "batch_size": 6, "max_steps": 1, "held_out": 0.0, "learning_rate": 3e-3, "dropout": 0.0, "mlm_weight": 0.1,
    "progress": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def uncompiled() -> Any:
    yield
    torch._dynamo.reset()


@pytest.fixture
def one_layer(bert_path: Path, tmp_path: Path) -> Path:
    """The tiny BERT without its second layer: a compiler takes its time for each."""
    BertForMaskedLM.from_pretrained(bert_path, num_hidden_layers=1).save_pretrained(tmp_path / "one-layer")
    AutoTokenizer.from_pretrained(bert_path).save_pretrained(tmp_path / "one-layer")
    return tmp_path / "one-layer"


def test_a_compiled_run_trains_the_same_model(
    one_layer: Path, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def counting(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        compiled.append(graph)
        return graph.forward

    def compile_with_it(model: SentenceTransformer) -> None:
        compile_encoder(model, counting)  # type: ignore[arg-type]

    # Compiled with a graph for the backward pass and without; all mini-batches are of 3 rows, as 1 is compiled anew.
    options = {**OPTIONS, "base": one_layer, "mini_batch_size": 3}
    train(documents, tmp_path / "plain", **options)
    assert not compiled
    monkeypatch.setattr(sys.modules["simlte_st.training.train"], "compile_encoder", compile_with_it)  # not the function
    train(documents, tmp_path / "compiled", compile=True, **options)
    assert compiled, "nothing went through the compiler"
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("plain", "compiled"))
    assert first.keys() == second.keys()
    assert all(torch.allclose(first[name], second[name], atol=1e-5) for name in first)


@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
def test_the_real_compiler(model: SentenceTransformer) -> None:
    del model.transformers_model.encoder.layer[1:]
    texts = ["Ba bei bo.", "Cun dis lal gor hun tis wet wal."]
    expected = [model.encode([text]) for text in texts]
    compile_encoder(model)
    torch._dynamo.utils.counters.clear()
    assert all(
        np.allclose(model.encode([text]), vector, atol=1e-5) for text, vector in zip(texts, expected, strict=True)
    )
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 1


def test_of_a_chunk_mean_the_encoder_is_compiled(model: SentenceTransformer) -> None:
    chunked = to_chunk_mean(model, max_length=200, chunk_length=32)
    text = " ".join(["Ba bei bo cun dis lal gor."] * 12)
    expected = chunked.encode([text])
    compile_encoder(chunked, "eager")
    torch._dynamo.utils.counters.clear()
    assert np.allclose(chunked.encode([text]), expected, atol=1e-6)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1, "the plan of chunks is not compiled"


def test_bf16_is_asked_of_the_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for capabilities, expected in (({}, False), ({"avx512_bf16": True}, True), ({"amx_bf16": True}, True)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda found=capabilities: found, raising=False)
        assert hardware.bf16_available() is expected
